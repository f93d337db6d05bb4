"""Going on with a run: what it has done already, and what has to be done again."""

from pathlib import Path

from atp.loader.diagnostics import Diagnostics, LoadError
from atp.run.folder import all_runs, bounds
from atp.run.journal import NAME, Trial, decode_trial, mend, read_lines
from atp.run.places import runs_folder
from atp.suite.result import TrialResult

AGAIN = frozenset({"error", "blocked", "cancelled"})
"""Statuses that say nothing of the agent: such a trial runs again."""


class Done:
    """The trials of a run that need not run again, by key."""

    def __init__(self, journal: Path | None = None) -> None:
        self._offsets: dict[str, int] = {}
        self._file = journal.open("rb") if journal else None
        if journal is not None:
            for offset, line in read_lines(journal):
                if isinstance(line, Trial):
                    if line.result.status in AGAIN:
                        self._offsets.pop(line.result.key, None)
                    else:
                        self._offsets[line.result.key] = offset

    def __bool__(self) -> bool:
        return bool(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def get(self, key: str) -> TrialResult | None:
        """The result of a trial that is done."""
        offset = self._offsets.get(key)
        if offset is None or self._file is None:
            return None
        self._file.seek(offset)
        return decode_trial(self._file.readline())

    def close(self) -> None:
        """Let go of the journal."""
        if self._file is not None:
            self._file.close()


def find_unfinished(root: Path, identity: list[str]) -> Path:
    """The newest run of the same input that did not come to its end."""
    for run in all_runs(root):
        start, summary = bounds(run)
        if start is not None and start.input == identity and (summary is None or not summary.complete):
            return run
    raise _nothing("there is no unfinished run of this input", "run it without --resume, or name a run: atp runs")


def find_run(root: Path, name: str) -> Path:
    """A run by its id, or the beginning of one."""
    found = [run for run in all_runs(root) if run.name.startswith(name)]
    if len(found) != 1:
        known = "several runs begin so" if found else "there is no such run"
        raise _nothing(f"{name}: {known} in {runs_folder(root)}", "atp runs lists them")
    return found[0]


def last_failures(root: Path, identity: list[str]) -> set[tuple[str, str]]:
    """The (agent, case) pairs that did not pass in the newest run of the same input."""
    for run in all_runs(root):
        start, _ = bounds(run)
        if start is None or start.input != identity:
            continue
        newest = {_identity(line): line.result for _, line in read_lines(run / NAME) if isinstance(line, Trial)}
        failed = {(one.agent, one.case) for one in newest.values() if one.status not in ("passed", "skipped")}
        if failed:
            return failed
        if not newest:
            continue  # it came to nothing
        raise _nothing(f"everything passed in the last run ({run.name})", "run it without --only-failed")
    raise _nothing("this input has not been run yet", "run it without --only-failed")


def _identity(line: Trial) -> tuple[str, str, str, int, int]:
    """What makes it the same trial, also after its case or agent was edited."""
    result = line.result
    return line.file, result.agent, result.case, result.variation, result.run


def cut_torn_line(run: Path) -> int:
    """Cut off what a crash left half written. Returns how many bytes that were."""
    return mend(run / NAME)


def _nothing(message: str, hint: str) -> LoadError:
    notes = Diagnostics()
    notes.error("nothing-to-resume", message, hint=hint)
    return LoadError(notes)
