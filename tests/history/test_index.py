"""The index of runs: it says what the journals say, whatever happens to it, to them, and beside it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.damage import damaged_bytes
from tests.history.support.made_runs import make_run, trial
from tests.waiting import WAIT_LIMIT

from atp.base.diagnostics import LoadError
from atp.history.index.database import IndexFailure
from atp.history.index.index import Index, IndexListener
from atp.history.index.queries import Scope, case_history, case_names, cost, durations, flaky_cases, trend
from atp.history.index.runs import list_runs
from atp.journal.folder import RunFolder
from atp.journal.recorded_run import RecordedRun
from atp.journal.records import NAME

TABLES = {"run": "run_no", "total": "run_no, agent", "result": "run_no, case_no", "test_case": "case_no"}


def content(index: Index) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the index."""
    return {name: index.database.query(f"SELECT * FROM {name} ORDER BY {key}") for name, key in TABLES.items()}


def updated(root: Path, place: str | None = None) -> dict[str, list[tuple[Any, ...]]]:
    with Index(root, place) as index:
        assert index.update() == []
        return content(index)


def recount(root: Path) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """By run, file, agent and case: what the lines of the journals come to, counted without ATP."""
    found: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for journal in root.glob(f".atp/runs/*/{NAME}"):
        for line in map(json.loads, journal.read_bytes().splitlines()):
            if line["type"] != "trial":
                continue
            result = line["result"]
            key = (journal.parent.name, line["file"], result["agent"], result["case"])
            of_case = found.setdefault(key, defaultdict(float))
            status = result.get("status", "passed")
            of_case["runs"] += 1
            of_case["passed"] += status == "passed"
            of_case["errors"] += status == "error" and result["blame"] != "agent"
            of_case["usd"] += result["transcript"]["usage"].get("cost_usd", 0.0)
    return found


ends = st.sampled_from(
    [
        *({}, {"status": "failed"}, {"status": "timeout"}, {"status": "blocked"}),
        *({"status": "error", "blame": "agent"}, {"status": "error", "blame": "environment"}),
    ]
)
cases = st.dictionaries(
    st.tuples(
        st.sampled_from(["desk", "clerk"]), st.sampled_from(["refund", "order", "a::b", "naïve \U0001f600", "x\0y"])
    ),
    st.lists(st.tuples(ends, st.sampled_from([None, 0.0, 0.01, 1.5])), min_size=1, max_size=4),
    min_size=1,
)
some_runs = st.lists(st.tuples(cases, st.sampled_from(["suite.yaml", "more/b.jsonl"]), st.booleans()), max_size=5)
NUMBERS = count()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=some_runs, drop=st.integers(0, 4))
def test_the_index_says_what_a_recount_of_the_journals_says(
    tmp_path: Path, server: str, runs: list[Any], drop: int
) -> None:
    number = next(NUMBERS)
    root = tmp_path / str(number)
    made = [
        make_run(
            root,
            [
                trial(case, agent=agent, run=run, usd=usd, **{"status": "passed", **end})
                for (agent, case), trials in of_cases.items()
                for run, (end, usd) in enumerate(trials, 1)
            ],
            day=day,
            file=file,
            ended=ended,
        )
        for day, (of_cases, file, ended) in enumerate(runs)
    ]
    url = f"{server}?options=-csearch_path%3Drecount_{number}"
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA recount_{number}".encode())
    for place in (None, url):
        with Index(root, place) as index:
            assert index.update() == []
            check(index, root)
    if drop < len(made):
        shutil.rmtree(made[drop])
        for place in (None, url):
            with Index(root, place) as index:
                index.update()
                check(index, root)


def check(index: Index, root: Path) -> None:
    """Every answer is that of a recount."""
    expected = recount(root)
    found = {}
    for name in case_names(index):
        for one in case_history(index, name):
            key = (one.run, one.file, one.agent, name)
            assert key not in found
            found[key] = one
    assert found.keys() == {(*key[:3], key[3].replace("\0", "\ufffd")) for key in expected}
    for key, counts in expected.items():
        one = found[*key[:3], key[3].replace("\0", "\ufffd")]
        assert (one.runs, one.passed, one.errors) == (counts["runs"], counts["passed"], counts["errors"])
        assert one.cost_usd is None or one.cost_usd == pytest.approx(counts["usd"])
        assert (one.status == "passed") == (one.runs == one.passed)
    spent = sum(counts["usd"] for counts in expected.values())
    assert sum(row.cost_usd or 0 for row in cost(index, "month").rows) == pytest.approx(spent)
    assert sum(row.trials for row in cost(index, "day").rows) == sum(counts["runs"] for counts in expected.values())
    by_run = {row.run: row for row in trend(index).rows}
    assert by_run.keys() == {path.parent.name for path in root.glob(f".atp/runs/*/{NAME}")}
    for run, row in by_run.items():
        of_run = [counts for key, counts in expected.items() if key[0] == run]
        assert (row.cases, row.passed) == (len(of_run), sum(one["runs"] == one["passed"] for one in of_run))
    assert list_runs(root, index) == list_runs(root)
    flaky = {(row.file, row.agent, row.case) for row in flaky_cases(index).rows}
    mixed = {(one.file, one.agent, name) for (*_, name), one in found.items() if one.flaky is not None}
    assert mixed <= flaky
    assert {row.case for row in durations(index).rows} <= set(case_names(index))


