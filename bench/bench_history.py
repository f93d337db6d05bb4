"""The index of runs: how long a million trials take to be taken in, and each question; what a run pays at its end.

The journals are made up, but written as a run writes them: 500 runs of 2,000 cases, each run once, so that every trial
is a row of its own, which is the most rows that a million trials can come to. Times are CPU seconds of this process.
The server of PostgreSQL, started as the tests do, is another process: for its answers the time that passes is measured.
"""

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from tests.postgres import postgres

from atp.history.index.index import Index, IndexListener
from atp.history.index.queries import Scope, case_history, cost, durations, flaky_cases, trend
from atp.history.index.runs import list_runs
from atp.journal.listeners import RunEnd
from atp.journal.recorded_run import RecordedRun
from atp.journal.records import FORMAT, RunInfo, Summary, Trial
from atp.journal.write import Journal
from atp.suite.result import CaseInfo, CaseResult, Status, ToolCall, Transcript, TrialResult, Turn, Usage, Verdict

RUNS, CASES = 500, 2_000
WRITERS = 8
START = 1_750_000_000
TAKE_IN_SECONDS, SQLITE_SECONDS, POSTGRES_SECONDS = 90.0, 2.0, 1.0
AT_THE_END = 15.0
"""Microseconds of CPU a case that a run may pay: 180 are what a trivial case takes."""
QUESTIONS: dict[str, Callable[[Index], object]] = {
    "history of a case": lambda index: case_history(index, "case-77"),
    "flaky": lambda index: flaky_cases(index, Scope(limit=20)),
    "flaky, of a branch and an agent": lambda index: flaky_cases(index, Scope("desk", "main", START + 1e6, 20)),
    "cost by week": lambda index: cost(index, "week"),
    "trend": lambda index: trend(index, Scope(limit=20)),
    "durations": lambda index: durations(index, Scope(limit=20)),
    "the list of runs": lambda index: list_runs(index.root, index),
}


def write_run(root: Path, number: int, cases: int = CASES) -> Path:
    """The journal of a run, a day's third after the one before."""
    random, at = Random(number), START + number * 28_800.0
    folder = root / ".atp" / "runs" / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-000{number:04x}"
    journal = Journal(folder)
    commit = f"{number // 3:040x}"
    info = RunInfo(
        format=FORMAT,
        id=folder.name,
        at=at,
        version="1",
        identity=["suite.yaml"],
        directory=".",
        agents=["desk"],
        cases=cases,
        trials=cases,
        commit=commit,
        branch="main",
        dirty=False,
    )
    journal.write(info)
    counts = {"passed": 0, "failed": 0}
    for case in range(cases):
        is_flaky = case % 20 == 0
        status: Status = "failed" if (is_flaky and random.random() < 0.3) or case % 97 == 1 else "passed"
        counts[status] += 1
        answer = f"The order {case} was sent back, and {random.randrange(500)} euros are on their way to you. " * 3
        result = TrialResult(
            key=f"{number}-{case}",
            case_digest=f"{case:032x}",
            agent_digest=f"{number // 100:032x}",
            agent="desk",
            case=f"case-{case}",
            index=case,
            status=status,
            score=100.0 if status == "passed" else 40.0,
            transcript=Transcript(
                messages=[{"role": "user", "content": "Send it back"}, {"role": "assistant", "content": answer}],
                turns=[Turn(turn=1, input="Send it back", output=answer)],
                tool_calls=[ToolCall(name="find_order", arguments={"id": case}, result={"state": "sent"})],
                usage=Usage(input_tokens=300, output_tokens=60, cost_usd=0.0004),
            ),
            verdicts=[Verdict(type="contains", outcome="passed", message='contains "sent back"', name="sent back")],
            started_at=at + case / 10,
            duration_ms=800 + 400 * random.random() + case % 50,
        )
        about = CaseInfo(name=f"Case {case}", line=case + 1, tags=["orders"], input="Send it back", planned=1)
        journal.write(Trial(result=result, file="suite.yaml", about=about))
    total = {"total": cases, "total_cases": cases, "total_runs": cases, "passed_runs": counts["passed"], **counts}
    journal.write(Summary(at=at + cases / 10, complete=True, counts=total))
    journal.close()
    return folder


