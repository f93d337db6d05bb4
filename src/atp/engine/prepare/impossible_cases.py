"""Finds cases that can't run or mean nothing for their agents, before anything is loaded or run.

A run checks with the adapters of its agents, `atp validate` with what the files say about the agents.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from atp.base.diagnostics import Diagnostics, Place
from atp.base.errors import ConfigurationError
from atp.base.numbers import counted
from atp.base.project import is_below
from atp.checks.before_run import EARLIER_MESSAGES, met, unjudgeable
from atp.checks.verdicts import SHORT, show
from atp.engine.case_source import CaseSource
from atp.engine.named_agent import DescribedAgent
from atp.engine.prepare.options import Options
from atp.suite.agent import CustomConfig, PromptConfig


def check_cases(source: CaseSource, agents: Sequence[DescribedAgent], root: Path) -> Diagnostics:
    """Report cases that can't run: a missing workspace, a check that can't be decided, an agent that can't report."""
    survey = source.survey
    here = Diagnostics(source.suite.path)
    _warn_outside(source, root, here)
    _check_folders(source, root, here)
    for case, number, why in survey.pattern_mistakes:
        message = f"case `{case.id}`: {show(case.expectations[number], SHORT)}: {why}"
        here.error("regex", message, source.expectation_place(case, number), "fix the pattern")
    for agent in agents:
        _warn_of_near_misses(agent, here)
        doubtful = {one.index: one for (_, only), one in survey.doubtful.items() if agent.is_among(only)}
        for case in doubtful.values():
            for reason in unjudgeable(case, (agent.base, source.folder, root)):
                here.error("unjudgeable", f"case `{case.id}`: {reason}", case.place)
        for (need, only), examples in survey.needs.items():
            if met(need, agent.capabilities) or not agent.is_among(only):
                continue
            if need == EARLIER_MESSAGES:
                _check_history(agent, examples, here)
                continue
            for name, place in examples:
                message = f"case `{name}`: agent `{agent.agent.name}` can never report {need.why}"
                here.error("unobservable", message, place, _way_out(agent))
    if survey.narrowed and any(agent.ad_hoc for agent in agents):
        here.warn("agents-ignored", "tests' own `agents:` lists are ignored, because -n names another agent")
    return here


def unknown_connectors(
    source: CaseSource,
    agents: Sequence[DescribedAgent],
    options: Options,
    find: Callable[[str, str], Any],
    warnings: Diagnostics | None = None,
) -> Diagnostics:
    """Report connectors in the `options` of cases that prompt agents could not use. `find` raises for those.

    What `find` adds to `warnings` gets the place of a case.
    """
    here = Diagnostics(source.suite.path)
    replaced = options.given("connector") or len(options.connector) > 1
    if replaced or not any(isinstance(agent.agent.config, PromptConfig) for agent in agents):
        return here
    for connector, examples in source.survey.connectors.items():
        wanted = partial(find, connector, "the agent")
        report_missing(here, "no-connector", "its `options.connector`", examples, wanted, warnings)
    return here


def report_missing(
    notes: Diagnostics,
    code: str,
    what: str,
    examples: Sequence[tuple[str, Place]],
    find: Callable[[], Any],
    warnings: Diagnostics | None = None,
) -> None:
    """Call `find`, and report its error, and what it adds to `warnings`, at the first case that needs what it finds."""
    warned = len(warnings or ())
    try:
        find()
    except ConfigurationError as error:
        cases = dict(reversed(examples))  # a case may need the same thing several times
        for name, place in examples[:1]:
            more = f", and {counted(len(cases) - 1, 'more case')}" if len(cases) > 1 else ""
            notes.error(code, f"case `{name}`{more}: {what}: {error}", place, error.hint)
        if not examples:
            notes.error(code, f"{what}: {error}", hint=error.hint)
    if warnings and examples:
        place_warnings(warnings, warned, notes.file, examples[0][1])


