"""ATP from Python: load a suite, run it, look at the results."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.base.project import find_root, keeping_working_directory
from atp.engine.prepare.options import Options
from atp.engine.prepare.prepare import prepare_suites
from atp.engine.run import Run
from atp.engine.signals import run_to_end
from atp.journal.listeners import Listener, RunEnd
from atp.loader.load import TestLoader
from atp.report.choose import Reads, reads, reports
from atp.report.protected import files_of_run
from atp.stats.suite_gates import GateResult
from atp.suite.result import CaseResult
from atp.suite.suite import Suite
from atp.usercode.importing import check_project_path

if TYPE_CHECKING:
    from atp.stats.comparison import Comparison

__all__ = ["Options", "Report", "load", "run", "run_sync"]


@dataclass(slots=True)
class Report:
    """The results of a run."""

    results: list[CaseResult] = field(default_factory=list)
    """A result for each case and agent, in the order they ended."""
    counts: dict[str, Any] = field(default_factory=dict)
    """The summary: `total`, `passed`, `failed`, `errors`, `skipped` …"""
    gates: Sequence[GateResult] = ()
    """What the gates came to."""
    exit_code: int = 0
    """What the command line would end with."""
    run: str = ""
    """The run's id."""
    folder: str = ""
    """The folder of its journal."""
    comparison: "Comparison | None" = None
    """How the run compares with `Options.baseline`, if that is given."""

    @property
    def passed(self) -> bool:
        """True if everything passed."""
        return self.exit_code == 0


class _Keep(Listener):
    def __init__(self, report: Report) -> None:
        self._report = report

    def case(self, result: CaseResult) -> None:
        self._report.results.append(result)

    def end(self, end: RunEnd) -> None:
        self._report.counts, self._report.exit_code = end.counts, end.exit_code
        self._report.gates = end.gates
        self._report.run, self._report.folder = end.info.id, end.info.folder
        self._report.comparison = end.comparison


def load(path: str | Path) -> Suite:
    """The suite in a file of any format. Raises `LoadError` when it can't be used."""
    check_project_path(find_root(Path(path)))
    return TestLoader().load_file(path)


async def run(suite: Suite | Sequence[Suite], options: Options | None = None) -> Report:
    """Run one or several suites.

    From the first run on, until the process ends, functions stand in place of `os._exit`, `os.abort`, `os.execv`,
    `os.execve`, `os.close`, `os.closerange`, `threading.Thread.start`, `_thread.start_new_thread` and
    `atexit.register`. They do what the real ones do, but keep code under test from ending the process, and what it
    starts and registers, too. They stay after the run: objects, threads and `atexit` functions that the code under test
    has left may call them until the interpreter ends.
    """
    return await _run(_prepare(suite, options))


def run_sync(suite: Suite | Sequence[Suite], options: Options | None = None) -> Report:
    """`run` for code that isn't async. Ctrl-C ends the run in good order, and is raised then."""
    prepared = _prepare(suite, options)
    report = run_to_end(_run(prepared), prepared.stop.interrupt, prepared.context.leave)
    if prepared.stop.interrupted:
        raise KeyboardInterrupt
    return report


def _prepare(suite: Suite | Sequence[Suite], options: Options | None) -> Run:
    return prepare_suites([suite] if isinstance(suite, Suite) else suite, options or Options())


async def _run(prepared: Run) -> Report:
    report = Report()
    if prepared.options.dry_run:
        report.counts["total"], report.counts["total_runs"] = prepared.plan.counts()
        return report
    listeners: list[Listener] = [_Keep(report)]
    read: Reads | None = None
    if prepared.options.output or prepared.options.reporter:
        read = reads(prepared.given_input, [unit.source for unit in prepared.plan.units], files_of_run(prepared))
        listeners += reports(prepared.options, read, prepared.secrets, prepared.roles)
    with keeping_working_directory():  # which the code under test may change, or delete
        report.exit_code = await prepared.run(listeners)
        if read is not None:
            read.protected.remember_reports()
    return report
