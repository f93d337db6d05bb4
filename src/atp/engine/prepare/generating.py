"""Input that is code: `-i agents:x` and `-i scripts:x` have an agent or a script make the cases, before the plan.

A script that is called like a test file is one: its functions are the cases.
"""

from collections.abc import Sequence
from pathlib import Path

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors
from atp.base.errors import ConfigurationError
from atp.engine.prepare.agents import Project, find_agent
from atp.engine.prepare.generated import Generated, Reference, generate_suite, parse_reference, script_generator
from atp.engine.prepare.sources import CaseSource, in_memory
from atp.engine.role_clients import RoleClients
from atp.engine.run_context import RunContext
from atp.engine.signals import run_to_end
from atp.loader.source import LoadContext
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.ask import RoleClient
from atp.suite.assertion import Decider
from atp.usercode.code_path import find_script


def generate_source(text: str, given: LoadContext, context: RunContext) -> tuple[CaseSource, list[Diagnostic]]:
    """The cases that an agent or a script makes, or a script's tests; on resume, those made before.

    Raises `LoadError`.
    """
    notes = Diagnostics("<command line>")
    reference = parse_reference(text, notes)
    if reference is not None and reference.is_script_test:
        tests = _tests(reference, text, context)
        if tests is not None:
            return tests
    elif reference is not None and reference.kind == "scripts":
        _look_for(reference, text, context, notes)
    if not context.options.name:
        notes.error("no-agent", f"{text}: its cases are for an agent, and none is named", hint="name one with -n")
    if reference is None or has_errors(notes):
        raise LoadError(notes)
    source, warnings = _made(reference, text, given, context)
    return source, [*notes, *warnings]


def _look_for(reference: Reference, text: str, context: RunContext, notes: Diagnostics) -> None:
    """See that the script is there, before anybody thinks about the agent that its cases are for."""
    try:
        find_script(reference.name, _folders(context))
    except ConfigurationError as error:
        said = str(error) if reference.name in str(error) else f"{text}: {error}"
        notes.error("no-generator", said, hint=error.hint)


def _made(
    reference: Reference, text: str, given: LoadContext, context: RunContext
) -> tuple[CaseSource, list[Diagnostic]]:
    options, roles = context.options, context.new_roles()
    try:
        client = _client(reference, roles, _folders(context))
    except ConfigurationError as error:
        raise _refused("no-generator", f"{text}: {error}", error) from error
    reuse = options.resume or options.resume_from is not None

    async def generate() -> Generated:
        try:
            return await generate_suite(reference, client, options.name[0], context.root, given=given, reuse=reuse)
        except (CassetteMiss, CassetteError) as error:
            raise _refused("cassette", f"{text}: {error}") from error
        finally:
            await roles.close()

    made = run_to_end(generate())
    return in_memory(made.suite, context.filter.wants), made.warnings


def _tests(reference: Reference, text: str, context: RunContext) -> tuple[CaseSource, list[Diagnostic]] | None:
    """The tests that a reference names; nothing if it names a function that makes cases after all."""
    from atp.engine.scripts.file import ScriptCase, find_tests, script_suite

    try:
        found = find_tests(reference.id, _folders(context))
    except ConfigurationError as error:
        raise _refused("no-script-tests", f"{text}: {error}", error) from error
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
    """Where `scripts/` is looked for: the working directory, the folders of the agents under test, the root."""
    project = Project(context.root, context.env)
    named = [find_agent(name, None, project, Diagnostics()) for name in context.options.name]
    return [Path.cwd(), *(one.base for one in named if one is not None), context.root]


def _client(reference: Reference, roles: RoleClients, folders: Sequence[Path]) -> RoleClient:
    if reference.kind == "scripts":
        return roles.generator(script_generator(reference, folders))
    return roles.generator(roles.client(reference.id, "generator", None))


def _refused(code: str, message: str, error: ConfigurationError | None = None) -> LoadError:
    notes = Diagnostics("<command line>")
    notes.error(code, message, hint=error.hint if error is not None else None)
    return LoadError(notes)
