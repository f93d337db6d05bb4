"""Variations by rule: many, always the same, and never touching what must stay."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.roles.generate.test_guard import PROTECTED

from atp.base.text import comparable
from atp.roles.generate.guard import Known, must_keep
from atp.roles.generate.rules import looks_english, rewrites, rule_chains


def test_a_short_request_has_many_wordings_that_differ_clearly() -> None:
    known = Known([["warm the ocean"]])
    differing = 0
    for made in rewrites("warm the ocean"):
        if not known.has_near([made]):
            known.add([made])
            differing += 1
    assert differing >= 60


def test_rewrites_are_the_same_each_time_and_each_once() -> None:
    made = list(rewrites("warm the ocean"))
    assert made == list(rewrites("warm the ocean"))
    assert len({comparable(one) for one in made}) == len(made)
    assert "warm the ocean" not in made


def test_other_prompts_begin_with_other_phrasings() -> None:
    first = {next(rewrites(f"{verb} the door")).replace(verb, "…") for verb in ("open", "close", "watch", "move")}
    assert len(first) > 1


@pytest.mark.parametrize(
    ("prompt", "among"),
    [
        (
            "warm the ocean",
            ["could you warm the ocean?", "please warm the ocean", "warm the ocean, please", "kindly warm the ocean"],
        ),
        ("Could you open the door?", ["please open the door", "I need you to open the door"]),
        ("Delete all files. Then report back.", ["Could you delete all files? Then report back."]),
        ("What is the time?", ["Tell me: what is the time?", "Hi. What is the time?"]),
        ("Don't delete anything.", ["Please don't delete anything.", "Note: don't delete anything."]),
        ("good morning", ["good morning to you"]),
        ("Open https://x.org/a", ["Could you open https://x.org/a"]),
        ("I do not know my size.", ["Well, I do not know my size."]),
    ],
)
def test_wordings(prompt: str, among: list[str]) -> None:
    made = list(rewrites(prompt))
    assert [one for one in among if one not in made] == []


@pytest.mark.parametrize("prompt", ["Add a customer", "do you know Bob", "is it raining", "Paris is nice"])
def test_the_words_of_a_prompt_are_kept(prompt: str) -> None:
    for text in rewrites(prompt):
        assert prompt.lower() in text.lower()


@pytest.mark.parametrize("prompt", ["/deploy prod", "```\ncode\n```", "42", "https://x.org", "`ls`", "--help me"])
def test_what_is_all_command_or_code_stays_as_it_is(prompt: str) -> None:
    assert list(rewrites(prompt)) == []
    assert list(rule_chains([[prompt]])) == []


@pytest.mark.parametrize("prompt", ["Open https://x.org/a", "show report.pdf", "print $HOME"])
def test_no_mark_touches_an_address(prompt: str) -> None:
    kept = must_keep(prompt)[0]
    for made in rewrites(prompt):
        behind = made[made.index(kept) + len(kept) :]
        assert behind == "" or behind[0].isspace()


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("warm the ocean", True),
        ("Summarize report.pdf", True),
        ("do it", True),
        ("I am 5 years old", True),
        ("Test die Datei", False),
        ("Bitte öffne die Datei und lies sie vor", False),
        ("ouvre la porte s'il te plait", False),
        ("abre la puerta por favor", False),
        ("海を温めて", False),
        ("открой дверь", False),
        ("", False),
    ],
)
def test_english_is_distinguished_from_other_languages(text: str, english: bool) -> None:
    assert looks_english(text) is english


@pytest.mark.parametrize("prompt", ["Öffne die Tür", "海を温めて", "открой дверь"])
def test_other_languages_have_no_variations(prompt: str) -> None:
    assert list(rule_chains([[prompt]])) == []


@pytest.mark.parametrize("prompt", ["hello", "Good morning", "warm the ocean", "What is the time?", "Don't stop."])
def test_marks_and_capitals_make_no_variation(prompt: str) -> None:
    def bare(text: str) -> str:
        return "".join(char for char in text.casefold() if char.isalnum())

    made = [bare(one) for one in rewrites(prompt)]
    assert made
    assert bare(prompt) not in made


def test_chains_keep_their_length_and_take_turns() -> None:
    listed = [["warm the ocean"], ["good morning", "warm it by 2 degrees", "centigrade"]]
    made = list(islice(rule_chains(listed), 40))
    assert [len(one) for one in made] == [1, 3] * 20
    assert all("2 degrees" in one[1] for one in made if len(one) == 3)


sentences = st.lists(
    st.one_of(
        st.sampled_from(PROTECTED),
        st.sampled_from(
            ["please", "open", "warm", "the", "ocean", "what", "is", "I", "do not", "don't", "it's", "and", "."]
        ),
        st.text(alphabet="abc ?!.,:;'\"`\n-_/€ü漢", max_size=6),
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(sentences)
def test_rules_never_change_what_must_stay(prompt: str) -> None:
    kept = sorted(must_keep(prompt))
    for made in islice(rewrites(prompt), 80):
        assert sorted(must_keep(made)) == kept
        assert comparable(made) != comparable(prompt)
        assert made.strip()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_text_can_be_varied(prompt: str) -> None:
    for made in islice(rewrites(prompt), 20):
        assert made
