"""Following a run while its journal grows: torn lines, a run that goes on, a file that is replaced."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.diagnostics import LoadError
from atp.journal.follow import FollowedRun
from atp.journal.listeners import Listener
from atp.journal.records import NAME, Kept, RunInfo, Summary, Trial
from atp.journal.write import Journal
from atp.stats.summary import Summary as Counts
from atp.suite.result import CaseInfo, CaseResult, Status, TrialResult


class Cases(Listener):
    """Keeps the cases that it is called with."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def case(self, result: CaseResult) -> None:
        self.found.append((result.case, result.status))


class Followed:
    """A followed run, and the cases since its last beginning."""

    @property
    def state(self) -> str:
        return str(self.run.state)

    def __init__(self, run: Path) -> None:
        self.run = FollowedRun(run, self._listener)

    def _listener(self, _: FollowedRun) -> Listener:
        self.cases = Cases()
        return self.cases

    def read(self) -> list[tuple[str, str]]:
        while self.run.read(10):
            pass
        return self.cases.found


def start(**more: object) -> RunInfo:
    """The start of a run of four cases."""
    about = {"format": 1, "id": "r", "at": 1000.0, "version": "1", "identity": ["t"], "agents": ["a"], "cases": 4}
    return RunInfo(**{**about, "trials": 4, **more})  # type: ignore[arg-type]


def trial(case: str, status: Status = "passed", planned: int = 1, run: int = 1) -> Trial:
    """A trial of a case."""
    result = TrialResult(key=f"{case}-{run}", agent="a", case=case, index=int(case), status=status, run=run)
    return Trial(result=result, file="t.jsonl", about=CaseInfo(name=case, planned=planned) if run == 1 else None)


def summary(*results: CaseResult) -> Summary:
    """The end of a run with these cases."""
    counts = Counts()
    for one in results:
        counts.add_case(one)
    return Summary(at=1010.0, complete=True, counts=counts.counts())


@contextmanager
def lock(run: Path) -> Iterator[None]:
    """The lock of a run, as the process that runs it holds it."""
    handle = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)


def test_cases_come_as_the_journal_grows(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(start())
    with lock(tmp_path):
        followed = Followed(tmp_path)
        assert followed.read() == []
        journal.write(trial("1"))
        assert followed.read() == [("1", "passed")]
        assert followed.state == "running"
        assert followed.run.end().running is True
        journal.write(trial("2", "failed"))
        assert followed.read() == [("1", "passed"), ("2", "failed")]
    assert followed.read() == [("1", "passed"), ("2", "failed")]
    assert followed.state == "stopped"
    assert followed.run.end().running is not True
    journal.close()


def test_a_finished_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    one = trial("1")
    for line in (start(cases=1), one, summary(CaseResult(agent="a", case="1", trials=[one.result]))):
        journal.write(line)
    journal.close()
    followed = Followed(tmp_path)
    assert followed.read() == [("1", "passed")]
    assert followed.state == "finished"
    assert followed.run.end().reason is None


@given(st.data())
def test_however_the_lines_come(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Lines that come in parts, as a reader may see them, make the same cases as the whole journal."""
    source, target = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("parts")
    journal = Journal(source)
    for line in (start(), trial("1"), trial("2", planned=2), trial("3", "failed"), trial("2", planned=2, run=2)):
        journal.write(line)
    journal.close()
    whole = (source / NAME).read_bytes()
    first = whole.index(b"\n") + 1
    cuts = sorted(data.draw(st.lists(st.integers(first, len(whole)), max_size=8)))
    with lock(target), (target / NAME).open("ab", buffering=0) as file:
        file.write(whole[:first])
        followed = Followed(target)
        for begin, end in zip([first, *cuts], [*cuts, len(whole)], strict=True):
            file.write(whole[begin:end])
            followed.read()
        assert followed.read() == [("1", "passed"), ("3", "failed"), ("2", "passed")]
        assert followed.run.repetition.damaged == []


def test_a_torn_last_line_of_a_killed_run_is_left(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(start())
    journal.write(trial("1", planned=2))
    journal.close()
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"type":"trial","result":{"ke')
    followed = Followed(tmp_path)
    assert followed.read() == [("1", "cancelled")]  # one of its two trials never ran
    assert followed.state == "stopped"
    assert followed.run.end().reason == "unfinished: it ended without a summary"


def test_a_run_that_goes_on_begins_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(start())
    journal.write(trial("1"))
    journal.write(trial("2", "error"))
    followed = Followed(tmp_path)
    assert followed.read() == [("1", "passed"), ("2", "error")]
    assert (followed.state, followed.run.generation) == ("stopped", 1)
    with lock(tmp_path):
        journal.write(start(continues=True, resumed=1, at=2000.0))
        journal.write(Kept(key="1-1", index=1, file="t.jsonl", about=CaseInfo(name="1")))
        assert followed.read() == [("1", "passed")]
        assert (followed.state, followed.run.generation) == ("running", 2)
        journal.write(trial("2"))
        assert followed.read() == [("1", "passed"), ("2", "passed")]
    journal.close()


def test_a_replaced_journal_is_read_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(start())
    journal.write(trial("1"))
    journal.close()
    followed = Followed(tmp_path)
    assert followed.read() == [("1", "passed")]
    other = Journal(tmp_path / "other")
    other.write(start())
    other.write(trial("3", "failed"))
    other.close()
    os.replace(tmp_path / "other" / NAME, tmp_path / NAME)
    assert followed.read() == [("3", "failed")]
    assert followed.run.generation == 2


def test_a_damaged_line_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(start())
    journal.write(trial("1"))
    journal.close()
    with (tmp_path / NAME).open("ab") as file:
        file.write(b"nonsense\r\n\n")
    journal = Journal(tmp_path)
    journal.write(trial("2"))
    journal.close()
    followed = Followed(tmp_path)
    assert followed.read() == [("1", "passed"), ("2", "passed")]
    assert len(followed.run.repetition.damaged) == 2


def test_a_journal_that_is_gone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(start())
    journal.close()
    followed = Followed(tmp_path)
    followed.read()
    (tmp_path / NAME).unlink()
    with pytest.raises(LoadError, match="cannot be read"):
        followed.read()
    with pytest.raises(LoadError):
        Followed(tmp_path)
