"""Chooses the listeners of a run: the reports that the options ask for, and the console."""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from atp.base.diagnostics import Diagnostics, LoadError
from atp.base.errors import ConfigurationError
from atp.engine.case_source import CaseSource
from atp.engine.prepare.options import Options
from atp.engine.prepare.sources import Input
from atp.engine.role_clients import RoleClients
from atp.journal.listeners import Listener
from atp.report.console.console import Answer, Console, ConsoleOptions
from atp.report.console.page import PlainPage
from atp.report.formats.github import Annotations, StepSummary, in_github
from atp.report.formats.jsonl import JsonlReport
from atp.report.formats.tps import TpsReport, tps_path, tps_reports
from atp.report.protected import Protected, real
from atp.report.reporter import REPORTERS, Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a run reads, as far as its reports depend on that."""

    message: bool = False
    """The input is a message and nothing else: direct-message mode."""
    jsonl: Path | None = None
    """The JSONL file, if that is all that was given."""
    files: tuple[Path, ...] = ()
    """All test files."""
    markdown: tuple[CaseSource, ...] = ()
    """The Markdown files: a TPS report is written for each."""
    protected: Protected = field(default_factory=Protected, compare=False)
    """What else no report may overwrite."""


def reads(given: Input, sources: Sequence[CaseSource], protected: Protected | None = None) -> Reads:
    """Collect the files that a run reads, which no report may overwrite; `protected` has those beside the input."""
    files = tuple(Path(one.suite.path) for one in sources if one.suite.path)
    named = [Path(text) for text in (*given.paths, *given.texts)]
    single = len(sources) == len(files) == len(named) == 1 and sources[0].suite.dialect == "jsonl"
    return Reads(
        message=bool(sources) and all(one.suite.dialect == "message" for one in sources),
        jsonl=named[0] if single and named[0].suffix.lower() == ".jsonl" and named[0].is_file() else None,
        files=files,
        markdown=tuple(one for one in sources if one.suite.dialect == "markdown"),
        protected=protected or Protected(),
    )


def choose(
    options: Options,
    given: Reads,
    secrets: Sequence[str] = (),
    command: str = "atp test",
    now: float | None = None,
    *,
    roles: RoleClients | None = None,
) -> list[Listener]:
    """The listeners of a run. Raises `LoadError` for a report that can't be made or written, before anything runs.

    `roles` has the agents that can write reports.
    """
    notes = Diagnostics("<command line>")
    reporters = _reporters(options, given, secrets, notes, roles)
    taken = any(one.path is None for one in reporters)
    if options.json_events and taken:
        notes.error("stdout-twice", "--json and -r both write to stdout", hint="write the report to a file, with -o")
    if notes:
        raise LoadError(notes)
    given.protected.reports = [one.path for one in reporters if one.path is not None]
    if not options.output and given.jsonl is not None:
        reporters.append(JsonlReport(default_path(given.jsonl, now), secrets, fresh=True))
    if options.json_events:
        reporters.append(JsonlReport(None, secrets))
    elif given.message and not options.output and not taken:
        reporters.append(Answer(None, secrets))
        taken = True
    reporters += tps_reports(given.markdown, secrets, options)
    listeners: list[Listener] = [*reporters]
    if in_github() and (page := os.environ.get("GITHUB_STEP_SUMMARY")):
        listeners.append(StepSummary(Path(page), secrets))
    look = ConsoleOptions(
        quiet=options.quiet, warns=True, verbose=options.verbose, command=command, secrets=secrets, reports=reporters
    )
    if not options.json_events and (stream := sys.stderr if taken else sys.stdout) is not None:
        # A progress line would get between the lines of what is on stdout, if both are on the same terminal.
        alone = not (taken and sys.stdout is not None and sys.stdout.isatty())
        listeners.append(console(stream, look, live=alone))  # last, so that the reports are written when it names them
        listeners += [Annotations(stream, secrets)] if in_github() else []
    return listeners


def reports(
    options: Options,
    given: Reads,
    secrets: Sequence[str] = (),
    roles: RoleClients | None = None,
    where: str = "<options>",
) -> list[Reporter]:
    """Only the reports that `output` and `reporter` ask for; `where` is the place that problems name."""
    notes = Diagnostics(where)
    made = _reporters(options, given, secrets, notes, roles)
    if notes:
        raise LoadError(notes)
    given.protected.reports = [one.path for one in made if one.path is not None]
    return made


def console(stream: TextIO, look: ConsoleOptions, *, live: bool = True) -> Console:
    """The console: live on a terminal, plain lines elsewhere."""
    if live and stream.isatty() and not look.quiet and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        from atp.report.console.live import LiveConsole

        return LiveConsole(stream, look)
    return Console(PlainPage(stream), look)


def default_path(file: Path, now: float | None = None) -> Path:
    """The default of the JSONL test package: beside the input, with the local time."""
    stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now))
    return file.parent / f"output-{stamp}.jsonl"


Make = Callable[[Path | None, Sequence[str]], Reporter]


def _named(options: Options, notes: Diagnostics, roles: RoleClients | None) -> Make | None:
    """What `-r` names: a registered reporter, or an agent or model of the project."""
    name = options.reporter
    if name is None:
        return None
    found = REPORTERS.find(name)
    if found is not None:
        return found
    hint, why = f"use {', '.join(REPORTERS.formats)}, or an agent of the project", "there is no such reporter"
    if roles is not None:
        from atp.report.formats.agent import AgentReport

        try:
            client = roles.client(name, "reporter", None)
            return lambda path, secrets: AgentReport(path, secrets, client, options)
        except ConfigurationError as error:
            why, hint = f"it can't be called: {error}", error.hint or hint
    notes.error("unknown-reporter", f"-r {name}: {why}", hint=hint)
    return None


def _reporters(
    options: Options, given: Reads, secrets: Sequence[str], notes: Diagnostics, roles: RoleClients | None
) -> list[Reporter]:
    """The reports. `-r` is for the first `-o`, or for stdout; other files get the format of their extension."""
    named = _named(options, notes, roles)
    made: list[Reporter] = []
    taken: dict[Path, str] = {real(file): "it is a test file of this run" for file in given.files}
    taken |= {real(path): "a TPS report is written there" for path in map(tps_path, given.files) if path}
    for number, text in enumerate(options.output):
        path = Path(text)
        by_name = options.reporter and not number
        kind = named if by_name else _by_ending(path, options, given)
        if kind is None and not by_name:
            hint = f"use {', '.join(REPORTERS.extensions)}"
            notes.error("unknown-report-format", f"-o {text}: {_why_none(path)}", hint=hint)
        elif why := taken.get(real(path)) or given.protected.why(path) or _unwritable(path):
            make = f"make the folder: mkdir -p {shlex.quote(str(path.parent))}"
            hint = "name another file" if os.path.lexists(path.parent) else make
            notes.error("unwritable-report", f"-o {text}: {why}", hint=hint)
        elif kind is not None:
            made.append(kind(path, secrets))
        taken[real(path)] = "two reports can't have the same file"
    if not options.output and given.jsonl is not None and (why := _unwritable(default_path(given.jsonl))):
        notes.error("unwritable-report", f"the report beside {given.jsonl}: {why}", hint="name another file with -o")
    if named and not options.output:
        made.append(named(None, secrets))
    return made


def _by_ending(path: Path, options: Options, given: Reads) -> Make | None:
    if not _is_tps(path):
        return REPORTERS.for_file(path)
    if len(given.markdown) != 1:
        return None
    return lambda at, secrets: TpsReport(given.markdown[0], secrets, options, at)


def _why_none(path: Path) -> str:
    if _is_tps(path):
        return (
            "a TPS report is about one .test.md file as it runs; it is also written beside each without being asked for"
        )
    return f"no report is called *{path.suffix}" if path.suffix else "its name has no extension"


def _is_tps(path: Path) -> bool:
    return path.name.lower().endswith(".tps.json")


def _unwritable(path: Path) -> str | None:
    """Why a report can't be written there, if that is known beforehand. Leaves nothing behind."""
    try:
        os.stat(path)
        there = True
    except (FileNotFoundError, NotADirectoryError):
        there = False
    except OSError as error:  # a link that leads in a circle, a name that is too long
        return (error.strerror or str(error)).lower()
    if os.path.isdir(path):
        return "it is a folder"
    if there:
        return None if os.access(path, os.W_OK) else "there is no permission to write it"
    folder = real(path).parent if os.path.islink(path) else path.parent
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"there is no permission to write to {folder}"
    try:
        with tempfile.TemporaryFile(dir=folder):  # some folders refuse, whatever their permissions are
            return None
    except OSError as error:
        return f"no file can be made in {folder}: {(error.strerror or str(error)).lower()}"
