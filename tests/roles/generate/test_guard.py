"""What a variation must keep, and when two are too much alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import lines_executed

from atp.roles.generate.guard import (
    Known,
    all_pieces,
    chain_changed,
    changed,
    features,
    must_keep,
    nearest,
    similarity,
)

PROTECTED = [
    "`rm -rf x`",
    '"hello you"',
    "“hello you”",
    "'quoted words'",
    "https://example.org/a?b=1",
    "bob@example.org",
    "/deploy",
    "report.pdf",
    "src/main.py",
    "$HOME",
    "${NAME}",
    "{{name}}",
    "<user-id>",
    "[NAME]",
    "--force",
    "warm_ocean",
    "42",
    "3.5%",
    "10:30",
    "2024-01-31",
    "$1,000",
    "v2",
    "twelve",
    "@bob",
]
pieces_st = st.sampled_from(PROTECTED)
words_st = st.sampled_from(["please", "open", "the", "file", "and", "then", "tell", "me", "about", "it"])


@pytest.mark.parametrize("part", PROTECTED)
def test_each_kind_is_found_in_a_sentence(part: str) -> None:
    assert [piece.text for piece in all_pieces(f"please take {part} now")] == [part]


@pytest.mark.parametrize(
    "fence",
    ["```py\nx = 1\nprint('a')\n```", "~~~\nrun 5 times\n~~~", "````\n```\ninner\n```\n````", "```\nnever closed 5"],
)
def test_a_fence_is_one_piece(fence: str) -> None:
    assert [piece.text for piece in all_pieces(f"Fix this:\n{fence}")] == [fence]


@pytest.mark.parametrize(
    "text",
    [
        "don't touch what isn't yours, it's Bob's",
        "e.g. this one, i.e. that one and/or another",
        "Well-known words. Another sentence!",
        "Grüße aus München: alles gut?",
        "a - b",
    ],
)
def test_plain_text_has_nothing_to_keep(text: str) -> None:
    assert must_keep(text) == []


@pytest.mark.parametrize(
    ("original", "candidate", "why"),
    [
        ("warm it by 2 degrees", "heat it by two degrees", "it lost 2"),
        ("warm it by 2 degrees", "warm it by 3 degrees", "it lost 2"),
        ("warm it", "warm it by 3 degrees", "it brings in 3"),
        ('say "hi there" twice', 'say "hi" twice', 'it lost "hi there"'),
        ("call `f(x)`", "call f(x)", "it lost `f(x)`"),
        ("/deploy the app", "deploy the app with /deploy", "the command /deploy must come first"),
        ("open https://a.org/x", "open https://a.org/y", "it lost https://a.org/x"),
        ("between 5 and 5", "between 5 and more", "it lost 5"),
        ("hello", "  ", "it is empty"),
        ("hello", "hello " * 100, "it is much longer than the prompt"),
        ("hello", "hello \ud800", "it has characters that are none"),
    ],
)
def test_texts_that_are_not_a_variation(original: str, candidate: str, why: str) -> None:
    assert changed(original, candidate) == why


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        ("warm it by 2 degrees", "Could you, by 2 degrees, warm it?"),
        ('say "hi there"', "please say “hi there”"),
        ("/deploy the app", "/deploy this app please"),
        ("Two cats", "all two cats"),
    ],
)
def test_texts_that_are_a_variation(original: str, candidate: str) -> None:
    assert changed(original, candidate) is None


def test_a_chain_keeps_its_length_and_each_prompt_its_own() -> None:
    chain = ["hi", "take 2", "and 3"]
    assert chain_changed(chain, ["hello", "have 2", "also 3"]) is None
    assert chain_changed(chain, ["hello", "have 2"]) == "it has 2 prompts instead of 3"
    assert chain_changed(chain, ["hello", "have 3", "also 2"]) == "it lost 2"


@given(st.lists(st.one_of(words_st, pieces_st), min_size=1, max_size=12), st.data())
def test_losing_a_piece_is_always_noticed(parts: list[str], data: st.DataObject) -> None:
    original = " ".join(["so", *parts])
    kept = must_keep(original)
    assert changed(original, original) is None
    if kept:
        lost = data.draw(st.sampled_from(kept))
        smaller = " ".join(
            [
                "so",
                "see",
                *[
                    part
                    for part in parts
                    if part.replace("“", '"').replace("”", '"') not in (lost, lost.replace('"', "'"))
                ],
            ]
        )
        assert changed(original, smaller) is not None


@given(st.text(max_size=300))
def test_any_text_is_a_variation_of_itself_or_no_text(text: str) -> None:
    assert changed(text, text) in (None, "it is empty", "it has characters that are none")
    for piece in all_pieces(text):
        assert text[piece.start : piece.end] == piece.text


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_even_and_within_bounds(one: str, other: str) -> None:
    a, b = features(one), features(other)
    assert 0 <= similarity(a, b) <= 1
    assert similarity(a, b) == similarity(b, a)
    assert similarity(a, a) == 1


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("warm the ocean", "Warm the ocean!", True),
        ("please, warm the ocean", "Please warm   the ocean.", True),
        (
            "tell me what the weather will be in Rome on Monday",
            "tell me what the weather will be in Rome on Mondays",
            True,
        ),
        ("warm the ocean", "please warm the ocean", True),
        ("can you warm the ocean?", "could you warm the ocean?", True),
        ("warm the ocean", "could you warm the ocean?", False),
        ("warm the ocean", "heat the sea", False),
        ("good morning", "good evening", False),
        ("hi", "hello", False),
        ("海水的温度", "海水的温差", True),
        ("海水的温度", "今天有多冷", False),
    ],
)
def test_near_duplicates(one: str, other: str, near: bool) -> None:
    assert Known([[one]]).has_near([other]) is near
    assert not Known([[one]]).has([other])


def test_code_that_all_share_does_not_make_them_alike() -> None:
    code = "```py\n" + "print('a long program')\n" * 50 + "```"
    known = Known([[f"What does this do?\n{code}"]])
    assert not known.has_near([f"Find the bug in here:\n{code}"])
    assert known.has_near([f"what does this do\n{code}"])


def test_a_chain_is_near_only_if_all_its_prompts_are() -> None:
    known = Known([["good morning", "warm the ocean"]])
    assert known.has_near(["Good morning.", "Warm the ocean."])
    assert not known.has_near(["hi", "warm the ocean"])
    assert not known.has_near(["good morning"])


def test_blanks_make_no_difference() -> None:
    assert Known([["a  b"]]).has(["a b "])


def test_the_chain_that_was_meant_is_the_most_alike_of_that_length() -> None:
    among = [["do the thing"], ["delete 5 files"], ["a", "b"]]
    assert nearest(["delete some files"], among) == 1
    assert nearest(["x", "y"], among) == 2
    assert nearest(["x", "y", "z"], among) is None


@pytest.mark.no_cover  # coverage traces as well, and only one can
@pytest.mark.parametrize("text", ["-a", "`", '"a ', "{{", "a@", "<", "1,"])
def test_work_grows_no_faster_than_a_hostile_text(text: str) -> None:
    once = lines_executed(lambda: features(text * 2_000 + "\na"))
    assert lines_executed(lambda: features(text * 4_000 + "\na")) < 2.3 * once
    features(text * 10_000)  # what a regular expression does is no line: a careless one takes hours
