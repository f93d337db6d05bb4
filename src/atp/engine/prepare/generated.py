"""Input that is generated: `-i agents:a.b?count=10&focus=…` and `-i scripts:a.b?count=10`.

The cases are kept in a file of the project's `.atp/generated/`, which is then loaded like any other, so that `--resume`
finds the same cases and users can look at them, keep them and run them again.
"""

import functools
import inspect
import itertools
import re
from collections.abc import AsyncIterable, Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote_plus

import msgspec

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError
from atp.base.files import write_file
from atp.base.near import near_miss
from atp.engine.prepare.keys import digest
from atp.loader.load import load_path
from atp.loader.source import LoadContext
from atp.roles.ask import FunctionClient, RoleClient, RoleError
from atp.roles.generate.generator import CasesRequest, as_jsonl, generate
from atp.suite.result import Usage
from atp.suite.suite import Suite
from atp.usercode.code_path import load_function
from atp.usercode.signature import match_by_name

USUAL_COUNT = 10
"""Cases to make if nobody says how many."""
MOST_CASES = 10_000
"""More than this can only be a slip."""
_OURS = ("test_mode", "target_agent", "existing", "repair")
"""What the generator is told by us."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An agent or a script that input comes from, and what it is told."""

    kind: Literal["agents", "scripts"]
    id: str
    """Without prefix and parameters."""
    count: int = USUAL_COUNT
    """How many cases it shall make."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """All else behind the `?`: text, numbers, true, false and null."""

    @property
    def name(self) -> str:
        """With its prefix, without parameters."""
        return f"{self.kind}:{self.id}"

    @property
    def is_script_test(self) -> bool:
        """A module `test_…` or `…_test` holds tests in Python; any other function makes cases."""
        steps = self.id.lower().replace("-", "_").split(".")
        return self.kind == "scripts" and any(_is_test(step) for step in steps[-2:])


def _is_test(step: str) -> bool:
    return step.startswith("test_") or step.endswith("_test")


def is_reference(text: str) -> bool:
    """Whether an input is a reference to an agent or a script."""
    return text.startswith(("agents:", "scripts:"))


def parse_reference(text: str, notes: Diagnostics) -> Reference | None:
    """What a reference says; nothing if it can't be used, and why among the diagnostics."""
    kind, _, rest = text.partition(":")
    name, mark, query = rest.partition("?")
    errors = sum(one.severity == "error" for one in notes)
    if kind not in ("agents", "scripts") or not _is_id(kind, name):
        form = "agents:a.b" if kind == "agents" else "scripts:file.function"
        notes.error("reference", f"`{text}` names no {kind.removesuffix('s')}", hint=f"write `{form}?count=10`")
    parameters = dict(_parameters(query, text, notes)) if mark else {}
    count = _count(parameters.pop("count", USUAL_COUNT), text, notes)
    if sum(one.severity == "error" for one in notes) > errors:
        return None
    return Reference("agents" if kind == "agents" else "scripts", name, count, parameters)


def _is_id(kind: str, name: str) -> bool:
    steps = name.split(".")
    if not all(steps) or not name.isprintable() or re.search(r"[\s:?&=]", name):
        return False
    return kind == "agents" or len(steps) > 1 or _is_test(name.lower().replace("-", "_"))


def _parameters(query: str, text: str, notes: Diagnostics) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for pair in query.split("&"):
        name, is_set, value = (unquote_plus(part) for part in pair.partition("="))
        if not name or not is_set or not _writable(pair):
            message = f"`{pair}` in `{text}` is no parameter" if pair else f"a parameter of `{text}` is empty"
            notes.error("reference", message, hint="write `?name=value&name=value`")
        elif name in seen:
            notes.error("reference", f"the parameter `{name}` of `{text}` is given twice", hint="give it once")
        elif name in _OURS:
            notes.error("reference", f"the parameter `{name}` of `{text}` is set by atp itself", hint="remove it")
        else:
            if name != "count" and near_miss(name, ["count"]):
                message = f"the parameter `{name}` of `{text}` is handed on to the generator"
                notes.warn("reference", message, hint="did you mean `count`?")
            seen.add(name)
            yield name, _scalar(value)


def _writable(text: str) -> bool:
    """Whether it is Unicode: a shell hands on any bytes."""
    return text.encode(errors="replace").decode() == text