def place_warnings(warnings: Diagnostics, first: int, file: str | None, place: Place) -> None:
    """Give the warnings from index `first` on, which were noted without a file, the place of what caused them."""
    for number in range(first, len(warnings)):
        one = warnings[number]
        warnings[number] = replace(one, file=file, line=max(place.line, 1), column=max(place.column, 1))


def check_hooks(
    named: Iterable[tuple[str, Path | None]],
    folders: tuple[Path, ...],
    root: Path,
    load: Callable[[str, Path | None], Any] | None = None,
) -> Diagnostics:
    """Report hooks that aren't there. `load` imports a hook, which runs the user's code.

    A hook with a folder is one of a case in a file there, and has to be a file of the project. Others are found in
    `folders`.
    """
    notes = Diagnostics()
    for name, folder in named:
        from atp.usercode.code_path import locate_function  # only few cases have hooks

        try:
            found = locate_function(name, folders if folder is None else (folder, *folders))
            if folder is not None and found is not None and not is_below(found, (root, folder)):
                raise ConfigurationError(f"{found} is outside of the project {root}", "move it into the project")
            if load is not None:
                load(name, folder)
        except ConfigurationError as error:
            notes.error("hook", f"hook `{name}`: {error}", hint=error.hint)
    return notes


def _warn_of_near_misses(agent: DescribedAgent, here: Diagnostics) -> None:
    """Warn of keys in the open `config` of a `custom` agent that ATP would have used if they were spelled right."""
    config = agent.agent.config
    for key, meant in config.near_misses() if isinstance(config, CustomConfig) else ():
        message = f"agent `{agent.agent.name}`: `{key}` is no key of ATP's, and is only handed to the function"
        here.warn("unknown-key", message, agent.agent.place_of(key), f"did you mean `{meant}`?")


def _warn_outside(source: CaseSource, root: Path, here: Diagnostics) -> None:
    """Warn of files that cases read from outside of the project: they are not there on another machine."""
    for what, named in (("workspace", source.survey.workspaces), ("attachment", source.survey.attachments)):
        for path, examples in named.items():
            if is_below(source.folder / path, (root, source.folder)):
                continue
            for name, place in examples:
                message = f"case `{name}`: its {what} {path} is outside of the project {root}"
                here.warn("outside-project", message, place, "copy it into the project")


def _check_folders(source: CaseSource, root: Path, here: Diagnostics) -> None:
    """Report folders that no trial can start with a copy of."""
    if not source.survey.workspaces and source.fixtures is None:
        return
    from atp.engine.seed_files import why_unusable  # only some suites have folders

    for folder, examples in source.survey.workspaces.items():
        path = source.folder / folder
        missing = None if path.is_dir() else f"there is no folder {folder} to start with"
        why = missing or why_unusable(path, root)
        for name, place in examples if why else ():
            here.error("no-such-folder" if missing else "unusable-folder", f"case `{name}`: {why}", place)
    if source.fixtures is not None and (why := why_unusable(source.fixtures, root)):
        here.error("unusable-folder", f"the files of `fixtures` can't be copied for each trial: {why}")


def _check_history(agent: DescribedAgent, examples: list[tuple[str, Place]], here: Diagnostics) -> None:
    """Report cases with earlier messages for an agent that only gets the newest: it would be asked something else."""
    if agent.gets_history:
        return
    how = "take `messages`" if agent.agent.type == "custom" else "have the agent take the whole conversation"
    hint = f"{how}; or say the messages as a chain; or run it all the same with `history: ignored` in its `config`"
    for name, place in examples:
        message = f"case `{name}`: agent `{agent.agent.name}` is never given {EARLIER_MESSAGES.why}, only the newest"
        here.error("no-history", message, place, hint)


def _way_out(agent: DescribedAgent) -> str:
    """Return the hint for an agent that can't report what a case needs."""
    speaks = hasattr(agent.agent.config, "protocol")
    return "drop the check, or set `protocol: atp`" if speaks else "drop the check"
