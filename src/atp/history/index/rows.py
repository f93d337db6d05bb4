"""Makes the rows of a run: while the run runs, or from its journal. One class for both, so that they can't differ."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import fsum, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from atp.base.secrets import current_secrets
from atp.history.figures import project_path
from atp.history.index.schema import ALL_AGENTS, CaseRow, key_of, storable
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.stats.averages import mean, median
from atp.stats.case_counts import case_counts
from atp.stats.group_figures import rate_figures
from atp.stats.stability import is_judged
from atp.suite.metrics import measured
from atp.suite.result import CaseResult

if TYPE_CHECKING:
    from atp.stats.flaky import FlakyBlame

State = Literal["running", "finished", "stopped"]
"""What has become of a run; one that was killed was stopped, too."""
Kind = Literal["all", "part", "failed", "recheck"]
"""What a run is evidence of: all cases of its input, those that a filter chose, those that had failed before, or no
agent at all, because it judged the conversations of another run again."""
BLAMES: "tuple[FlakyBlame | None, ...]" = (None, "agent or judge", "agent", "simulator", "judge")
"""Whose fault it is that runs of a case differ, by the number that the index has: the surer, the higher."""
_MOST = 2**53
_PACK = msgspec.msgpack.Encoder()
_UNPACK = msgspec.msgpack.Decoder(tuple[CaseRow, tuple[Any, ...]])


class Spent:
    """What the cases of an agent, or of all, used, and how many of them passed."""

    def __init__(self) -> None:
        self.cases = self.passed = self.runs = self.passed_runs = 0
        self.cost_usd: float | None = None
        """What the agents said they cost; None if none said anything."""
        self.roles_usd: float | None = None
        """What judging and simulating cost."""
        self.tokens: float | None = None
        """What the agents said they read and wrote."""


class RunRows(Listener):
    """Collects the rows of a run as its cases end. They are packed: a run may have a hundred thousand cases."""

    def __init__(self) -> None:
        self.info: RunInfo | None = None
        """How the run started; None before it did."""
        self.run_end: RunEnd | None = None
        """How the run ended; None before it did."""
        self.finished = 0
        """Cases of which no trial is missing."""
        self.spent: dict[str, Spent] = {}
        """By agent."""
        self._is_recheck = False
        self._packed = bytearray()
        self._keys: set[int] = set()
        self._doubles: Counter[int] = Counter()
        """By the key of a case: how many others have the same file, id and agent."""
        self._file = lru_cache(64)(self._find_file)

    def start(self, info: RunInfo) -> None:
        """Remember where the run came from."""
        self.info = info
        self._is_recheck = info.rechecks is not None

    def skipped(self, *_: Any) -> None:
        """Count a case that its file leaves out: there is nothing left to do for it."""
        self.finished += 1

    def case(self, result: CaseResult) -> None:
        """Add a case. One that asked to be left out when it ran has no row."""
        self.finished += not (result.missing or result.stopped_by == "interrupted")
        if result.status == "skipped" or self.info is None:
            return
        counts = case_counts(result)
        passed, judged, errors = counts.total
        runs = len(result.counted)
        spent = self.spent.get(result.agent)
        if spent is None:
            spent = self.spent[result.agent] = Spent()
        spent.cases += 1
        spent.passed += result.status == "passed"
        spent.runs += runs
        spent.passed_runs += passed
        row = (
            self._case_row(result),
            (
                *(result.status, runs, passed, judged, errors, counts.rate, *(result.interval or (None, None))),
                _blame(result) if 0 < passed < judged else 0,
                _version(result),
                *self._measured(result, spent),
            ),
        )
        packed = _PACK.encode(row)
        self._packed += len(packed).to_bytes(4, "big")
        self._packed += packed

    def end(self, end: RunEnd) -> None:
        """Remember how the run ended."""
        self.run_end = end

    def rows(self) -> Iterator[tuple[CaseRow, tuple[Any, ...]]]:
        """Each case, and its result as `RESULT_COLUMNS` has it from `status` on."""
        view, at = memoryview(self._packed), 0
        while at < len(view):
            size = int.from_bytes(view[at : at + 4], "big")
            at += 4 + size
            yield _UNPACK.decode(view[at - size : at])

    def _case_row(self, result: CaseResult) -> CaseRow:
        mask = current_secrets().mask_text  # a run's own results have them, a journal has not
        file, case, agent = self._file(result.file or ""), storable(mask(result.case)), storable(mask(result.agent))
        key = key_of(file, case, agent)
        if key not in self._keys:
            self._keys.add(key)
            return CaseRow(key, file, case, agent, 0)
        self._doubles[key] += 1
        number = self._doubles[key]
        return CaseRow(key_of(file, case, agent, str(number)), file, case, agent, number)

    def _find_file(self, file: str) -> str:
        assert self.info is not None
        return storable(current_secrets().mask_text(project_path(self.info, file)))

    def _measured(self, result: CaseResult, spent: Spent) -> tuple[float | None, ...]:
        """What the runs of a case took: the median duration, the money, the tokens, the mean score."""
        took, scores, costs, used = [], [], [], []
        for trial in result.trials:
            duration, _, _, tokens, cost, score = measured(trial)
            if is_judged(trial) and not trial.surplus:
                took.append(duration)
                scores.append(score)
            costs.append(cost)
            used.append(tokens)
            if trial.role_usage is not None and (role := trial.role_usage.cost_usd) is not None:
                spent.roles_usd = (spent.roles_usd or 0.0) + role
        if self._is_recheck:  # what it judges was paid for before
            return _of_known(took, median), None, None, _of_known(scores, mean)
        usd, tokens_used = _of_known(costs, fsum), _of_known(used, fsum)
        if usd is not None:
            usd = round(usd, 9)
            spent.cost_usd = (spent.cost_usd or 0.0) + usd
        if tokens_used is not None:
            spent.tokens = (spent.tokens or 0.0) + tokens_used
        return _of_known(took, median), usd, tokens_used, _of_known(scores, mean)

    def run_row(self, source: str, size: int, changed: int) -> tuple[Any, ...]:
        """The run as `RUN_COLUMNS` has it. `source` is the folder of runs, `size` and `changed` are the journal's."""
        info, end = self._whole
        counts = {name: _count(end.counts.get(name)) for name in ("total", "passed", "failed", "errors")}
        not_run = info.cases - _count(end.counts.get("total_cases")) - _count(end.counts.get("skipped_by_test"))
        mask = current_secrets().mask_text

        def text(value: str | None) -> str | None:
            return None if value is None else storable(mask(value))

        return (
            *(key_of(self._id), self._id, source, size, changed),
            *("finished" if end.reason is None or end.damaged else "stopped", _kind(info)),
            *(info.started_at, end.ended_at, end.duration_ms),
            *(text(info.commit), text(info.branch), None if info.dirty is None else int(info.dirty)),
            *(text(info.rechecks), text(end.reason), _list(map(mask, info.identity)), _list(map(mask, info.agents))),
            *(counts["total"] + max(0, not_run), self.finished),
            *(counts["passed"], counts["failed"], counts["errors"]),
        )

    def total_rows(self) -> Iterator[tuple[Any, ...]]:
        """The totals of the run and of each of its agents, as `TOTAL_COLUMNS` has them."""
        _, end = self._whole
        numbers, mask = end.numbers, current_secrets().mask_text
        for name, spent in [(None, _sum(self.spent.values())), *self.spent.items()]:
            rows = range(len(numbers)) if name is None or len(self.spent) == 1 else numbers.select(agent=name)
            found = rate_figures(numbers, rows)
            yield (
                *(key_of(self._id), ALL_AGENTS if name is None else storable(mask(name))),
                *(spent.cases, spent.passed, spent.runs, spent.passed_runs),
                *(found.pass_rate, *(found.interval or (None, None))),
                *(_rounded(one) for one in (spent.cost_usd, spent.roles_usd, spent.tokens)),
            )

    @property
    def _id(self) -> str:
        """The name of the run's folder: a copy of a folder, or a damaged journal, may have the id of another run."""
        return storable(Path(self._whole[0].folder).name)

    @property
    def _whole(self) -> tuple[RunInfo, RunEnd]:
        assert self.info is not None
        assert self.run_end is not None
        return self.info, self.run_end


