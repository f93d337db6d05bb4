"""The console: each case that did not pass as it ends, and the summary.

With `-v` it has the form of the JSONL format, which lists every case.
"""

import math
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from atp.base.json.text import whole_text
from atp.base.numbers import counted
from atp.base.secrets import hider
from atp.base.streams import own_streams
from atp.base.text import INFO, Line, harmless, one_line, some_lines, without_commands
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import NAME, RunInfo
from atp.report.console.case_text import case_lines, explained, title
from atp.report.console.page import Page
from atp.report.console.summary_text import THICK, Notable, Used, agent_lines, heading, summary_lines
from atp.report.facts import judge_differs, response, runs_per_case
from atp.report.files import LineStream, open_stdout
from atp.report.reporter import Reporter
from atp.report.rerun import run_command, run_name
from atp.report.side_by_side import SideBySide
from atp.report.totals import AgentTotals
from atp.stats.group_figures import run_groups
from atp.suite.case import Case
from atp.suite.result import CaseResult

MOST_REPEATED = 20
"""How many failures are listed again at the end."""
MOST_DETAILED = 50
"""How many failures are shown with their checks, unless all cases are listed. Later ones have a line each."""
MOST_LISTED = 300
"""How many failures are listed at all, unless all cases are."""
MOST_COUNTS = 10
"""How often a console without a progress line says how far the run is."""
COUNTED_CASES = 10
"""It says so after no fewer cases than this."""
MOST_FILES = 5
"""How many files the head names."""
_BLANK: Line = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """What the console shows."""

    quiet: bool = False
    """Show only the summary."""
    warns: bool = False
    """Where the head is left out, its notes go to stderr: not for a run that is shown again."""
    verbose: int = 0
    """1: list every case, in the form of the JSONL format; 2: with conversations."""
    command: str | None = None
    """The command line, to show how to go on; None for the command that the run recorded."""
    secrets: Sequence[str] = ()
    """The secrets to mask."""
    reports: Sequence[Reporter] = ()
    """The reports of the run, to name their files."""


