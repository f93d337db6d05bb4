"""Generates test cases by asking an agent or a script, and checks them as if they were lines of a JSONL file.

The generator answers with a list of cases, with `{"cases": […]}` or `{"tests": […]}`, or with JSONL. Duplicates are
dropped, missing cases are asked for again, and the generator may fix once what the loader rejects. What is then still
wrong is an error that names the case.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

from msgspec import Struct, field

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError
from atp.base.text import cut, words
from atp.loader.load import load_text
from atp.loader.source import LoadContext
from atp.models.structured import without_fence
from atp.roles.ask import RoleAnswer, RoleCall, RoleClient, RoleError, WrongAnswer
from atp.suite.case import Case
from atp.suite.result import Usage

BATCH = 20
"""Cases that an answer is expected to have at least, if as many are wanted."""
SPARE_CALLS = 3
"""Calls beyond those that suffice if every answer is good."""
VAIN_CALLS = 2
"""The generator is not asked again after this many calls in a row without a new case."""
INSTRUCTIONS = """\
You write test cases for an agent that is called `target_agent`. The input is JSON; `count` says how many cases are \
wanted, `focus` and other keys what they should be about, `existing` which ids are taken. Answer with \
`{"cases": [...]}`. Each case is an object with:
- `id`: short, unique, in words with hyphens.
- `input`: what the user says to the agent, as text; or `messages`: a conversation as a list of `role` and `content`.
- `assertions`: a list of checks of the answer, each an object with a `type`: `contains`, `not_contains`, `equals`, \
`regex` (each with `value`), `json_path` (`path`, `value`), `type` (`value`), `tool_called` (`name`, `arguments`); \
or `expectations`: a list of sentences that must be true of the answer, for a judge.
Further keys: `name`, `description`, `tags`. No other keys. The cases differ clearly from each other. Check only what \
a correct agent must do. With `repair`, answer only with those cases, each fixed as its `problems` say, with its id."""
SCHEMA = {
    "type": "object",
    "properties": {"cases": {"type": "array", "items": {"type": "object"}}},
    "required": ["cases"],
}
_LISTS = ("cases", "tests")
_INPUT_KEYS = ("input", "messages", "task", "simulator")
_ABOUT = ("id", "name", "description", "tags")
"""Keys in which two cases may differ and still be the same."""
_BETWEEN = re.compile(r"(?:(?:(?<=\n)|\A)[ \t]*(?://|#)[^\n]*|[\s,])*")


class CasesRequest(Struct, kw_only=True):
    """Which cases to generate."""

    label: str
    """The generator's reference, for messages."""
    target_agent: str
    """The agent that the cases test."""
    count: int = 10
    """How many."""
    parameters: dict[str, Any] = {}
    """Further parameters for the generator: `focus` …"""
    again: bool = True
    """True if asking again may help. A script would only answer the same."""
    context: LoadContext = field(default_factory=LoadContext)
    """What the command line adds, which cases may refer to."""
    refusals: Callable[[Case], Iterable[str]] = lambda case: ()
    """What a case may not have, in words: the cases of an agent are not trusted like a file."""


class GeneratedCases(Struct, kw_only=True):
    """The generated cases."""

    cases: list[dict[str, Any]]
    """The cases in order, each with an id."""
    warnings: list[Diagnostic] = []
    """Warnings about cases that could not be generated."""
    usage: Usage = field(default_factory=Usage)
    """What the generator used."""


async def generate(client: RoleClient, request: CasesRequest) -> GeneratedCases:
    """Generate cases. Raises `RoleError`, and `LoadError` for cases that can't be used."""
    collected = _Collected(request)
    usage = Usage()
    unreadable = await _collect(client, request, collected, usage)
    notes = Diagnostics(f"<generator {request.label}>")
    if not collected.cases:
        raise unreadable or WrongAnswer(f"{client.name}: there is no case in its answer")
    if wrong := check(collected.cases, request):
        if request.again:
            await _repair(client, request, collected, wrong, usage)
            wrong = check(collected.cases, request)
        if wrong:
            raise LoadError(wrong)
    if len(collected.cases) < request.count:
        why = f" ({unreadable})" if unreadable is not None else ""
        message = f"{request.label} made {len(collected.cases)} of {request.count} cases{why}"
        notes.warn("fewer-cases", message, hint="lower `count`, or let the generator make more")
    return GeneratedCases(cases=collected.cases, warnings=list(notes), usage=usage)