def test_an_index_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    for day in range(3):
        make_run(tmp_path, [trial(), trial("order", "failed")], day=day)
    before = updated(tmp_path)
    os.remove(tmp_path / ".atp" / "history.sqlite")
    assert updated(tmp_path) == before


def test_the_rest_of_a_deleted_index_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    make_run(tmp_path, [trial()])
    with Index(tmp_path) as index:  # its log is there as long as it is open
        index.update()
        os.remove(tmp_path / ".atp" / "history.sqlite")
        make_run(tmp_path, [trial()], day=1)
        assert len(updated(tmp_path)["run"]) == 2


def test_only_what_is_new_is_read(tmp_path: Path, place: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path, [trial()])
    updated(tmp_path, place)
    new = make_run(tmp_path, [trial()], day=1)
    read = []

    class Spy(RecordedRun):
        def __init__(self, run: Path, **given: Any) -> None:
            read.append(run)
            super().__init__(run, **given)

    monkeypatch.setattr("atp.journal.recorded_run.RecordedRun", Spy)
    updated(tmp_path, place)
    assert read == [new]


def test_a_journal_that_was_written_to_meanwhile_is_left_for_later(tmp_path: Path, place: str | None) -> None:
    from atp.history.index.index import signature
    from atp.history.index.rows import read_rows

    run = make_run(tmp_path, [trial()], ended=False)
    seen, rows = signature(run), read_rows(run)
    assert seen is not None
    with (run / NAME).open("ab") as journal:
        journal.write(b"{}\n")
    with Index(tmp_path, place) as index:
        index.add(run, rows, seen)
        assert content(index)["run"] == []


def test_a_run_that_went_on_replaces_what_there_was_of_it(tmp_path: Path, place: str | None) -> None:
    run = make_run(tmp_path, [trial("a"), trial("b", "failed")], ended=False)
    (stopped,) = updated(tmp_path, place)["run"]
    whole = make_run(tmp_path / "whole", [trial("a"), trial("b"), trial("c")])
    (run / NAME).write_bytes((whole / NAME).read_bytes().replace(whole.name.encode(), run.name.encode()))
    with Index(tmp_path, place) as index:
        index.update()
        (row,) = trend(index).rows
        assert (row.run, row.state, row.cases, row.passed) == (run.name, "finished", 3, 3)
        assert [one.status for one in case_history(index, "b")] == ["passed"]
    assert "stopped" in stopped


def test_a_deleted_run_is_dropped(tmp_path: Path, place: str | None) -> None:
    first, second = (make_run(tmp_path, [trial()], day=day) for day in range(2))
    updated(tmp_path, place)
    shutil.rmtree(first)
    with Index(tmp_path, place) as index:
        index.update()
        assert [one.run for one in case_history(index, "refund")] == [second.name]


def test_machines_that_share_a_database_don_t_drop_each_other_s_runs(tmp_path: Path, database: str) -> None:
    runs = [make_run(tmp_path / machine, [trial()], day=day) for day, machine in enumerate(("one", "other"))]
    updated(tmp_path / "one", database)
    (tmp_path / "new" / ".atp" / "runs").mkdir(parents=True)  # a machine of CI that has just been made
    updated(tmp_path / "new", database)
    with Index(tmp_path / "other", database) as index:
        index.update()
        assert [one.run for one in case_history(index, "refund")] == [run.name for run in reversed(runs)]


