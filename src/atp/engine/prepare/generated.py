"""Input that is generated: `-i agents:a.b?count=10&focus=…` and `-i scripts:a.b?count=10`; and tests in Python.

The cases are kept in a file of the project's `.atp/generated/`, which is then loaded like any other, so that `--resume`
finds the same cases and users can look at them, keep them and run them again.
"""

import functools
import inspect
import itertools
import os
import re
from collections.abc import AsyncIterable, Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote_plus

import msgspec

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors, load_error
from atp.base.errors import ConfigurationError
from atp.base.files import write_file
from atp.base.near import near_miss
from atp.base.project import working_directory
from atp.engine.case_source import CaseSource
from atp.engine.keys import digest
from atp.engine.prepare.agents import Project, find_agent
from atp.engine.prepare.sources import in_memory, is_reference
from atp.engine.prepare.untrusted import refusals
from atp.engine.role_clients import RoleClients
from atp.engine.run_context import RunContext
from atp.engine.scripts.file import is_test_name
from atp.engine.signals import run_to_end
from atp.loader.load import load_path
from atp.loader.source import LoadContext
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.ask import FunctionClient, RoleClient, RoleError
from atp.roles.generate.generator import CasesRequest, as_jsonl, generate, refused_cases
from atp.suite.assertion import Decider
from atp.suite.case import Case
from atp.suite.result import Usage
from atp.suite.suite import Suite
from atp.usercode.code_path import find_script, load_function
from atp.usercode.signature import match_by_name

USUAL_COUNT = 10
"""The number of cases where `count` is not given."""
MOST_CASES = 10_000
"""The largest `count`: a larger one is taken for a slip."""
_OURS = ("test_mode", "target_agent", "existing", "repair")
"""Parameters that ATP sets itself."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An agent or a script that generates input, and its parameters."""

    kind: Literal["agents", "scripts"]
    id: str
    """The id without prefix and parameters."""
    count: int = USUAL_COUNT
    """The number of cases to generate."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """All else behind the `?`: text, numbers, true, false and null."""

    @property
    def name(self) -> str:
        """The id with its prefix, without parameters."""
        return f"{self.kind}:{self.id}"

    @property
    def is_script_test(self) -> bool:
        """True if the module is named `test_…` or `…_test`: it has tests. Any other function generates cases."""
        return self.kind == "scripts" and any(map(is_test_name, self.id.split(".")[-2:]))


def parse_reference(text: str, notes: Diagnostics) -> Reference | None:
    """Parse a reference; None, with the reason in `notes`, if it can't be used."""
    kind, _, rest = text.partition("." if text.startswith("scripts.") else ":")
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


def names_script_tests(text: str) -> bool:
    """True if an input of a run names tests in Python: `scripts:test_desk`."""
    if not is_reference(text):
        return False
    reference = parse_reference(text, Diagnostics())
    return reference is not None and reference.is_script_test


def _is_id(kind: str, name: str) -> bool:
    steps = name.split(".")
    if not all(steps) or not name.isprintable() or re.search(r"[\s:?&=]", name):
        return False
    return kind == "agents" or len(steps) > 1 or is_test_name(name)


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
    """True if the text is Unicode: a shell passes any bytes."""
    return text.encode(errors="replace").decode() == text


def _scalar(value: str) -> Any:
    """Return a number, bool or None if the text is one in JSON, else the text."""
    try:
        read = msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
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
    """Generated cases, new or from an earlier run."""

    path: Path
    """The file with the cases."""
    suite: Suite
    """The suite in that file."""
    warnings: list[Diagnostic] = []
    """Warnings of the generator and of the loader."""
    usage: Usage = msgspec.field(default_factory=Usage)
    """The usage of the generator."""


def generated_path(reference: Reference, target: str, root: Path) -> Path:
    """Return the file for the cases of a reference and an agent: the same for the same request."""
    slug = re.sub(r"[^a-z0-9]+", "-", reference.id.lower()).strip("-")[:60] or reference.kind
    asked = digest(reference.kind, reference.id, reference.count, reference.parameters, target)[:12]
    return root / ".atp" / "generated" / f"{slug}-{asked}.jsonl"


async def generate_suite(
    reference: Reference,
    client: RoleClient,
    target: str,
    root: Path,
    *,
    folders: Sequence[Path] = (),
    given: LoadContext | None = None,
    reuse: bool = False,
) -> Generated:
    """Generate the suite of a reference; with `reuse`, load the one of before. Raises `LoadError`.

    `folders` are those in which the agents under test look for attachments, beside the project and its root.
    """
    given = given or LoadContext(agent=True)
    path = generated_path(reference, target, root)
    searched = [path.parent, *folders, root, working_directory()]
    refused = partial(refusals, root=root, folders=searched) if reference.kind == "agents" else _none_refused
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
            refusals=refused,
        )
        try:
            made = await generate(client, request)
        except RoleError as error:
            raise load_error(
                "no-generated-cases", f"{reference.name} made no cases: {error}", "check the generator"
            ) from error
        warnings, usage = made.warnings, made.usage
        _save(path, as_jsonl(made.cases))
    loaded = load_path(path, given)
    if loaded.suite is None or not loaded.ok:
        raise LoadError(loaded.diagnostics)
    if errors := refused_cases(loaded.suite.cases, refused, str(path)):  # the file may be one of an earlier run
        raise LoadError(errors)
    return Generated(path=path, suite=loaded.suite, warnings=[*warnings, *loaded.diagnostics], usage=usage)