class Console(Listener):
    """Prints the cases that did not pass as they end, or with `verbose` all of them, and the summary."""

    counts_up: ClassVar[bool] = True
    """Whether the console says now and then how far the run is; not where a progress line does."""

    def __init__(self, page: Page, look: ConsoleOptions) -> None:
        self._page = page
        self._look = look
        self._hide = hider(look.secrets)
        self._several = False
        self._several_files = False
        self._lists_all = look.verbose > 0
        self._planned = 0
        self._cases = 0
        self._bad = 0
        self._explained: list[Line] = []
        self._notable = Notable(all_listed=look.verbose > 0)
        self._used = Used()
        self._by_agent = AgentTotals()
        self._grid = SideBySide(self._hide)

    @property
    def problems(self) -> Sequence[str]:
        """What could not be printed."""
        return self._page.problems

    def start(self, info: RunInfo) -> None:
        """Print the head: what is tested, and how."""
        self._several = len(info.agents) > 1
        self._by_agent.start(info)
        self._grid.start(info)
        self._several_files = len(info.files) > 1
        self._planned = info.cases
        if not self._look.quiet:
            lines = [*_about(info, self._look), _BLANK]
            if self._lists_all:
                lines = [THICK, ("  Agent Test", "title"), THICK, *lines, *heading("Running Tests"), _BLANK]
            self._page.show(lines)
        elif self._look.warns:
            _, stderr = own_streams()
            for note in info.notes:
                with suppress(OSError, ValueError):  # nobody reads stderr, or it is closed
                    print(f"atp: {one_line(hider(self._look.secrets)(note))}", file=stderr, flush=True)

    def skipped(self, file: str | None, case: Case) -> None:
        """Print a case that is left out."""
        if not self._look.quiet and self._lists_all:
            why = some_lines(self._hide(case.skip_reason or ""), "  ")
            self._page.show([(f"- {title(case.name, case.id, self._hide)} (skipped)", "other"), *why, _BLANK])

    def case(self, result: CaseResult) -> None:
        """Print a case that ended."""
        self._cases += 1
        self._notable.add(result)
        if self._several:
            self._by_agent.add(result)
            self._grid.case(result)
        for trial in result.trials:
            self._used.add(trial)
        bad = result.status not in ("passed", "skipped")
        self._bad += bad
        if bad and self._bad <= MOST_REPEATED:
            details = self._look.quiet
            self._explained += explained(result, self._hide, name_agent=self._several, details=details)
        if not self._look.quiet:
            lines = [*self._case_lines(result), _BLANK] if self._lists_all else self._compact_lines(result, bad)
            if lines:
                self._page.show(lines)

    def _case_lines(self, result: CaseResult) -> list[Line]:
        return case_lines(
            result, self._hide, name_agent=self._several, name_file=self._several_files, detail=self._look.verbose
        )

    def _compact_lines(self, result: CaseResult, bad: bool) -> list[Line]:
        """A case and its checks if it is one of the first failures, one line for later ones, none if it passed.

        A case that passed is shown if the judge contradicts itself about it, which takes a person to look at.
        """
        lines: list[Line] = []
        if (bad or judge_differs(result)) and self._bad <= MOST_DETAILED:
            lines = [*self._case_lines(result), _BLANK]
        elif bad and self._bad <= MOST_LISTED:
            lines = explained(result, self._hide, name_agent=self._several)
        elif bad and self._bad == MOST_LISTED + 1:
            lines = [("  … later failures are counted, and stand in the reports", "detail")]
        if self._counts_now():
            lines.append((f"  {self._cases:,} of {counted(self._planned, 'case')}, {self._bad:,} not passed", "detail"))
        return lines

    def _counts_now(self) -> bool:
        """True if it is time to say how far the run is. After the last case the summary says it."""
        step = max(COUNTED_CASES, math.ceil(self._planned / MOST_COUNTS))
        return self.counts_up and self._cases % step == 0 and self._cases < self._planned

    def end(self, end: RunEnd) -> None:
        """Print the summary, where the reports are, and how to go on."""
        notable = self._notable.lines(self._hide, name_agent=self._several)
        rates = run_groups(end.numbers).agents
        agents = agent_lines(self._by_agent, self._hide, self._grid, rates) if self._several else []
        lines = summary_lines(end, self._hide, [*agents, *self._used.lines(), *notable])
        if self._explained:
            lines += [_BLANK, *self._explained]
            if self._bad > MOST_REPEATED:
                lines.append((f"  … and {self._bad - MOST_REPEATED} more", "detail"))
        if end.comparison is not None:
            from atp.report.compare.text import comparison_lines

            compared = comparison_lines(end.comparison, self._hide, verbose=self._lists_all)
            lines += [_BLANK, *heading("Compared with the baseline"), *compared]
        notes: list[Line] = [(f"{INFO} {one_line(self._hide(note), 1000)}", "info") for note in end.notes]
        self._page.show([*lines, _BLANK, *notes, *_where(end, self._look)])
        self._page.close()


def _about(info: RunInfo, look: ConsoleOptions) -> list[Line]:
    hide = hider(look.secrets)
    given = ", ".join(one_line(hide(one), 120) for one in info.input)
    found = [
        f"Agent{'s' if len(info.agents) > 1 else ''}: {', '.join(one_line(hide(name), 80) for name in info.agents)}",
        f"Input: {given} ({counted(info.cases, 'test case')}{_in_files(info)})",
    ]
    if info.files and any(map(os.path.isdir, info.input)):
        found.append(f"Found: {_some_names([one_line(hide(one), 120) for one in info.files])}")
    if info.connector:
        found.append(f"Connector: {one_line(hide(info.connector))}")
    if info.trials != info.cases:
        found.append(f"Trials: {info.trials} ({_axes(info)})")
    if info.parallel > 1:
        found.append(f"Parallel: {info.parallel}")
    if info.resumed:
        found.append(f"Resumed: {info.resumed} of {counted(info.trials, 'trial')} taken over from run {info.id}")
    found.extend(one_line(hide(note)) for note in info.notes)
    return [(f"{INFO} {text}", "info") for text in found]


