"""Before a run: everything is loaded, planned and checked, so that what is wrong is known before anything runs."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atp.agents.registry import make_adapter
from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, refused
from atp.base.errors import ConfigurationError
from atp.base.project import find_root
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Plan
from atp.engine.prepare.planning import make_plan
from atp.engine.prepare.resume import find_run, find_unfinished, last_failures
from atp.engine.prepare.roles import check_roles
from atp.engine.prepare.setting import Setting
from atp.engine.prepare.settings import environment, misnamed, resolve_options
from atp.engine.prepare.sources import CaseSource, Input, is_reference, open_input
from atp.engine.prepare.survey import Filter
from atp.engine.run import Session
from atp.engine.trial.hooks import Hooks
from atp.journal.folder import sweep
from atp.journal.read import bounds
from atp.loader.source import LoadContext
from atp.usercode.environment import lent


def prepare(given_input: Input, flags: Mapping[str, Any]) -> Session:
    """Load, plan and check. Raises `LoadError`, with everything that is wrong, before anything runs."""
    root = find_root(given_input.anchor)
    env = environment(root, flags.get("env_file"))
    options = resolve_options(flags, root, env)
    given = LoadContext(
        env=env,
        agent=options.given("name") and bool(options.name),
        spare_agent=bool(options.name),
        simulator=bool(options.simulator),
        assessor=bool(options.assessor),
    )
    setting = Setting(options, Filter(options), root, env)
    sources, found = open_input(given_input, given, setting.wanted.wants)
    for text in filter(is_reference, given_input.texts):
        from atp.engine.prepare.generating import generate_source

        source, said = generate_source(text, given, setting)
        sources.append(source)
        found += said
    return plan_session(given_input, sources, [*misnamed(env), *found], setting)


def plan_session(given_input: Input, sources: list[CaseSource], found: list[Diagnostic], setting: Setting) -> Session:
    """Plan the run of suites that are loaded."""
    options, root = setting.options, setting.root
    if options.only_failed:
        setting.wanted.only = last_failures(root, given_input.identity)
    marker = secrets.token_hex(8)
    roles = setting.roles(marker)
    with lent(setting.env):
        plan = make_plan(sources, options, setting.wanted, root, make_adapter, roles.around)
    check_roles(plan, roles)
    found = [*found, *plan.warnings, *dict.fromkeys(roles.notes)]
    if options.strict and found:
        raise LoadError(found)
    if not any(unit.source.survey.count or unit.source.survey.skipped for unit in plan.units):
        raise refused("nothing-to-run", "no case is left to run", _what_left_none(options))
    with lent(setting.env):
        hooks = _load_hooks(plan, options, Hooks((Path.cwd(), given_input.anchor, root)))
    session = Session(
        options=options,
        root=root,
        given_input=given_input,
        plan=plan,
        marker=marker,
        warnings=found,
        roles=roles,
        env=setting.env,
        hooks=hooks,
    )
    roles.hide(session.secrets)
    if not options.dry_run:
        sweep(root)
        if options.resume_from:
            session.resumes = find_run(root, options.resume_from)
        elif options.resume:
            session.resumes = find_unfinished(root, given_input.identity)
        if session.resumes is not None:
            _check_filters(session.resumes, options)
    return session


def _what_left_none(options: Options) -> str:
    """Why no case may be left, in the words of who chose."""
    given = {"--run": options.run, "--tags": options.tags, "--only-failed": options.only_failed}
    flags = [flag if value is True else f"{flag} {value}" for flag, value in given.items() if value]
    return f"none fits {' and '.join(flags)}" if flags else "there is no case in the files"


def _check_filters(run: Path, options: Options) -> None:
    """Going on with a part of a run would end with the whole of it being called complete."""
    start, _ = bounds(run)
    for name in ("run", "tags"):
        before, now = (start.options.get(name) if start else None), getattr(options, name)
        if start is not None and before != now:
            flag = f"--{name} {before!r}" if before else f"no --{name}"
            raise refused("other-filter", f"the run {run.name} was started with {flag}", "go on with the same filter")


def _load_hooks(plan: Plan, options: Options, hooks: Hooks) -> Hooks:
    """Load all hooks that are named: one that isn't there should be known before anything runs."""
    notes = Diagnostics()
    named: list[tuple[str, Path | None]] = [(one, None) for one in (options.before_all, options.after_all) if one]
    named += [(one, unit.source.folder) for unit in plan.units for one in sorted(unit.source.survey.hooks)]
    for name, folder in named:
        try:
            hooks.load(name, folder)
        except ConfigurationError as error:
            notes.error("hook", f"hook `{name}`: {error}", hint=error.hint)
    if notes:
        raise LoadError(notes)
    return hooks
