"""A comparison as a page: the cases side by side, with what differs in their answers marked word by word.

The page needs no script, no network and no other file. Everything in it is escaped by the template, and its policy lets
a browser run nothing.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from importlib.resources import files
from typing import Any, NamedTuple

from atp.base.json.text import encode, whole_text
from atp.base.secrets import Hide
from atp.base.text import harmless
from atp.report.compare.words import (
    difference_text,
    error_text,
    figure_cells,
    groups,
    heading,
    moved_figures,
    p_text,
    sentences,
    side_text,
    tally_text,
)
from atp.report.html.page import assets
from atp.stats.comparison import CaseComparison, Comparison, Said

LONGEST = 20_000
"""Characters of an answer that are shown."""
MOST_COMPARED = 4_000
"""Words of an answer that are compared with the other's: comparing takes time with the square of them."""
ALIKE = 0.3
"""Answers that have less in common are shown without marks."""
MOST_DETAILED = 2_000
"""Cases whose answers are shown: a browser must still open the page."""
_WORDS = re.compile(r"\d+(?:[.,]\d+)*|\w+|\s+|[^\w\s]")
_KINDS = {"Worse": "failed", "Better": "passed", "The same": "passed", "Nothing could be compared": "incomplete"}


class Part(NamedTuple):
    """A piece of an answer."""

    text: str
    """The text."""
    differs: bool
    """Whether the other side's answer does not have it."""


def comparison_page(comparison: Comparison, hide: Hide) -> bytes:
    """The page."""
    from jinja2 import Environment

    hidden: Comparison = hide(comparison)
    style = f"{assets()[0]}{_asset('compare.css')}"
    several = len({case.agent for case in hidden.cases}) > 1
    title = heading(hidden)
    page = (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(_asset("compare.html"))
        .render(
            title=title,
            policy=_policy(style),
            kind=_KINDS.get(title, "empty"),
            sentences=sentences(hidden),
            sides=[("A", side_text(hidden.a)), ("B", side_text(hidden.b))],
            groups=[
                (name, kind, [_case(case, several) for case in cases]) for name, kind, cases in _all_groups(hidden)
            ],
            errors=[(case.id, case.agent if several else "", error_text(case)) for case in hidden.in_error],
            figures=[figure_cells(one) for one in moved_figures(hidden)],
            notes=hidden.notes,
        )
    )
    # Not escaped: these are our own files, and the hash in the policy is of exactly these bytes.
    return whole_text(page).replace("/* style */", style, 1).encode()


def _all_groups(comparison: Comparison) -> Iterator[tuple[str, str, Sequence[CaseComparison]]]:
    yield from groups(comparison)
    if same := comparison.of_class("same"):
        yield "The same", "same", same


def _case(case: CaseComparison, name_agent: bool) -> dict[str, Any]:
    return {
        "id": case.id,
        "name": case.name,
        "agent": case.agent if name_agent else "",
        "file": case.file,
        "a": tally_text(case.a),
        "b": tally_text(case.b),
        "difference": difference_text(case.difference),
        "sure": "" if case.p_value is None else p_text(case.p_value),
        "why": case.why,
        "answers": _answers(case),
    }


def _answers(case: CaseComparison) -> list[tuple[str, str, str | None, list[Part]]]:
    """Of each side its name, whether the run passed, why not, and the answer in parts."""
    answers = case.answers or {}
    texts = {side: _text(said) for side, said in answers.items()}
    left, right = word_difference(texts["A"], texts["B"]) if len(texts) == 2 else (None, None)
    parts = {"A": left, "B": right}
    return [
        (side, "passed" if said.passed else "failed", said.error, parts[side] or [Part(texts[side], differs=False)])
        for side, said in sorted(answers.items())
    ]


def _text(said: Said) -> str:
    """The answers of all turns, as text."""
    shown = [one if isinstance(one, str) else encode(one).decode() for one in said.outputs]
    text = harmless("\n\n".join(shown))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"


def word_difference(a: str, b: str) -> tuple[list[Part], list[Part]] | tuple[None, None]:
    """Both texts in parts that are marked where they differ; (None, None) if they have little in common."""
    left, right = _WORDS.findall(a), _WORDS.findall(b)
    if max(len(left), len(right)) > MOST_COMPARED:
        return None, None
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < ALIKE:
        return None, None
    found: tuple[list[Part], list[Part]] = ([], [])
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        pieces = ("".join(left[start:end]), "".join(right[other_start:other_end]))
        for parts, text in zip(found, pieces, strict=True):
            if text:
                parts.append(Part(text, differs=kind != "equal"))
    return found


def _asset(name: str) -> str:
    return files("atp.report.compare").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """The content security policy: our style by its hash, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