def _in_files(info: RunInfo) -> str:
    return f" in {len(info.files)} files" if len(info.files) > 1 else ""


def _some_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_FILES
    return ", ".join(names[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")


def _axes(info: RunInfo) -> str:
    """Why there are more trials than cases. How far cases differ in runs and variations isn't known before they run."""
    if info.adaptive:
        each = f"up to {info.runs} runs each, as many as it takes to decide"
        return f"variations × {each}" if info.varied else each
    if not info.varied and info.trials <= info.cases * info.runs:
        return f"{'up to ' if runs_per_case(info) is None else ''}{info.runs} runs each"
    return f"variations × up to {info.runs} runs" if info.runs > 1 else "variations"


def _where(end: RunEnd, look: ConsoleOptions) -> list[Line]:
    """Where the reports and the journal are, and the command that goes on."""
    hide = hider(look.secrets)
    command = look.command or run_command(end.info, hide)
    found = [f"Report: {one_line(str(one.path))}" for one in look.reports if one.path and not one.problems]
    found.append(f"Journal: {one_line(hide(end.info.folder))}/{NAME}")
    if end.info.rechecks is not None:
        if end.reason and not end.damaged:
            found.append(f"Begin again with: {one_line(hide(command), 1000)}")
        elif not end.reason and run_name(end.info) == end.info.id:
            found.append(f"What changed: atp compare {end.info.rechecks} {end.info.id}")
    elif end.reason and not end.damaged:
        found.append(f"Go on with: {one_line(hide(_again(command, end.exhausted)), 1000)}  (run {end.info.id})")
    elif end.counts["passed"] < end.counts["total"] - end.counts["skipped"]:
        found.append(f"Only what failed: {one_line(hide(_only_failed(command)), 1000)}")
        if not look.reports:
            found.append(f"Full report: atp report {one_line(hide(run_name(end.info)), 1000)} -o report.html")
    return [(f"{INFO} {text}", "info") for text in found]


def _only_failed(command: str) -> str:
    """The command that runs again what failed, without `-o`: its report on a part would replace that of the run."""
    command = _without_flag(command, "-o", "--output")
    return command if "--only-failed" in command else f"{command} --only-failed"


def _again(command: str, exhausted: str | None) -> str:
    """The command that resumes the run. An exhausted budget would stop the run again, so it must be raised."""
    if exhausted is not None:
        flag = f"--{exhausted.replace('_', '-')}"
        command = f"{_without_flag(command, flag)} {flag} MORE"
    return command if "--resume" in command else f"{command} --resume"


def _without_flag(command: str, *flags: str) -> str:
    """The command without flags that take a value: `--flag value`, `--flag=value`, `-fvalue`."""
    words = shlex.split(command)
    kept, rest = [], iter(words)
    joined = tuple(f"{one}=" if one.startswith("--") else one for one in flags)
    for word in rest:
        if word in flags:
            next(rest, None)
        elif not word.startswith(joined):
            kept.append(word)
    return command if kept == words else shlex.join(kept)  # `cd … && atp …` must stay as it is


class Answer(Reporter):
    """Prints the answer of each trial to stdout, and nothing else: direct-message mode without `-o`."""

    def case(self, result: CaseResult) -> None:
        """Print the answers, without what could steer a terminal."""
        for trial in result.trials:
            if trial.transcript.turns and not self.problems:
                text = without_commands(whole_text(harmless(response(self.hide(trial.transcript.output)))))
                try:
                    LineStream(open_stdout()).write(text.encode() + b"\n")
                except OSError as error:
                    self.problem(error)
