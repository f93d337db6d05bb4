"""The search language for cases: `status:failed tag:refund tool:pay cost>0.01 turns>5 "free text"`.

`html/assets/search.js` has the same language for the page. Both are tested with the queries and the answers in
`tests/report/search.json`, so a change to one is a change to the other.

A query is a list of terms that must all hold; a `-` before a term negates it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from atp.base.errors import Error
from atp.base.near import near_miss
from atp.suite.result import CaseStatus

Row = Mapping[str, Any]
"""A case with the keys of a row of the HTML report (`html/rows.py`)."""

_TERM = re.compile(
    r"""(?P<minus>-(?=\S))?
    (?: (?P<field>[A-Za-z_]+) (?P<relation>:|\s*(?:>=|<=|[><=])\s*)
        (?P<value>(?:"[^"]*"?|[^\s",]+)?(?:,(?:"[^"]*"?|[^\s",]+))*)
      | "(?P<quoted>[^"]*)"?
      | (?P<word>\S+) )""",
    re.VERBOSE,
)
_ITEM = re.compile(r'"([^"]*)"?|([^\s",]+)')
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ms|s|m|h)")
_UNIT_MS = {"ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_COUNT_UNITS = {"": 1, "k": 1000, "m": 1_000_000}
STATUSES: tuple[str, ...] = get_args(CaseStatus)


class SearchError(Error):
    """A query that can't be understood."""


@dataclass(frozen=True, slots=True)
class _TextField:
    """A field that is compared as text, in any letter case."""

    values: Callable[[Row], Sequence[str]]
    whole: bool
    """True if a value must be the given word, false if it must contain it."""


@dataclass(frozen=True, slots=True)
class _NumberField:
    """A field that is compared as a number."""

    value: Callable[[Row], float | None]
    """The number; None if it isn't known, in which case no comparison holds."""
    parse: Callable[[str], float | None]
    """Reads the number of a query; None if it is none."""
    example: str


def _one(name: str) -> Callable[[Row], Sequence[str]]:
    return lambda row: (row.get(name) or "",)


def _used(name: str) -> Callable[[Row], float | None]:
    return lambda row: (row.get("usage") or {}).get(name)


def _if_run(name: str) -> Callable[[Row], float | None]:
    """The number of a case that ran, whose row leaves out a 0."""
    return lambda row: (row.get(name) or 0) if row.get("trials") else None


def _tools(row: Row) -> list[str]:
    """The names of the tools that were called; a tool of an MCP server has two: `bank__pay`, and `pay`."""
    names = row.get("tools") or []
    return [*names, *(name.partition("__")[2] for name in names if "__" in name)]


def _plain(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _usd(text: str) -> float | None:
    return _plain(text.removeprefix("$"))


def _count(text: str) -> float | None:
    unit = text[-1:].lower() if text[-1:].lower() in ("k", "m") else ""
    number = _plain(text[: len(text) - len(unit)])
    return None if number is None else number * _COUNT_UNITS[unit]


def _milliseconds(text: str) -> float | None:
    """`500ms`, `1m30s`; a number without a unit is seconds."""
    seconds = _plain(text)
    if seconds is not None:
        return seconds * 1000
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNIT_MS[unit] for number, unit in parts)


FIELDS: dict[str, _TextField | _NumberField] = {
    "status": _TextField(_one("status"), whole=True),
    "tag": _TextField(lambda row: row.get("tags") or [], whole=True),
    "tool": _TextField(_tools, whole=True),
    "blame": _TextField(_one("blame"), whole=True),
    "id": _TextField(_one("id"), whole=False),
    "name": _TextField(_one("name"), whole=False),
    "agent": _TextField(_one("agent"), whole=False),
    "file": _TextField(_one("file"), whole=False),
    "error": _TextField(_one("error"), whole=False),
    "cost": _NumberField(_used("cost_usd"), _usd, "cost>0.01"),
    "tokens": _NumberField(_used("tokens"), _count, "tokens>1.5k"),
    "turns": _NumberField(_if_run("turns"), _plain, "turns>5"),
    "duration": _NumberField(_if_run("duration_ms"), _milliseconds, "duration>1m30s"),
    "score": _NumberField(lambda row: row.get("score"), _plain, "score<80"),
}
"""The fields, in the order in which messages list them."""
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    "=": lambda one, other: one == other,
    ":": lambda one, other: one == other,
}
Test = Callable[[Row], bool]


class Search:
    """A query, ready to be asked of each case. Raises `SearchError` for a query that can't be understood."""

    def __init__(self, query: str) -> None:
        self._tests = [_test(term) for term in _TERM.finditer(query)]

    def matches(self, row: Row) -> bool:
        """True if every term holds for the case."""
        return all(test(row) for test in self._tests)


def _test(term: re.Match[str]) -> Test:
    if term["field"] is not None:
        test = _field_test(term["field"], term["relation"].strip(), term["value"], term[0].removeprefix("-"))
    else:
        text = (term["word"] if term["quoted"] is None else term["quoted"]).lower()

        def test(row: Row) -> bool:
            return text in _all_text(row)

    return (lambda row: not test(row)) if term["minus"] else test


def _field_test(given: str, relation: str, value: str, term: str) -> Test:
    name = given.lower()
    field = FIELDS.get(name)
    if field is None:
        meant = near_miss(name, FIELDS)
        fields = f"did you mean `{meant}`?" if meant else f"the fields are {', '.join(FIELDS)}"
        raise SearchError(f"there is no field `{given}` to search", hint=f'{fields}; quote a text: "{term.strip()}"')
    items = [quoted or bare for quoted, bare in _ITEM.findall(value)]
    if not items:
        raise SearchError(f"`{name}{relation}` needs a value")
    if isinstance(field, _TextField):
        return _text_test(name, field, relation, items)
    number = field.parse(value)
    if number is None:
        raise SearchError(f"`{name}` is compared with a number, and `{value}` is none", hint=f"as in {field.example}")
    get, holds = field.value, _HOLDS[relation]

    def test(row: Row) -> bool:
        found = get(row)
        return found is not None and holds(found, number)

    return test


def _text_test(name: str, field: _TextField, relation: str, items: Sequence[str]) -> Test:
    if relation not in (":", "="):
        raise SearchError(f"`{name}` is a text, which `{relation}` can't compare", hint=f"as in {name}:{items[0]}")
    wanted = [one.lower() for one in items]
    if name == "status" and (unknown := [one for one in wanted if one not in STATUSES]):
        meant = near_miss(unknown[0], STATUSES)
        hint = f"did you mean `{meant}`?" if meant else f"the statuses are {', '.join(STATUSES)}"
        raise SearchError(f"there is no status `{unknown[0]}`", hint=hint)

    def test(row: Row) -> bool:
        found = [one.lower() for one in field.values(row)]
        if field.whole:
            return any(one in found for one in wanted)
        return any(one in value for one in wanted for value in found)

    return test


def _all_text(row: Row) -> str:
    """What free text is searched in."""
    parts = [row.get(name) or "" for name in ("id", "name", "agent", "file", "status", "blame", "error")]
    return "\n".join([*parts, *(row.get("tags") or [])]).lower()