def test_a_run_that_is_under_way_is_left_for_later(tmp_path: Path) -> None:
    done = make_run(tmp_path, [trial("a"), trial("b", "failed")])
    run = make_run(tmp_path, [trial("a"), trial("b", "failed")], day=1, ended=False, cases=5)
    folder = RunFolder(run, "marker")
    try:
        with Index(tmp_path) as index:
            index.update()
            assert [one.run for one in case_history(index, "a")] == [done.name]
            running, finished = list_runs(tmp_path, index)
        assert (running.state, running.finished, running.total) == ("running", 2, 5)
        assert (running.passed, running.failed, running.errors) == (1, 1, 0)
        assert (finished.state, finished.finished, finished.total) == ("finished", 2, 2)
    finally:
        folder.close()
    with Index(tmp_path) as index:
        index.update()
        assert [one.run for one in case_history(index, "a")] == [run.name, done.name]
        assert [one.state for one in list_runs(tmp_path, index)] == ["stopped", "finished"]


SCRIPT = """
import sys
from pathlib import Path
from tests.history.support.made_runs import make_run, trial
from atp.history.index.index import Index, IndexListener
from atp.journal.recorded_run import RecordedRun

root, number, place = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] or None
for one in range(6):
    run = make_run(root / str(number), [trial(f"case-{case}") for case in range(20)], day=10 * number + one)
    target = root / ".atp" / "runs" / f"{run.name}-{number}"
    target.parent.mkdir(parents=True, exist_ok=True)
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(run.name.encode(), target.name.encode()))
    run.rename(target)
    listener = IndexListener(root, place)
    end = RecordedRun(target, relocate=False).repeat(listener)
    listener.end(end)
    assert listener.warning is None, listener.warning
    with Index(root, place) as index:  # takes in what the others have just made, as they do
        assert index.update() == []
"""


