"""Runs that were never run: journals made by the journal's own writer from what their trials are to come to."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from atp.journal.records import FORMAT, RunInfo, Summary, Trial
from atp.journal.write import Journal
from atp.suite.result import CaseInfo, Transcript, TrialResult, Turn, Usage

DAY = 86_400.0
START = 1_750_000_000.0


def trial(case: str = "refund", status: Any = "passed", **given: Any) -> TrialResult:
    """A trial of a case, by default the first and only one of agent `desk`, which cost a cent and took a second."""
    usd, tokens = given.pop("usd", 0.01), given.pop("tokens", 100)
    transcript = Transcript(
        turns=[Turn(turn=1, input="Hello", output=f"{case}: {status}")],
        usage=Usage(total_tokens=tokens, cost_usd=usd),
    )
    usual = {
        "key": f"{case} {given.get('agent')} {given.get('variation')} {given.get('run')}",
        "agent": "desk",
        "case_digest": f"digest of {case}",
        "agent_digest": "digest of the agent",
        "duration_ms": 1000.0,
        "transcript": transcript,
    }
    return TrialResult(**{**usual, "case": case, "status": status, **given})


def make_run(
    root: Path,
    trials: Iterable[TrialResult],
    *,
    day: float = 0,
    file: str = "suite.yaml",
    ended: bool = True,
    **info: Any,
) -> Path:
    """The folder of a run that started some days after the first could, with these trials."""
    at = START + day * DAY
    cases: dict[tuple[str, str], list[TrialResult]] = {}
    for one in trials:
        cases.setdefault((one.agent, one.case), []).append(one)
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{len(list(root.glob('.atp/runs/*'))):03}0000"
    folder = root / ".atp" / "runs" / name
    journal = Journal(folder)
    agents = list(dict.fromkeys(agent for agent, _ in cases))
    usual = {"id": name, "at": at, "version": "1", "identity": [file], "agents": agents, "cases": len(cases)}
    journal.write(RunInfo(**{"format": FORMAT, "directory": ".", **usual, **info}))
    for index, some in enumerate(cases.values()):
        for number, one in enumerate(some):
            one.index, one.started_at = index, at + 1
            about = CaseInfo(planned=len(some), planned_runs=max(each.run for each in some)) if number == 0 else None
            journal.write(Trial(result=one, file=file, about=about))
    if ended:
        journal.write(Summary(at=at + 60, complete=True, counts=_counts(cases.values())))
    journal.close()
    return folder


def _counts(cases: Iterable[Sequence[TrialResult]]) -> dict[str, Any]:
    """What the journal's reader counts, too: a summary that says something else makes a run look damaged."""
    from atp.journal.collect import Collector
    from atp.stats.summary import Summary as Counts

    counts = Counts()
    for some in cases:
        collector = Collector()
        about = CaseInfo(planned=len(some), planned_runs=max(each.run for each in some))
        for one in some:
            if (case := collector.add_read(0, None, one.index, one, about)) is not None:
                counts.add_case(case)
    return counts.counts()