async def _collect(
    client: RoleClient, request: CasesRequest, collected: "_Collected", usage: Usage
) -> WrongAnswer | None:
    """Ask until there are enough cases or no new ones come. Returns why the last answer could not be read, if so."""
    unreadable: WrongAnswer | None = None
    in_vain = 0
    for _ in range(-(-request.count // BATCH) + SPARE_CALLS if request.again else 1):
        before = len(collected.cases)
        try:
            answer = await client.ask(_call(request, request.count - before, collected.ids))
            usage.add(answer.usage)
            collected.add(read_cases(answer, client.name))
            unreadable = None
        except WrongAnswer as error:
            unreadable = error
        in_vain = 0 if len(collected.cases) > before else in_vain + 1
        if len(collected.cases) >= request.count or in_vain == VAIN_CALLS:
            break
    return unreadable


def _call(
    request: CasesRequest, count: int, existing: list[str], repair: list[dict[str, Any]] | None = None
) -> RoleCall:
    asked: dict[str, Any] = {**request.parameters, "target_agent": request.target_agent, "count": count}
    if existing:
        asked["existing"] = existing
    if repair:
        asked["repair"] = repair
    payload = {"test_mode": "generator", **asked}
    return RoleCall(role="generator", instructions=INSTRUCTIONS, payload=payload, schema=SCHEMA, metadata=asked)


class _Collected:
    """Collects cases: drops duplicates and gives each an id of its own."""

    def __init__(self, request: CasesRequest) -> None:
        self.cases: list[dict[str, Any]] = []
        self._count = request.count
        self._contents: set[str] = set()
        self._taken: set[str] = set()

    @property
    def ids(self) -> list[str]:
        return [str(case["id"]) for case in self.cases]

    def add(self, cases: list[dict[str, Any]]) -> None:
        for case in cases:
            content = json.dumps({key: value for key, value in case.items() if key not in _ABOUT}, sort_keys=True)
            if len(self.cases) < self._count and content not in self._contents:
                self._contents.add(content)
                self.cases.append({"id": self._id(case.get("id")), **{k: v for k, v in case.items() if k != "id"}})
                self._taken.add(str(self.cases[-1]["id"]))

    def _id(self, own: Any) -> Any:
        """The case's id, numbered if it is taken, or a new one. The loader rejects values that can't be ids."""
        if own is None or own == "":
            names = (f"gen-{number:03}" for number in itertools.count(len(self.cases) + 1))
        elif isinstance(own, str) and own in self._taken:
            names = (f"{own}-{number}" for number in itertools.count(2))
        else:
            return own
        return next(name for name in names if name not in self._taken)

    def replace(self, cases: list[dict[str, Any]], places: list[int]) -> None:
        """Replace wrong cases by fixed ones: by id, or in order if there are as many."""
        by_id = {str(case.get("id")): case for case in cases}
        for number, place in enumerate(places):
            old = self.cases[place]["id"]
            new = by_id.get(str(old)) or (cases[number] if len(cases) == len(places) else None)
            if new is not None:
                own = new.get("id") if isinstance(new.get("id"), str) and new.get("id") else old
                self.cases[place] = {"id": own, **{key: value for key, value in new.items() if key != "id"}}


def check(cases: list[dict[str, Any]], request: CasesRequest) -> list[Diagnostic]:
    """The loader's errors in cases, each naming its case. A case's line is its number."""
    path = f"<generator {request.label}>"
    loaded = load_text(as_jsonl(cases), "jsonl", request.context, path=path)
    errors = [one for one in loaded.diagnostics if one.severity == "error"]
    errors += refused_cases(loaded.suite.cases if loaded.suite is not None else [], request.refusals, path)
    return [
        replace(one, message=f"generated case `{cases[min(one.line, len(cases)) - 1].get('id')}`: {one.message}")
        for one in errors
    ]


def refused_cases(
    cases: Iterable[Case], refusals: Callable[[Case], Iterable[str]], path: str | None
) -> list[Diagnostic]:
    """The errors for what generated cases may not have."""
    notes = Diagnostics(path)
    for case in cases:
        for why in refusals(case):
            notes.error("untrusted-case", why, case.place, "leave it out, or write the case into a file of your own")
    return list(notes)


def as_jsonl(cases: list[dict[str, Any]]) -> str:
    """The cases as the lines of a file."""
    return "".join(f"{_line(case)}\n" for case in cases)


def _line(case: dict[str, Any]) -> str:
    text = json.dumps(case, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, escaped so that the loader can say where it is
        return json.dumps(case)
    return text


async def _repair(
    client: RoleClient, request: CasesRequest, collected: _Collected, wrong: list[Diagnostic], usage: Usage
) -> None:
    """Ask the generator, once, to fix the wrong cases."""
    problems: dict[int, list[str]] = {}
    for one in wrong:
        text = f"{one.message} ({one.hint})" if one.hint else one.message
        problems.setdefault(min(one.line, len(collected.cases)) - 1, []).append(text)
    repair = [{"case": collected.cases[place], "problems": texts} for place, texts in problems.items()]
    existing = [name for place, name in enumerate(collected.ids) if place not in problems]
    try:
        answer = await client.ask(_call(request, len(problems), existing, repair))
        usage.add(answer.usage)
        collected.replace(read_cases(answer, client.name), list(problems))
    except RoleError:
        return  # the diagnostics of the cases say more


def read_cases(answer: RoleAnswer, name: str) -> list[dict[str, Any]]:
    """The cases in an answer. Raises `WrongAnswer`."""
    cases = _unwrapped(answer.data)
    if not isinstance(cases, list) and answer.text.strip():
        # A client reads one JSON value, and JSONL is several.
        cases = _unwrapped(_in_text(answer.text))
    if isinstance(cases, dict) and any(key in cases for key in _INPUT_KEYS):
        cases = [cases]
    if not isinstance(cases, list):
        raise WrongAnswer(f"{name}: the answer is no list of cases: {_cut(answer.text or str(answer.data))}")
    for number, one in enumerate(cases, 1):
        if not isinstance(one, dict):
            raise WrongAnswer(f"{name}: case {number} is no object but {_cut(json.dumps(one, default=str))}")
    return cases


def _unwrapped(answer: Any) -> Any:
    """The list in `{"cases": […]}`."""
    return next((answer[key] for key in _LISTS if key in answer), answer) if isinstance(answer, dict) else answer


def _in_text(text: str) -> Any:
    """The JSON that a text consists of, alone or in a fenced block: one value, or several in a row."""
    values = _values(without_fence(text))
    return None if values is None else values[0] if len(values) == 1 else values


def _values(text: str) -> list[Any] | None:
    """The JSON values that a text consists of, except for comments and commas between them."""
    values: list[Any] = []
    at = _end(text, 0)
    try:
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            values.append(value)
            at = _end(text, at)
    except (ValueError, RecursionError):
        return None
    return values or None


def _end(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _cut(text: str) -> str:
    return cut(words(text), 100) or "it is empty"