def cpu() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Limits:
    """Prints a row for each figure, and remembers whether all are below their limits."""

    def __init__(self) -> None:
        self.broken = False

    def row(self, what: str, value: float, limit: float, unit: str = "s") -> None:
        """Print a figure beside its limit."""
        self.broken |= value > limit
        print(f"| {what} | {value:.2f} {unit} | {limit:g} {unit} |{' too much' if value > limit else ''}", flush=True)


def take_in(root: Path, setting: str | None, limits: Limits, name: str) -> None:
    began = cpu()
    with Index(root, setting) as index:
        assert index.update() == []
        limits.row(f"{name}: {RUNS * CASES:,} trials taken in (CPU)", cpu() - began, TAKE_IN_SECONDS)
        began = cpu()
        index.update()
        limits.row(f"{name}: nothing is new (CPU)", cpu() - began, 1.0)
        assert index.database.query("SELECT COUNT(*) FROM result") == [(RUNS * CASES,)]


def ask(root: Path, setting: str | None, limits: Limits, name: str, limit: float) -> None:
    with Index(root, setting) as index:
        for what, question in QUESTIONS.items():
            began, passed = cpu(), time.perf_counter()
            question(index)
            took = cpu() - began if setting is None else time.perf_counter() - passed
            limits.row(f"{name}: {what}", took, limit)


def _write(root: str, setting: str | None, numbers: range) -> None:
    for number in numbers:
        run = write_run(Path(root), number, 50)
        end_of_run(Path(root), setting, run)


def end_of_run(root: Path, setting: str | None, run: Path) -> float:
    """What the listener takes, in CPU seconds, for a run whose results are there."""
    listener = IndexListener(root, setting)
    results: list[Callable[[], None]] = []

    class Collect(IndexListener):
        def start(self, info: RunInfo) -> None:
            listener.start(info)

        def case(self, result: CaseResult) -> None:
            results.append(lambda: listener.case(result))

    end: RunEnd = RecordedRun(run, relocate=False).repeat(Collect(root, setting))
    began = cpu()
    for one in results:
        one()
    listener.end(end)
    assert listener.warning is None, listener.warning
    return cpu() - began


def write_together(root: Path, setting: str | None, limits: Limits, name: str) -> None:
    """Eight processes, each with 20 runs, at the same time: every run is there once."""
    context = get_context("spawn")
    writers = [
        context.Process(target=_write, args=(str(root), setting, range(10_000 + 20 * one, 10_020 + 20 * one)))
        for one in range(WRITERS)
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    with Index(root, setting) as index:
        (counts,) = index.database.query("SELECT COUNT(*), COUNT(DISTINCT run_no || '/' || case_no) FROM result")
    expected = WRITERS * 20 * 50
    limits.row(f"{name}: rows lost or doubled by {WRITERS} writers", sum(abs(expected - one) for one in counts), 0, "")


def main() -> int:
    limits = Limits()
    folder = Path(tempfile.mkdtemp(prefix="atp-bench-history-"))
    try:
        for number in range(RUNS):
            write_run(folder / "many", number)
        (folder / "few").mkdir()
        run = write_run(folder / "few", 0)
        took = min(end_of_run(folder / "few", None, run) for _ in range(5))
        with ExitStack() as stack:
            engines: dict[str, tuple[str | None, float]] = {"SQLite": (None, SQLITE_SECONDS)}
            engines["PostgreSQL"] = (stack.enter_context(postgres()), POSTGRES_SECONDS)
            print("| what | figure | limit |\n|---|---|---|")
            limits.row("a case at the end of its run", took / CASES * 1e6, AT_THE_END, "µs")
            for name, (setting, limit) in engines.items():
                take_in(folder / "many", setting, limits, name)
                ask(folder / "many", setting, limits, name, limit)
            write_together(folder / "together", None, limits, "SQLite")
    finally:
        shutil.rmtree(folder)
    return int(limits.broken)


if __name__ == "__main__":
    sys.exit(main())
