"""ATP from Python: load a suite, run it, look at the results."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atp.base.project import find_root
from atp.engine.prepare.options import Options
from atp.engine.prepare.prepare import plan_session
from atp.engine.prepare.setting import Setting
from atp.engine.prepare.settings import environment
from atp.engine.prepare.sources import Input, in_memory
from atp.engine.prepare.survey import Filter
from atp.engine.run import Session
from atp.engine.signals import run_to_end
from atp.engine.stop import Stop
from atp.journal.listeners import Listener, RunEnd
from atp.loader.load import TestLoader
from atp.report.choose import reads, reports
from atp.report.protected import of_session
from atp.suite.result import CaseResult
from atp.suite.suite import Suite

__all__ = ["Options", "Report", "load", "run", "run_sync"]


@dataclass(slots=True)
class Report:
    """What came of a run."""

    results: list[CaseResult] = field(default_factory=list)
    """A result for each case and agent, in the order they ended."""
    counts: dict[str, Any] = field(default_factory=dict)
    """The summary: `total`, `passed`, `failed`, `errors`, `skipped` …"""
    exit_code: int = 0
    """What the command line would end with."""
    run: str = ""
    """The run's id."""
    folder: str = ""
    """Where its journal is."""

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return self.exit_code == 0


class _Keep(Listener):
    def __init__(self, report: Report) -> None:
        self._report = report

    def case(self, result: CaseResult) -> None:
        self._report.results.append(result)

    def end(self, end: RunEnd) -> None:
        self._report.counts, self._report.exit_code = end.counts, end.exit_code
        self._report.run, self._report.folder = end.info.id, end.info.folder


def load(path: str | Path) -> Suite:
    """The suite in a file of any format. Raises `LoadError` when it can't be used."""
    return TestLoader().load_file(path)


async def run(suite: Suite | Sequence[Suite], options: Options | None = None) -> Report:
    """Run one or several suites."""
    session = _session(suite, options)
    return await _run(session, Stop(session.options))


def run_sync(suite: Suite | Sequence[Suite], options: Options | None = None) -> Report:
    """`run` for code that isn't async. Ctrl-C ends the run in good order, and is raised then."""
    session = _session(suite, options)
    stop = Stop(session.options)
    report = run_to_end(_run(session, stop), stop.interrupt, session.leave)
    if stop.interrupted:
        raise KeyboardInterrupt
    return report


async def _run(session: Session, stop: Stop) -> Report:
    report = Report()
    if session.options.dry_run:
        report.counts["total"], report.counts["total_runs"] = session.plan.counts()
        return report
    listeners: list[Listener] = [_Keep(report)]
    if session.options.output or session.options.reporter:
        read = reads(session.given_input, [unit.source for unit in session.plan.units], of_session(session))
        listeners += reports(session.options, read, session.secrets, session.roles)
    report.exit_code = await session.run(listeners, stop)
    return report


def _session(suite: Suite | Sequence[Suite], options: Options | None) -> Session:
    suites, options = [suite] if isinstance(suite, Suite) else list(suite), options or Options()
    given_input = Input(tuple(suite.path or suite.name for suite in suites))
    root = find_root(given_input.anchor)
    setting = Setting(options, Filter(options), root, environment(root, options.env_file))
    return plan_session(given_input, [in_memory(suite, setting.wanted.wants) for suite in suites], [], setting)
