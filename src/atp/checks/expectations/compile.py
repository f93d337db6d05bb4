"""Compiles expectations in words that have an exact meaning to exact checks. A judge decides on all others.

Conservative on purpose: a sentence with anything beyond a known form goes to the judge.
"""

import re
from functools import lru_cache
from typing import Any

from atp.checks.expectations import forms
from atp.checks.expectations.names import is_english
from atp.checks.expectations.words import LONGEST, read_sentence
from atp.checks.groups import AtLeast
from atp.checks.verdicts import SHORT, show
from atp.suite.assertion import Assertion, Group
from atp.suite.expectation import read_expectation

_NAMED_BY = ("name", "path", "tools", "pattern", "value", "check_", "criteria", "script", "use")
_NAMES = frozenset({"name", "path", "before", "after", "check_", "script", "use"})
"""Fields whose values are shown without quotation marks."""
_OF_EVERY_KIND = frozenset(Assertion.model_fields)
LONGEST_NEAR = 200
"""Characters of the longest text for which a wording that would be exact is looked for."""


def compile_expectation(text: str, tools: frozenset[str] = frozenset()) -> Assertion | None:
    """The assertion that an expectation stands for, or None if a judge must decide.

    `tools` are the tools that are known to exist: a word that is one of them names it, whatever else it may mean.
    """
    words, own_turns = read_expectation(text)
    found = _compiled(words, tools) if len(words) <= LONGEST else None
    return found.model_copy(update={"turns": "own"}) if found is not None and own_turns else found


@lru_cache(maxsize=4096)
def _compiled(text: str, tools: frozenset[str]) -> Assertion | None:
    sentence = read_sentence(text, tools)
    return forms.find_form(sentence) if sentence is not None else None


def pattern_mistake(text: str) -> str | None:
    """Why the regular expression in an expectation can't be compiled; None if there is none, or it can be."""
    sentence = read_sentence(text, frozenset()) if len(text) <= LONGEST else None
    return forms.pattern_mistake(sentence) if sentence is not None else None


def exact_wording(text: str) -> str | None:
    """An expectation that a judge must decide, with one word in backticks so that it would be exact; None if none."""
    if len(text) > LONGEST_NEAR or compile_expectation(text) is not None:
        return None
    for word in re.finditer(r"(?<![\w`'\"<./-])[A-Za-z][\w-]*(?![\w`'\">/-])", text):
        if not is_english(word[0].lower()):
            name = word[0]
            if not word.start() and name.istitle():  # more likely the beginning of the sentence than of the name
                name = name.lower()
            quoted = f"{text[: word.start()]}`{name}`{text[word.end() :]}"
            if compile_expectation(quoted) is not None:
                return quoted
    return None


def describe(assertion: Assertion) -> str:
    """An assertion in short, with all fields that decide on its verdict: `tool_called warm_ocean, times 2`."""
    if isinstance(assertion, Group):
        inner = "; ".join(describe(one) for one in assertion.assertions)
        more = f" {assertion.k}" if isinstance(assertion, AtLeast) else ""
        words = f"{assertion.type}{more} ({inner})"
    else:
        fields = [name for name in type(assertion).model_fields if name not in _OF_EVERY_KIND]
        given = {name: getattr(assertion, name) for name in fields if name in assertion.model_fields_set}
        main = next((name for name in _NAMED_BY if name in given and _says(name, given[name])), None)
        first = f" {_shown(main, given.pop(main))}" if main else ""
        rest = "".join(
            f", {name.rstrip('_')} {_shown(name, value)}" for name, value in given.items() if _says(name, value)
        )
        words = f"{assertion.type}{first}{rest}"
    words = f"{words} (own turns)" if assertion.turns == "own" else words
    return f"not {words}" if assertion.negate else words


def _says(name: str, value: Any) -> bool:
    """Whether a field has an effect. A null `value` has: null is expected then."""
    return name == "value" or (value is not None and value is not False)


def _shown(name: str, value: Any) -> str:
    is_plain = isinstance(value, str) and not re.search(r"[\s,;()]", value)
    return value if name in _NAMES and is_plain else show(value, SHORT)