def _scalar(value: str) -> Any:
    """A number, true, false or null if it reads as one, else text."""
    try:
        read = msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError):
        return value
    too_long = isinstance(read, int) and abs(read) >= 2**63
    return value if isinstance(read, dict | list) or too_long else read


def _count(value: Any, text: str, notes: Diagnostics) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_CASES:
        return value
    message = f"`count` of `{text}` must be a whole number from 1 to {MOST_CASES}"
    notes.error("reference", message, hint="write `?count=10`")
    return USUAL_COUNT


class Generated(msgspec.Struct, kw_only=True):
    """Cases that were made, or found again."""

    path: Path
    """The file that they are kept in."""
    suite: Suite
    """The suite in that file."""
    warnings: list[Diagnostic] = []
    """What could not be had, and what the loader says."""
    usage: Usage = msgspec.field(default_factory=Usage)
    """What making them used."""


def generated_path(reference: Reference, target: str, root: Path) -> Path:
    """Where the cases of a reference for an agent are kept: the same for the same request."""
    slug = re.sub(r"[^a-z0-9]+", "-", reference.id.lower()).strip("-")[:60] or reference.kind
    asked = digest(reference.kind, reference.id, reference.count, reference.parameters, target)[:12]
    return root / ".atp" / "generated" / f"{slug}-{asked}.jsonl"


async def generate_suite(
    reference: Reference,
    client: RoleClient,
    target: str,
    root: Path,
    *,
    given: LoadContext | None = None,
    reuse: bool = False,
) -> Generated:
    """The suite that a reference stands for; with `reuse`, as it was made before. Raises `LoadError`."""
    given = given or LoadContext(agent=True)
    path = generated_path(reference, target, root)
    warnings: list[Diagnostic] = []
    usage = Usage()
    if not (reuse and path.is_file()):
        request = CasesRequest(
            label=reference.name,
            target_agent=target,
            count=reference.count,
            parameters=reference.parameters,
            again=reference.kind == "agents",
            context=given,
        )
        try:
            made = await generate(client, request)
        except RoleError as error:
            raise _refused(f"{reference.name} made no cases: {error}", "check the generator") from error
        warnings, usage = made.warnings, made.usage
        _save(path, as_jsonl(made.cases))
    loaded = load_path(path, given)
    if loaded.suite is None or not loaded.ok:
        raise LoadError(loaded.diagnostics)
    return Generated(path=path, suite=loaded.suite, warnings=[*warnings, *loaded.diagnostics], usage=usage)


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)
    except OSError as error:
        raise _refused(f"{path} can't be written: {error.strerror or error}", "check the folder's rights") from error


def script_generator(reference: Reference, folders: Sequence[Path]) -> RoleClient:
    """A script's function as a client. Raises `ConfigurationError` if there is none.

    It is called with those of `count`, `target_agent`, `options`, `context` and the parameters that it names.
    """
    function = load_function(reference.name, folders)

    @functools.wraps(function)
    def call(payload: dict[str, Any]) -> Any:
        offered = {**payload, "options": {"metadata": dict(payload)}, "context": {"metadata": dict(payload), **payload}}
        args, kwargs = match_by_name(function, list(offered), "a generator").arguments(offered)
        return _listed(function(*args, **kwargs), payload["count"])

    return FunctionClient(call, reference.name)


def _listed(made: Any, count: int) -> Any:
    """What an iterator gives, as a list, and no more of it than is wanted: it may have no end."""
    if isinstance(made, AsyncIterable):
        return _gathered(made, count)
    if inspect.isawaitable(made):
        return _awaited(made, count)
    return list(itertools.islice(made, count)) if isinstance(made, Iterator) else made


async def _gathered(made: AsyncIterable[Any], count: int) -> list[Any]:
    found: list[Any] = []
    async for one in made:
        found.append(one)
        if len(found) == count:
            break
    return found


async def _awaited(made: Awaitable[Any], count: int) -> Any:
    answer = _listed(await made, count)
    return await answer if inspect.isawaitable(answer) else answer


def _refused(message: str, hint: str) -> LoadError:
    notes = Diagnostics()
    notes.error("no-generated-cases", message, hint=hint)
    return LoadError(notes)