def _none_refused(case: Case) -> Iterator[str]:
    return iter(())


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)
    except OSError as error:
        raise load_error(
            "no-generated-cases", f"{path} can't be written: {error.strerror or error}", "check the folder's rights"
        ) from error


def script_generator(reference: Reference, folders: Sequence[Path]) -> RoleClient:
    """Return the client that calls a function of a script. Raises `ConfigurationError` if there is no function.

    The function is called with those of `count`, `target_agent`, `options`, `context` and the parameters that it names.
    """
    function = load_function(reference.name, folders)

    @functools.wraps(function)
    def call(payload: dict[str, Any]) -> Any:
        offered = {**payload, "options": {"metadata": dict(payload)}, "context": {"metadata": dict(payload), **payload}}
        args, kwargs = match_by_name(function, list(offered), "a generator").arguments(offered)
        return _listed(function(*args, **kwargs), payload["count"])

    return FunctionClient(call, reference.name)


def _listed(made: Any, count: int) -> Any:
    """Take at most `count` items of an iterator, which may be endless, as a list."""
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


def generate_source(text: str, given: LoadContext, context: RunContext) -> tuple[CaseSource, list[Diagnostic]]:
    """Return the cases that an agent or a script generates, or the tests of a script. On resume, those of before.

    Raises `LoadError`.
    """
    notes = Diagnostics("<command line>")
    reference = parse_reference(text, notes)
    if reference is not None and reference.is_script_test:
        tests = _script_tests(reference, text, context)
        if tests is not None:
            return tests
    elif reference is not None and reference.kind == "scripts":
        _check_script(reference, text, context, notes)
    if not context.options.name:
        notes.error("no-agent", f"{text}: its cases are for an agent, and none is named", hint="name one with -n")
    if reference is None or has_errors(notes):
        raise LoadError(notes)
    source, warnings = _generate(reference, text, given, context)
    return source, [*notes, *warnings]


def _check_script(reference: Reference, text: str, context: RunContext, notes: Diagnostics) -> None:
    """Report a missing script before a missing agent."""
    try:
        find_script(reference.name, _folders(context))
    except ConfigurationError as error:
        message = str(error) if reference.name in str(error) else f"{text}: {error}"
        notes.error("no-generator", message, hint=error.hint)


def _generate(
    reference: Reference, text: str, given: LoadContext, context: RunContext
) -> tuple[CaseSource, list[Diagnostic]]:
    options, roles, folders = context.options, context.new_roles(), _folders(context)
    try:
        client = _client(reference, roles, folders)
    except ConfigurationError as error:
        raise _command_line_error("no-generator", f"{text}: {error}", error) from error
    reuse = options.resume or options.resume_from is not None

    async def make() -> Generated:
        try:
            return await generate_suite(
                reference, client, options.name[0], context.root, folders=folders, given=given, reuse=reuse
            )
        except (CassetteMiss, CassetteError) as error:
            raise _command_line_error("cassette", f"{text}: {error}") from error
        finally:
            await roles.close()

    folder = os.getcwd()
    try:
        made = run_to_end(make())
    finally:
        os.chdir(folder)  # agents are looked for in the working directory, and the generator may have changed it
    return in_memory(made.suite, context.filter.wants, context.agent_tools), made.warnings


def _script_tests(reference: Reference, text: str, context: RunContext) -> tuple[CaseSource, list[Diagnostic]] | None:
    """Return the tests that a reference names; None if it names a generator after all."""
    from atp.engine.scripts.file import ScriptCase, find_tests, script_suite

    try:
        found = find_tests(reference.id, _folders(context))
    except ConfigurationError as error:
        raise _command_line_error("no-script-tests", f"{text}: {error}", error) from error
    if found is None:
        return None
    path, only = found
    notes = Diagnostics(str(path))
    if reference.parameters:
        notes.error("no-script-tests", f"{text}: tests take no parameters", hint="leave out what stands after the ?")
    suite = script_suite(path, only, notes, agent_named=bool(context.options.name))
    if has_errors(notes):
        raise LoadError(notes)
    source = in_memory(suite, context.filter.wants)
    for case in suite.cases:
        assert isinstance(case, ScriptCase)
        for name in case.validators if context.filter.wants(case) else ():
            decider = Decider("validator", name, "`agent`")
            source.survey.deciders.setdefault(decider, []).append((case.id, case.place))
    return source, list(notes)


def _folders(context: RunContext) -> list[Path]:
    """Return the folders below which `scripts/` is looked for: working directory, agents under test, root.

    The secrets of these agents count from here on: no file with one of them may be attached to a generated case.
    """
    project = Project(context.root, context.env)
    found = [find_agent(name, None, project, Diagnostics()) for name in context.options.name]
    named = [one for one in found if one is not None]
    for one in named:
        context.secrets.add(one.secrets)
    return [working_directory(), *(one.base for one in named), context.root]


def _client(reference: Reference, roles: RoleClients, folders: Sequence[Path]) -> RoleClient:
    if reference.kind == "scripts":
        return roles.generator(script_generator(reference, folders))
    return roles.generator(roles.client(reference.id, "generator", None))


def _command_line_error(code: str, message: str, error: ConfigurationError | None = None) -> LoadError:
    notes = Diagnostics("<command line>")
    notes.error(code, message, hint=error.hint if error is not None else None)
    return LoadError(notes)
