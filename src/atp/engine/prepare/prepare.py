"""Before a run: everything is loaded, planned and checked, so that what is wrong is known before anything runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.base.diagnostics import Diagnostic, LoadError, load_error
from atp.base.near import near_miss
from atp.base.project import find_root, keeping_working_directory, runs_folder
from atp.base.secrets import masking
from atp.base.text import one_line
from atp.engine.case_source import CaseSource
from atp.engine.prepare.calibrated import calibrations_for
from atp.engine.prepare.impossible_cases import check_hooks
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Plan, make_plan
from atp.engine.prepare.resume import find_unfinished, last_failures
from atp.engine.prepare.roles import resolve_roles
from atp.engine.prepare.settings import environment, environment_warnings
from atp.engine.prepare.sources import Input, in_memory, is_reference, load_context, open_input
from atp.engine.run import Run
from atp.engine.run_context import RunContext
from atp.history.quarantine import load_quarantine
from atp.journal.find import find_run
from atp.journal.read import bounds
from atp.suite.suite import Suite
from atp.usercode.environment import extended_environ
from atp.usercode.importing import check_project_path

if TYPE_CHECKING:
    from atp.history.baselines import Baseline


def prepare(given_input: Input, flags: Mapping[str, Any], *, own_process: bool = False) -> Run:
    """Load, plan and check what the command line or pytest names.

    `own_process`: the process is ATP's own, and does nothing else than this run. Raises `LoadError`, with everything
    that is wrong, before anything runs.
    """
    with keeping_working_directory():
        context = RunContext.of_project(given_input.anchor, flags)
        with masking(context.secrets), context.importing() if own_process else nullcontext():
            return _prepare(given_input, context)


def _prepare(given_input: Input, context: RunContext) -> Run:
    check_project_path(context.root)  # before loading, which may import what a module of the project stands in for
    options = context.options
    given = load_context(options, context.env)
    sources, found = open_input(given_input, given, context.filter.wants, context.agent_tools)
    for text in filter(is_reference, given_input.texts):
        from atp.engine.prepare.generated import generate_source

        source, said = generate_source(text, given, context)
        sources.append(source)
        found += said
    return _prepare_sources(given_input, sources, [*environment_warnings(context.env), *found], context)


def prepare_suites(suites: Sequence[Suite], options: Options) -> Run:
    """Plan and check suites that are loaded. Raises `LoadError`."""
    given_input = Input(tuple(suite.path or suite.name for suite in suites))
    root = find_root(given_input.anchor)
    context = RunContext(options, root, environment(root, options.env_file), given_input.anchor)
    sources = [in_memory(suite, context.filter.wants, context.agent_tools) for suite in suites]
    return prepare_sources(given_input, sources, [], context)


def prepare_sources(given_input: Input, sources: list[CaseSource], found: list[Diagnostic], context: RunContext) -> Run:
    """Plan and check cases; `found` are the warnings of loading them. Raises `LoadError`."""
    with keeping_working_directory(), masking(context.secrets):
        return _prepare_sources(given_input, sources, found, context)


def _prepare_sources(
    given_input: Input, sources: list[CaseSource], found: list[Diagnostic], context: RunContext
) -> Run:
    try:
        return _plan_run(given_input, sources, found, context)
    except LoadError as error:
        raise LoadError(dict.fromkeys([*found, *error.diagnostics])) from error


def _plan_run(given_input: Input, sources: list[CaseSource], found: list[Diagnostic], context: RunContext) -> Run:
    options, root, roles = context.options, context.root, context.roles
    check_project_path(root)
    for source in sources:
        context.secrets.add(source.suite.secrets)
    if options.only_failed:
        context.filter.only = last_failures(root, given_input.identity(root))
    with extended_environ(context.env):
        plan = make_plan(sources, options, context.filter, context.services)
    resolve_roles(plan, roles)
    calibrations = calibrations_for(plan, context)
    if options.order is not None:
        from atp.engine.prepare.order import Order  # reads journals, which few runs need

        plan.order = Order(options.order, root, given_input.identity(root))
    unused = read_quarantine(plan, given_input.identity(root), root)
    found = [*found, *plan.warnings, *dict.fromkeys(context.services.warnings), *unused]
    if options.strict and found:
        raise LoadError(found)
    if not any(unit.source.survey.count or unit.source.survey.skipped for unit in plan.units):
        raise no_case_left(options, sources)
    with extended_environ(context.env):
        # A dry run only looks for hooks, because loading one runs the user's code.
        load = None if options.dry_run else context.hooks.load
        missing = check_hooks(_named_hooks(plan, options), context.hooks.folders, root, load)
    if missing:
        raise LoadError(missing)
    run = Run(context, given_input, plan, found)
    run.baseline = _baseline(options, root)
    run.calibrations = calibrations
    if not options.dry_run:
        if options.resume_from:
            run.resumes = _run_to_resume(root, options.resume_from)
        elif options.resume:
            run.resumes = find_unfinished(root, given_input.identity(root))
        if run.resumes is not None:
            _check_filters(run.resumes, options)
    return run


def _baseline(options: Options, root: Path) -> "Baseline | None":
    """The baseline to compare the run with. Raises `LoadError` if there is none, before anything runs."""
    if options.baseline is None:
        flags = {
            "--fail-on-regression": options.fail_on_regression,
            "--fail-on": options.fail_on,
            "--baseline-margin": options.baseline_margin,
        }
        if flag := next((name for name, value in flags.items() if value), None):
            message = f"{flag} is given without a baseline to compare with"
            raise load_error("no-baseline", message, "name one: --baseline NAME; atp baseline list shows them")
        return None
    from atp.history import baselines

    return baselines.load(root, options.baseline)


def read_quarantine(plan: Plan, identity: list[str], root: Path) -> Iterator[Diagnostic]:
    """Take what is in quarantine into the plan. Returns warnings of entries for which there is no case."""
    plan.quarantine = load_quarantine(root)
    if not plan.quarantine.by_case:
        return iter(())
    sources = [unit.source for unit in plan.units if unit.source.suite.path is not None]
    ids = {str(source.suite.path): [case.id for case in source.cases()] for source in sources}
    return plan.quarantine.unused(ids, whole_project=identity == ["."])


def _run_to_resume(root: Path, name: str) -> Path:
    """The run that `--resume-from` names. Its results belong to this project, and are written to its folder."""
    run = find_run(root, name)
    if run.parent != runs_folder(root).resolve():
        raise load_error("no-run", f"{name}: it is no run of the project in {root}", "atp runs lists them")
    start, _ = bounds(run)
    if start is not None and start.rechecks is not None:
        message = f"the run {run.name} judged the run {start.rechecks} again, and has run no agent"
        raise load_error("rechecked-run", message, f"go on with that one: --resume-from {start.rechecks}")
    return run


def no_case_left(options: Options, sources: list[CaseSource]) -> LoadError:
    """The error for a plan without cases."""
    return load_error("nothing-to-run", "no case is left to run", _what_left_none(options, sources))


def _what_left_none(options: Options, sources: list[CaseSource]) -> str:
    """Why no case may be left, in the words of who chose, and what could have been meant."""
    given = {"--run": options.run, "--tags": options.tags, "--only-failed": options.only_failed}
    flags = [flag if value is True else f"{flag} {value}" for flag, value in given.items() if value]
    if not flags:
        return "there is no case in the files"
    cases = list(islice((case for source in sources for case in source.cases()), MOST_COMPARED))
    names = [name for case in cases for name in (case.id, case.name)]
    words: list[tuple[str | None, str, list[str]]] = [(options.run, "ids and names", names)]
    tags = [tag.strip() for tag in (options.tags or "").split(",")]
    words += [
        (tag, "tags", [known for case in cases for known in case.tags]) for tag in tags if tag[:1] not in ("", "!")
    ]
    more = [_what_there_is(word, kind, list(dict.fromkeys(known))) for word, kind, known in words if word]
    return "".join([f"none fits {' and '.join(flags)}", *more])


MOST_COMPARED = 1000
"""Cases whose ids and tags are compared with a filter that none fits."""
MOST_NAMED = 5
"""Ids or tags that a hint names."""


def _what_there_is(word: str, kind: str, known: list[str]) -> str:
    """What a filter may have meant, or some of the ids or tags that there are; nothing if one of them fits it."""
    if word in known or (kind != "tags" and any(re.search(word, one) for one in known)):
        return ""
    if len(word) > 2 and (meant := near_miss(word, known)) is not None:
        return f"; did you mean `{meant}`?"
    shown = ", ".join(f"`{one_line(one, 40)}`" for one in known[:MOST_NAMED]) or "none"
    return f"; {kind} here: {shown}{' …' if len(known) > MOST_NAMED else ''}"


def _check_filters(run: Path, options: Options) -> None:
    """Going on with a part of a run would end with the whole of it being called complete."""
    start, _ = bounds(run)
    for name in ("run", "tags"):
        before, now = (start.options.get(name) if start else None), getattr(options, name)
        if start is not None and before != now:
            flag = f"--{name} {before!r}" if before else f"no --{name}"
            raise load_error(
                "other-filter", f"the run {run.name} was started with {flag}", "go on with the same filter"
            )


def _named_hooks(plan: Plan, options: Options) -> Iterator[tuple[str, Path | None]]:
    """All hooks, those of cases with the folder of their file."""
    yield from ((one, None) for one in (options.before_all, options.after_all) if one)
    for unit in plan.units:
        yield from ((one, unit.source.folder) for one in sorted(unit.source.survey.hooks))
