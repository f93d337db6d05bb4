"""A damaged journal is read as far as it can be, what is passed over is said, and a report on it is made or refused."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from tests.damage import damaged_bytes

from atp.base.diagnostics import LoadError
from atp.base.json.text import encode
from atp.engine.prepare.options import Options
from atp.engine.prepare.resume import FinishedTrials
from atp.journal.listeners import Listeners
from atp.journal.read import bounds, read_lines
from atp.journal.recorded_run import RecordedRun
from atp.journal.records import FORMAT, NAME, Before, Kept, RunInfo, Skipped, Summary, Trial
from atp.report.choose import Reads, reports
from atp.suite.result import CaseInfo, Event, Status, ToolCall, Transcript, TrialResult, Turn, Usage, Verdict

START = RunInfo(
    format=FORMAT,
    id="r1",
    at=1.7e9,
    version="1",
    identity=["a.yaml"],
    files=["a.yaml"],
    agents=["a"],
    cases=3,
    trials=3,
)


def trial(case: str, index: int, status: Status = "passed") -> Trial:
    call = ToolCall(name="look", arguments={"for": "é"}, result=[1, 2.5, None], duration_ms=3.0)
    told = Transcript(
        messages=[{"role": "user", "content": "Hello"}],
        turns=[Turn(turn=1, input="Hello", output={"a": "b"}, duration_ms=5.0)],
        tool_calls=[call],
        events=[Event(type="reasoning", payload={"step": 1})],
        usage=Usage(input_tokens=3, output_tokens=4, cost_usd=0.01),
    )
    result = TrialResult(
        key=f"key-{case}",
        agent="a",
        case=case,
        index=index,
        status=status,
        verdicts=[Verdict(type="equals", outcome="passed", message="fine", expected=1, found=1.0)],
        score=80.0,
        dimensions={"quality": 0.8},
        transcript=told,
        started_at=1.7e9 + index,
        duration_ms=12.5,
    )
    return Trial(result=result, file="a.yaml", about=CaseInfo(name=case, line=index + 1, tags=["x"], input="Hello"))


LINES = [
    START,
    Skipped(case="s", name="S", file="a.yaml", line=9),
    trial("one", 0),
    trial("two", 1, "failed"),
    RunInfo(
        **{name: getattr(START, name) for name in ("format", "id", "version", "identity", "files", "agents", "cases")},
        at=1.7e9 + 100,
        trials=3,
        continues=True,
        resumed=1,
    ),
    Skipped(case="s", name="S", file="a.yaml", line=9),
    Kept(key="key-one", index=0, file="a.yaml", about=CaseInfo(name="one")),
    Before(result=trial("one", 0).result, file="a.yaml"),
    trial("two", 1),
    trial("three", 2),
    Summary(at=1.7e9 + 120, complete=True, counts={"total": 4, "passed": 3, "skipped_by_test": 1}),
]
JOURNAL = b"".join(encode(line) + b"\n" for line in LINES)
REPORTS = ("r.json", "r.jsonl", "r.md", "r.html", "r.xml", "r.csv", "r.ctrf.json")


def check_journal(data: bytes) -> None:
    """Read a journal in every way that ATP reads one."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        (run / NAME).write_bytes(data)
        passed_over: list[int] = []
        try:
            read = list(read_lines(run / NAME, damaged=passed_over))
            bounds(run)
            FinishedTrials(run / NAME).close()
            recorded = RecordedRun(run)
        except LoadError as error:
            if [one.code for one in error.diagnostics] not in (["newer-format"], ["no-run"]):
                raise
            return
        starts = [0, *(place + 1 for place, byte in enumerate(data) if byte == 0x0A)]
        assert sorted([offset for offset, _ in read] + passed_over) == [one for one in starts if one < len(data)]
        options = Options(output=[str(run / one) for one in REPORTS])
        listeners = Listeners(reports(options, Reads()))
        end = recorded.repeat(listeners)
        asyncio.run(listeners.finish(end))
        listeners.end(end)
        assert listeners.problems == []
        begin = max(offset for offset, line in read if isinstance(line, RunInfo))
        if any(offset > begin for offset in passed_over):
            assert end.reason
        if end.damaged:
            assert end.reason


def test_the_journal_itself_is_whole(tmp_path: Path) -> None:
    check_journal(JOURNAL)
    (tmp_path / NAME).write_bytes(JOURNAL)
    assert RecordedRun(tmp_path).repeat(Listeners([])).reason is None
    damaged: list[int] = []
    assert len(list(read_lines(tmp_path / NAME, damaged=damaged))) == len(LINES)
    assert damaged == []


@settings(max_examples=25)
@given(damaged_bytes(JOURNAL))
@example(JOURNAL.replace(b"Hello", b"H\xffllo"))
@example(JOURNAL.replace(b'"Hello"', b"[" * 5_000))
@example(JOURNAL.replace(b"1700000000.0", b"1e300"))
@example(JOURNAL.replace(b"1700000100.0", b"-1e300"))
@example(JOURNAL.replace(b"1700000001.0", b"1e300"))
@example(JOURNAL.replace(b"12.5", b"1e308"))
@example(JOURNAL.replace(b'"index":1', b'"index":-1'))
def test_a_damaged_journal_is_read_or_refused_by_name(data: bytes) -> None:
    check_journal(data)


def test_a_line_that_is_gone_is_missed(tmp_path: Path) -> None:
    lines = JOURNAL.splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(b"".join(line for line in lines if b'"key-three"' not in line))
    end = RecordedRun(tmp_path).repeat(Listeners([]))
    assert end.damaged
    assert end.reason is not None
    assert end.reason.endswith("`total` is 4 in the summary, 3 in the lines")


def test_so_is_a_torn_one() -> None:
    for size in range(0, len(JOURNAL), 401):
        check_journal(JOURNAL[:size])
