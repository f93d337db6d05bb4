"""How a comparison reads: its sentences, its Markdown and its page, also with hostile names and answers."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.history.test_compare import case, compare, run

from atp.base.secrets import Secrets, hider
from atp.history.figures import Answer, Figure
from atp.report.compare.html import comparison_page, word_difference
from atp.report.compare.markdown import comparison_markdown
from atp.report.compare.text import comparison_lines
from atp.report.compare.words import heading, sentences
from atp.stats.comparison import Comparison

GOLDEN = Path(__file__).parent.parent / "golden"
HOSTILE = "<script>alert(1)</script> | [x](http://a) @all `x`\n# h"
SHOWN = hider(Secrets())


def example() -> Comparison:
    """A comparison with a case of each class."""
    spent = {"cost_usd": Figure(median=0.01, runs=5)}
    more = {"cost_usd": Figure(median=0.02, runs=5)}
    same = [case(f"same-{number}", figures=spent) for number in range(8)]
    a = [case("broken"), case("fixed", 0), case("shaky"), case("changed"), case("gone"), case("lost"), case(HOSTILE)]
    b = [case("broken", 0), case("fixed"), case("shaky", 3), case("changed", 0, case_digest="2"), case("new")]
    b += [case("lost", 3, 3, errors=2), case(HOSTILE, 4)]
    costly = [case(one.id, figures=more) for one in same]
    first = run(*a, *same, run="20261118-0001-aaaa", at=1.8e9, commit="0123456789abcdef")
    second = run(*b, *costly, run="20261118-0002-bbbb", at=1.8e9 + 60, host="other", dirty=True, commit="f" * 40)
    return compare(first, second, margin=0.05)


def test_the_markdown_for_a_pull_request() -> None:
    found = "".join(f"{line}\n" for line in comparison_markdown(example(), SHOWN))
    found = re.sub(r"2027-01-15 \d\d\\:\d\d", "2027-01-15 08\\:00", found)  # the local time
    assert found == (GOLDEN / "comparison.md").read_text(encoding="utf-8")


def test_sentences_say_the_most_important_first() -> None:
    assert sentences(example()) == [
        "1 case got worse: broken. In the long run, at most 1 of 20 cases that are named so is named wrongly.",
        (
            "Over the 13 cases, B passes 4.6 points less often, in the long run between 40.2 points less and 31 points "
            "more; fewer than 6 cases differ, too few to tell a trend from chance."
        ),
        "1 case got better; 2 cases differ, perhaps by chance; 9 cases stayed the same.",
        "Not compared: 1 case that changed since A.",
        "It is not shown that B is less than 5 points worse than A.",
    ]


@pytest.mark.parametrize(
    ("a", "b", "title", "sentence"),
    [
        ([5] * 8, [5] * 8, "The same", "B passes as often as A: the 8 cases that both ran came to the same."),
        ([5] * 8, [3] * 8, "Worse", "B is worse than A: it passes 40 points less often over the 8 cases, "),
        ([3] * 8, [5] * 8, "Better", "B is better than A: it passes 40 points more often over the 8 cases, "),
        ([5, 4], [4, 5], "No difference is shown", "Over the 2 cases, B passes as often as A, in the long run"),
        (
            [5],
            [4],
            "No difference is shown",
            "Over the case, B passes 20 points less often, in the long run",
        ),
        ([], [], "Nothing could be compared", "Nothing could be compared: "),
    ],
)
def test_the_verdict(a: list[int], b: list[int], title: str, sentence: str) -> None:
    first, second = (run(*(case(str(place), passed) for place, passed in enumerate(one))) for one in (a, b))
    found = compare(first, second)
    assert heading(found) == title
    assert sentences(found)[0].startswith(sentence)


def test_nothing_hostile_is_markup_in_markdown() -> None:
    text = "\n".join(comparison_markdown(example(), SHOWN))
    assert HOSTILE not in text
    assert "\n# h" not in text
    assert re.findall(r"<(?!/?details>|/?summary>)", re.sub(r"`+[^`\n]*`+", "", text)) == []


def test_the_page_has_every_case_and_no_markup_of_others() -> None:
    said = {"passed": Answer(outputs=[HOSTILE, {"a": "</div>"}]), "failed": Answer(outputs=["</style>"], error=HOSTILE)}
    a, b = run(case(HOSTILE, 4, answers=said)), run(case(HOSTILE, 1, answers=said))
    page = comparison_page(compare(a, b, answers=True), SHOWN).decode()
    assert "<script" not in page
    assert page.count("</style>") == 1
    assert "&lt;/style&gt;" in page
    assert "default-src 'none'; style-src 'sha256-" in page.replace("&#39;", "'")
    whole = comparison_page(example(), SHOWN).decode()
    assert all(
        f"<bdi>{name}</bdi>" in whole for name in ("broken", "fixed", "shaky", "changed", "gone", "new", "same-7")
    )


def test_secrets_are_masked_everywhere() -> None:
    hide = hider(Secrets(["s3cret-value"]))
    said = {"passed": Answer(outputs=["the s3cret-value is"])}
    a = run(case("s3cret-value", answers=said))
    found = compare(a, a, answers=True)
    shown = [line for line, _ in comparison_lines(found, hide, verbose=True)]
    texts: list[Any] = [
        "\n".join(shown),
        "\n".join(comparison_markdown(found, hide)),
        str(comparison_page(found, hide)),
    ]
    assert not any("s3cret-value" in text for text in texts)
    assert "***" in texts[2]


@given(st.text("ab \n<1", max_size=60), st.text("ab \n<1", max_size=60))
def test_the_parts_of_a_word_difference_are_the_texts(a: str, b: str) -> None:
    left, right = word_difference(a, b)
    if left is None or right is None:
        return
    assert ("".join(part.text for part in left), "".join(part.text for part in right)) == (a, b)
    equal = ["".join(part.text for part in parts if not part.differs) for parts in (left, right)]
    assert equal[0] == equal[1]


def test_words_that_differ_are_marked() -> None:
    left, right = word_difference("The price is 12.50 EUR", "The price is 13.50 EUR")
    assert left is not None
    assert right is not None
    assert [part.text for part in left if part.differs] == ["12.50"]
    assert [part.text for part in right if part.differs] == ["13.50"]
