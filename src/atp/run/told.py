"""From the lines of a journal to what listeners are told of a run, the same when it ends and long after."""

from pathlib import Path

from atp.run.journal import Start, Summary
from atp.run.listener import RunEnd, RunInfo


def run_info(start: Start, folder: Path) -> RunInfo:
    """How a run began, or last went on."""
    return RunInfo(
        id=start.run,
        folder=str(folder),
        input=start.given or start.input,
        agents=start.agents,
        cases=start.cases,
        trials=start.trials,
        runs=start.runs,
        started_at=start.at,
        version=start.version,
        environment=start.environment,
        connector=start.connector,
        parallel=start.parallel,
        resumed=start.kept,
        notes=tuple(start.notes),
        files=tuple(start.files),
        options={name: value for name, value in start.options.items() if start.flags is None or name in start.flags},
    )


def run_end(info: RunInfo, line: Summary) -> RunEnd:
    """How it ended."""
    return RunEnd(
        info=info,
        counts=line.counts,
        ended_at=line.at,
        duration_ms=round((line.at - info.started_at) * 1000, 3),
        reason=line.reason,
        exit_code=line.exit_code,
        exhausted=line.exhausted,
    )