def test_eight_writers_at_once_lose_and_double_nothing(tmp_path: Path, place: str | None) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path), str(number), place or ""],
            cwd=Path(__file__).parents[2],
            stderr=subprocess.PIPE,
        )
        for number in range(8)
    ]
    for one in writers:
        _, err = one.communicate(timeout=WAIT_LIMIT)
        assert one.returncode == 0, err.decode()
    with Index(tmp_path, place) as index:
        together = content(index)
        assert index.update() == []
        assert content(index) == together
        assert index.database.query("SELECT COUNT(*), COUNT(DISTINCT run_no) FROM result") == [(8 * 6 * 20, 8 * 6)]
        check(index, tmp_path)
    with Index(tmp_path, "again.sqlite") as again:
        again.update()
        fresh = content(again)
    assert fresh["result"] == together["result"]
    assert fresh["test_case"] == together["test_case"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_journals_are_read_as_far_as_they_go_or_named(tmp_path: Path, data: st.DataObject) -> None:
    root = tmp_path / str(next(NUMBERS))
    whole = make_run(root, [trial(), trial("order", "failed"), trial("order", run=2)])
    seed = (whole / NAME).read_bytes()
    other = make_run(root, [trial()], day=1)
    (other / NAME).write_bytes(data.draw(damaged_bytes(seed)))
    with Index(root) as index:
        index.update()
        json.dumps([list_runs(root, index) == list_runs(root)])
        assert whole.name in {one.run for one in case_history(index, "refund")}
        for answer in (flaky_cases(index), cost(index), trend(index), durations(index)):
            assert len(answer.rows) == answer.total


def test_a_torn_journal_counts_as_far_as_it_goes(tmp_path: Path, place: str | None) -> None:
    run = make_run(tmp_path, [trial("a"), trial("b"), trial("c")], ended=False)
    journal = run / NAME
    journal.write_bytes(journal.read_bytes()[:-100])
    with Index(tmp_path, place) as index:
        index.update()
        assert case_names(index) == ["a", "b"]


def test_a_journal_of_a_newer_format_is_named_and_the_others_are_taken_in(tmp_path: Path) -> None:
    make_run(tmp_path, [trial()])
    make_run(tmp_path, [trial()], day=1, format=99)
    with Index(tmp_path) as index:
        (problem,) = index.update()
        assert problem.code == "newer-format"
        assert len(case_history(index, "refund")) == 1


def test_a_damaged_index_in_its_own_place_is_made_again(tmp_path: Path) -> None:
    make_run(tmp_path, [trial()])
    before = updated(tmp_path)
    path = tmp_path / ".atp" / "history.sqlite"
    path.write_bytes(b"no database" * 1000)
    assert updated(tmp_path) == before


@pytest.mark.parametrize("kind", ["text", "database"])
def test_a_file_that_is_no_index_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.sqlite"
    if kind == "text":
        path.write_bytes(b"my notes" * 1000)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE mine (x)")
        connection.close()
    content_before = path.read_bytes()
    with pytest.raises(LoadError, match=r"mine\.sqlite is no index of ATP's"):
        Index(tmp_path, "mine.sqlite")
    assert path.read_bytes() == content_before


def test_an_index_of_another_version_is_refused(tmp_path: Path, place: str | None) -> None:
    with Index(tmp_path, place) as index:
        change = "PRAGMA user_version = 99" if place is None else "UPDATE atp_history SET version = 99"
        index.database.execute(change)
    if place is None:  # nothing but the journals is in it
        make_run(tmp_path, [trial()])
        assert len(updated(tmp_path)["run"]) == 1
    else:
        with pytest.raises(LoadError, match="version 99"):
            Index(tmp_path, place)


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(IndexFailure) as error:
        Index(tmp_path, "postgresql://atp:very-secret-word@127.0.0.1:1/none")
    assert "very-secret-word" not in error.value.with_hint


def test_an_address_that_can_t_be_read_is_refused_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(LoadError) as error:
        Index(tmp_path, "postgresql://atp:very-secret%word@127.0.0.1/none")
    assert "very-secret" not in str(error.value)
    assert "bad-history" in str(error.value)


def test_a_listener_that_fails_says_so_and_never_raises(tmp_path: Path) -> None:
    run = make_run(tmp_path, [trial()])
    (tmp_path / "folder.sqlite").mkdir()
    listener = IndexListener(tmp_path, "folder.sqlite")
    listener.end(RecordedRun(run).repeat(listener))
    assert listener.warning is not None
    assert "the run is not in the history yet" in listener.warning


def history(root: Path, name: str = "refund") -> list[Any]:
    with Index(root) as index:
        index.update()
        return case_history(index, name)


def test_the_history_of_a_case_is_newest_first_with_intervals(tmp_path: Path) -> None:
    make_run(tmp_path, [trial(), trial(run=2)], commit="a" * 40, branch="main", dirty=False)
    make_run(tmp_path, [trial("refund", "failed"), trial(run=2)], day=1, commit="b" * 40, branch="main", dirty=True)
    newest, oldest = history(tmp_path)
    assert (newest.commit, newest.status, newest.runs, newest.passed, newest.rate) == ("b" * 40, "failed", 2, 1, 0.5)
    assert (oldest.status, oldest.rate, oldest.dirty, newest.dirty) == ("passed", 1.0, False, True)
    assert newest.interval.low < 0.5 < newest.interval.high
    assert (newest.flaky, oldest.flaky) == ("agent", None)
    assert (newest.duration_ms, newest.cost_usd) == (1000.0, 0.02)


def test_a_case_says_when_it_or_its_agent_changed(tmp_path: Path) -> None:
    for day, digest in enumerate(["1", "1", "2"]):
        make_run(tmp_path, [trial(agent_digest=digest)], day=day)
    assert [one.changed for one in history(tmp_path)] == [True, False, False]


def test_cases_of_the_same_id_are_told_apart_by_their_files(tmp_path: Path) -> None:
    make_run(tmp_path, [trial()], file="a.yaml")
    make_run(tmp_path, [trial("refund", "failed")], file="b/c.yaml", day=1)
    assert [one.file for one in history(tmp_path)] == ["b/c.yaml", "a.yaml"]
    assert [one.status for one in history(tmp_path, "b/c.yaml::refund")] == ["failed"]


def flaky(root: Path, scope: Scope = Scope()) -> dict[str, Any]:  # noqa: B008
    with Index(root) as index:
        index.update()
        return {one.case: one for one in flaky_cases(index, scope).rows}


def test_a_case_is_flaky_if_runs_differ_though_nothing_changed(tmp_path: Path) -> None:
    make_run(tmp_path, [trial("within"), trial("within", "failed", run=2), trial("between"), trial("fixed", "failed")])
    make_run(tmp_path, [trial("between", "failed"), trial("fixed", case_digest="other"), trial("sure")], day=1)
    found = flaky(tmp_path)
    assert found.keys() == {"within", "between"}
    assert (found["within"].blame, found["between"].blame) == ("agent", None)
    assert (found["between"].results, found["between"].runs, found["between"].passed) == (2, 2, 1)
    assert found["between"].interval.low < 0.5 < found["between"].interval.high


def test_variations_that_differ_are_not_flaky(tmp_path: Path) -> None:
    for day in range(2):
        make_run(tmp_path, [trial(), trial("refund", "failed", variation=1)], day=day)
    assert flaky(tmp_path) == {}


def test_errors_of_others_are_no_sign_of_a_flaky_case(tmp_path: Path) -> None:
    make_run(tmp_path, [trial()])
    make_run(tmp_path, [trial("refund", "error", blame="environment")], day=1)
    assert flaky(tmp_path) == {}


def test_a_recheck_is_no_new_evidence(tmp_path: Path, place: str | None) -> None:
    run = make_run(tmp_path, [trial(duration_ms=1000)])
    make_run(tmp_path, [trial("refund", "failed", duration_ms=1)], day=1, rechecks=run.name)
    with Index(tmp_path, place) as index:
        index.update()
        assert [one.recheck for one in case_history(index, "refund")] == [True, False]
        assert flaky_cases(index).rows == []
        assert [row.run for row in trend(index).rows] == [run.name]
        assert [row.results for row in durations(index).rows] == [1]
        (week,) = cost(index, "month").rows
        assert (week.runs, week.cost_usd) == (2, 0.01)  # the conversation was paid for once


def test_runs_of_what_had_failed_are_no_trend(tmp_path: Path) -> None:
    make_run(tmp_path, [trial(), trial("b", "failed")])
    make_run(tmp_path, [trial("b", "failed")], day=1, options={"only_failed": True})
    make_run(tmp_path, [trial()], day=2, options={"tags": "smoke"})
    with Index(tmp_path) as index:
        index.update()
        assert [(row.cases, row.part) for row in trend(index).rows] == [(1, True), (2, False)]


def test_costs_are_added_up_by_the_calendar(tmp_path: Path, place: str | None) -> None:
    for day in range(10):
        make_run(tmp_path, [trial(usd=0.5), trial("b", usd=None)], day=day)
    with Index(tmp_path, place) as index:
        index.update()
        assert [row.cost_usd for row in cost(index, "day").rows] == [0.5] * 10
        weeks = cost(index, "week").rows
        assert (sum(row.cost_usd for row in weeks), sum(row.runs for row in weeks)) == (5.0, 10)
        assert [row.period for row in weeks] == sorted((row.period for row in weeks), reverse=True)
        (month,) = cost(index, "month").rows
        assert (month.period, month.start, month.trials, month.run_usd) == ("2025-06", "2025-06-01", 20, 0.5)


def test_the_cost_of_a_run_has_an_interval(tmp_path: Path) -> None:
    for day in range(6):
        make_run(tmp_path, [trial(usd=1.0 + day / 10)], day=day / 10)
    with Index(tmp_path) as index:
        index.update()
        (month,) = cost(index, "month").rows
        assert month.run_interval.low < month.run_usd < month.run_interval.high


def test_the_slowest_cases_come_first(tmp_path: Path, place: str | None) -> None:
    for day in range(8):
        trials = [trial("fast", duration_ms=10.0 + day), trial("slow", duration_ms=5000.0 + day)]
        make_run(tmp_path, [*trials, trial("broken", "error", blame="environment", duration_ms=9e9)], day=day)
    with Index(tmp_path, place) as index:
        index.update()
        slow, fast = durations(index).rows
        assert (slow.case, slow.results, slow.mean_ms, slow.last_ms) == ("slow", 8, 5003.5, 5007.0)
        assert slow.mean_interval.low < 5003.5 < slow.mean_interval.high
        assert slow.median_interval is not None
        assert fast.case == "fast"
        assert durations(index, Scope(limit=1)).rows == [slow]
        assert durations(index, Scope(limit=1)).total == 2


def test_answers_are_about_an_agent_a_branch_or_a_time(tmp_path: Path, place: str | None) -> None:
    for day, branch in enumerate(["main", "main", "other", None]):
        trials = [trial(agent="desk"), trial("refund", "failed", agent="clerk", run=1), trial("b", agent="desk")]
        make_run(tmp_path, trials, day=day, branch=branch)
    with Index(tmp_path, place) as index:
        index.update()
        assert len(case_history(index, "refund")) == 8
        assert len(case_history(index, "refund", Scope(agent="desk"))) == 4
        assert len(case_history(index, "refund", Scope(branch="main", limit=3))) == 3
        by_agent = trend(index, Scope(agent="clerk", branch="other")).rows
        assert [(row.cases, row.passed) for row in by_agent] == [(1, 0)]
        newest = trend(index).rows[0]
        assert [row.run for row in trend(index, Scope(since=newest.at)).rows] == [newest.run]
        assert [row.results for row in durations(index, Scope("desk", "main")).rows] == [2, 2]
        assert cost(index, "day", Scope(branch="nothing")).rows == []


def test_the_rows_of_a_run_are_few_bytes(tmp_path: Path) -> None:
    from atp.history.index.rows import read_rows

    many = [trial(f"case-{number}") for number in range(200)]
    rows = read_rows(make_run(tmp_path, many))
    assert len(rows._packed) < 150 * len(many)