def read_rows(run: Path) -> RunRows:
    """The rows of a run, from its journal. Raises `LoadError`."""
    from atp.journal.recorded_run import RecordedRun  # a run imports this module, and reads no other run

    rows = RunRows()
    rows.end(RecordedRun(run, relocate=False).repeat(rows))
    return rows


def _of_known(values: list[float], of_several: Callable[[list[float]], float | None]) -> float | None:
    """What the known values come to; None without any. Most cases have one, which is what it comes to."""
    if len(values) == 1:
        return None if isnan(values[0]) else values[0]
    known = [one for one in values if not isnan(one)]
    return of_several(known) if known else None


def _blame(case: CaseResult) -> int:
    from atp.stats.flaky import flakiness  # few cases need it

    found = flakiness(case)
    return 0 if found is None else BLAMES.index(found.blame)


def _version(case: CaseResult) -> int:
    """A number that is the same as long as the case, its agent, its judge and its simulated user are the same."""
    for trial in case.trials:  # one that never began has not asked who would judge it
        if trial.case_digest or trial.agent_digest:
            digests = (trial.case_digest, trial.agent_digest, trial.judge_digest, trial.simulator_digest)
            return key_of(*(one or "" for one in digests))
    return 0


def _kind(info: RunInfo) -> Kind:
    if info.rechecks is not None:
        return "recheck"
    if info.options.get("only_failed"):
        return "failed"
    return "part" if info.options.get("run") or info.options.get("tags") else "all"


def _sum(parts: Iterable[Spent]) -> Spent:
    total = Spent()
    for one in parts:
        for name in ("cases", "passed", "runs", "passed_runs"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        for name in ("cost_usd", "roles_usd", "tokens"):
            if (value := getattr(one, name)) is not None:
                setattr(total, name, (getattr(total, name) or 0.0) + value)
    return total


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 9)


def _list(texts: Iterable[str]) -> str:
    return msgspec.json.encode([storable(one) for one in texts]).decode()


def _count(value: Any) -> int:
    """A count of a summary, which may be damaged."""
    return min(max(value, 0), _MOST) if isinstance(value, int) else 0
