"""From the lines of a journal to what listeners are told of a run, the same when it ends and long after."""

from pathlib import Path

from atp.journal.journal import Line, Start, Summary, Trial
from atp.journal.listeners import RunEnd, RunInfo


class Sessions:
    """When a run began and how long it took, told by its journal: each time that it went on, a `Start` begins anew."""

    def __init__(self) -> None:
        self.began_at: float | None = None
        """When it first began."""
        self.earlier_ms = 0.0
        """How long it took before it last went on."""
        self._start = 0.0
        self._last = 0.0

    def see(self, line: Line) -> None:
        """The next line. What was killed wrote no summary: then the last trial tells when it ended."""
        if isinstance(line, Start):
            self.earlier_ms += self.session_ms
            self._start = self._last = line.at
            if self.began_at is None:
                self.began_at = line.at
        elif isinstance(line, Trial):
            self._last = max(self._last, line.result.started_at + line.result.duration_ms / 1000)
        elif isinstance(line, Summary):
            self._last = line.at

    @property
    def session_ms(self) -> float:
        """How long it took since it last went on."""
        return (self._last - self._start) * 1000


def run_info(start: Start, folder: Path, sessions: Sessions) -> RunInfo:
    """How a run began, and last went on."""
    return RunInfo(
        id=start.run,
        folder=str(folder),
        input=start.given or start.input,
        agents=start.agents,
        cases=start.cases,
        trials=start.trials,
        runs=start.runs,
        started_at=start.at if sessions.began_at is None else sessions.began_at,
        version=start.version,
        environment=start.environment,
        connector=start.connector,
        parallel=start.parallel,
        varied=start.varied,
        resumed=start.kept,
        resumed_at=start.at if start.resumed else None,
        earlier_ms=sessions.earlier_ms,
        notes=tuple(start.notes),
        files=tuple(start.files),
        options={name: value for name, value in start.options.items() if start.flags is None or name in start.flags},
    )


def run_end(info: RunInfo, line: Summary) -> RunEnd:
    """How it ended. The time between two parts of a run is nobody's."""
    since = info.started_at if info.resumed_at is None else info.resumed_at
    return RunEnd(
        info=info,
        counts=line.counts,
        ended_at=line.at,
        duration_ms=round(info.earlier_ms + (line.at - since) * 1000, 3),
        reason=line.reason,
        exit_code=line.exit_code,
        exhausted=line.exhausted,
    )
