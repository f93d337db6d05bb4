"""The TPS report: its shape, what always holds of it, and when it is written."""

import copy
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parts import needs
from tests.repository import git

from atp.engine.case_source import CaseSource
from atp.engine.prepare.options import Options
from atp.engine.prepare.sources import in_memory
from atp.loader.load import TestLoader
from atp.report.choose import Reads, choose
from atp.report.formats.tps import NO_COMMIT, TpsReport, blob_id, tps_path, tps_reports
from atp.suite.result import TrialRef, TrialResult, Verdict

TEN_O_CLOCK = 1734429600.0
FILE = """\
---
target: agents/ocean.md
assessor: agents/judge.md
---

# Ocean

## Warm

**Prompts:**

- warm the ocean
- **Chain:**
  - good morning
  - warm it by s3cr3t-key degrees

**Expectations:**

- the warm_ocean function was called
- the ocean is no longer cold

## Cool

**Before:** Warm

**Prompts:**

- cool it again

**Expectations:**

- it is cold
"""


def open_file(folder: Path, text: str = FILE) -> CaseSource:
    file = folder / "ocean.test.md"
    file.write_text(text, "utf-8", newline="\n")
    return in_memory(TestLoader().load_file(file), lambda _case: True)


def trial(source: CaseSource, index: int = 0, variation: int = 0, run: int = 1, **more: Any) -> TrialRef:
    case = source.suite.cases[index]
    runs = more.pop("runs", 1)
    usual: dict[str, Any] = {
        "agent": "agents/ocean.md",
        "ad_hoc": False,
        "chain": case.chains[variation] if case.chains else None,
        "runs": runs,
    }
    usual |= {"key": "k", "siblings": max(len(case.chains), 1) * runs}
    return TrialRef(case=case, suite=source.suite, variation=variation, run=run, **{**usual, **more})


def result(of: TrialRef, *outcomes: str, after: float = 0.0, **more: Any) -> TrialResult:
    verdicts = [
        Verdict(type="expectation", outcome=cast(Any, outcome), message=f"reason {number}", name=text, evidence=["“x”"])
        for number, (outcome, text) in enumerate(zip(outcomes, of.case.expectations, strict=False))
    ]
    status = "failed" if "failed" in outcomes else "error" if "unjudged" in outcomes else "passed"
    usual: dict[str, Any] = {"status": status, "started_at": TEN_O_CLOCK + after, "duration_ms": 1500.4}
    verdicts.append(Verdict(type="limits", outcome="passed"))
    return TrialResult(key="k", agent=of.agent, case=of.case.id, verdicts=verdicts, **{**usual, **more})


def begin(source: CaseSource, story: Any, **options: Any) -> TpsReport:
    (report,) = tps_reports([source], ["s3cr3t-key"], Options(**options))
    report.start(story.info(agents=["agents/ocean.md", "other"]))
    return report


def read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "ocean.tps.json").read_bytes())
    return found


def check_invariants(found: dict[str, Any]) -> None:
    """What the rulings say of every report."""
    file = found["summary"]
    assert " ".join(file) == "timestamp elapsed iterations completed hash path target assessor"
    counts = [(case["summary"]["completed"], case["summary"]["iterations"]) for case in found["cases"]]
    assert file["iterations"] == max(planned for _, planned in counts)
    assert file["completed"] == min([done for done, planned in counts if done < planned], default=file["iterations"])
    for case in found["cases"]:
        summary, iterations = case["summary"], case["iterations"]
        fields = "timestamp elapsed iterations completed name promptLists expectations dependencies successes"
        assert " ".join(summary) == fields
        assert summary["completed"] == len(iterations) <= summary["iterations"]
        assert all(len(one["outcomes"]) == len(summary["expectations"]) for one in iterations)
        tally = [
            sum(one["outcomes"][place]["outcome"] for one in iterations) for place in range(len(summary["successes"]))
        ]
        assert len(summary["successes"]) == len(summary["expectations"])
        assert summary["successes"] == tally
        assert file["timestamp"] <= summary["timestamp"] or not iterations
        assert summary["timestamp"] + summary["elapsed"] <= file["timestamp"] + file["elapsed"] or not iterations


def test_golden(tmp_path: Path, story: Any, golden: Callable[[str, str], None]) -> None:
    source = open_file(tmp_path)
    report = begin(source, story, runs=2)
    chain = trial(source, 0, 1, 1, runs=2)
    report.ended(chain, result(chain, "passed", "failed", after=2.0))
    first = trial(source, 0, 0, 1, runs=2)
    report.ended(first, result(first, "passed", "passed", after=1.0))
    last = trial(source, 1, 0, 2, runs=2)
    report.ended(last, result(last, "failed", after=10.0))
    text = (tmp_path / "ocean.tps.json").read_text("utf-8")
    check_invariants(json.loads(text))
    golden("ocean.tps.json", text.replace(tmp_path.as_posix(), "tests"))
    assert not report.problems
    assert report.path == tmp_path / "ocean.tps.json"


def test_an_earlier_report_stays_until_there_is_a_result(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    earlier = tmp_path / "ocean.tps.json"
    earlier.write_text("earlier")
    report = begin(source, story)
    one = trial(source)
    report.began(one)
    for bad in (
        result(one, "passed", "unjudged"),
        result(one, "failed", "unjudged"),
        result(one, "passed"),
        result(one, status="timeout", error="timeout after 1s"),
        result(one, "passed", "passed", status="error", blame="environment"),
        result(one, status="blocked"),
        result(one, status="cancelled"),
        result(one, status="failed", error="max_steps exceeded"),
    ):
        report.ended(one, bad)
        assert earlier.read_text() == "earlier"
    assert report.path is None
    report.ended(one, result(one, "passed", "passed"))
    assert read(tmp_path)["cases"][0]["summary"]["completed"] == 1
    report.end(story.end())
    assert [entry.name for entry in sorted(tmp_path.iterdir())] == ["ocean.test.md", "ocean.tps.json"]


Ending = tuple[tuple[int, int], int, list[str], str | None, float]
"""Case and variation, run, outcomes, status, when it began."""
ENDINGS = st.lists(
    st.tuples(
        st.sampled_from([(0, 0), (0, 1), (1, 0)]),
        st.integers(1, 3),
        st.lists(st.sampled_from(["passed", "failed", "unjudged"]), min_size=0, max_size=2),
        st.sampled_from([None, "error", "timeout", "blocked", "cancelled"]),
        st.floats(0, 1000),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ENDINGS)
def test_what_always_holds(story: Any, endings: list[Ending]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = open_file(folder)
        report = begin(source, story, runs=3)
        wanted: dict[tuple[int, int, int], list[bool]] = {}
        for (index, variation), run, outcomes, status, after in endings:
            one = trial(source, index, variation, run, runs=3)
            more = {"status": status} if status else {}
            told = outcomes[: len(one.case.expectations)]
            report.ended(one, result(one, *told, after=after, **more))
            if status is None and "unjudged" not in told and len(told) == len(one.case.expectations):
                wanted[index, variation, run] = [outcome == "passed" for outcome in told]
            assert (folder / "ocean.tps.json").exists() == bool(wanted)
            if wanted:
                found = read(folder)
                check_invariants(found)
                shown = [
                    [outcome["outcome"] for outcome in iteration["outcomes"]]
                    for case in found["cases"]
                    for iteration in case["iterations"]
                ]
                assert shown == [wanted[place] for place in sorted(wanted)]
                assert [case["summary"]["iterations"] for case in found["cases"]] == [6, 3]
        assert not report.problems


def test_of_several_agents_it_is_about_the_first(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    report = begin(source, story)
    other = trial(source, agent="other", ad_hoc=True)
    report.ended(other, result(other, "failed", "failed"))
    assert read(tmp_path)["summary"]["target"] == "other"
    first = trial(source, 0, 1)
    report.ended(first, result(first, "passed", "passed"))
    report.ended(other, result(other, "failed", "failed"))
    found = read(tmp_path)
    assert found["cases"][0]["summary"]["successes"] == [1, 1]
    check_invariants(found)


def test_trials_of_other_files_are_none_of_its_business(tmp_path: Path, story: Any) -> None:
    (tmp_path / "a").mkdir()
    here, there = open_file(tmp_path), open_file(tmp_path / "a")
    report = begin(here, story)
    one = trial(there)
    report.ended(one, result(one, "passed", "passed"))
    assert not (tmp_path / "ocean.tps.json").exists()


def test_who_judges_and_who_is_tested(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path, FILE.replace("assessor: agents/judge.md\n", ""))
    one = trial(source, agent="agent.py:run", ad_hoc=True)
    for options, judge in (({}, "built-in"), ({"assessor": "gpt"}, "gpt")):
        report = begin(source, story, **options)
        report.ended(one, result(one, "passed", "passed"))
        summary = read(tmp_path)["summary"]
        assert (summary["target"], summary["assessor"]) == ("agent.py:run", judge)


def test_what_can_not_be_written_is_a_problem(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    (tmp_path / "ocean.tps.json").mkdir()
    report = begin(source, story)
    one = trial(source)
    for _ in range(2):
        report.ended(one, result(one, "passed", "passed"))
    report.end(story.end())
    (problem,) = report.problems
    assert problem.startswith(f"{tmp_path / 'ocean.tps.json'}: ")


def test_a_file_that_is_gone_is_a_problem(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    (tmp_path / "ocean.test.md").unlink()
    report = begin(source, story)
    one = trial(source)
    report.ended(one, result(one, "passed", "passed"))
    assert report.problems == [f"{tmp_path / 'ocean.test.md'}: No such file or directory"]
    assert not (tmp_path / "ocean.tps.json").exists()


def test_a_large_report_is_not_written_all_the_time_but_in_the_end(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    report = begin(source, story, runs=30)
    for run in range(1, 31):
        one = trial(source, run=run, runs=30)
        long = result(one, "passed", "passed")
        long.verdicts[0].message = "x" * 200_000
        report.ended(one, long)
    report.end(story.end())
    found = read(tmp_path)
    check_invariants(found)
    assert found["cases"][0]["summary"]["completed"] == 30


def test_secrets_are_hidden(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    report = begin(source, story)
    one = trial(source, 0, 1)
    said = result(one, "passed", "failed")
    said.verdicts[0].message = "the key is s3cr3t-key"
    report.ended(one, said)
    assert "s3cr3t" not in (tmp_path / "ocean.tps.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("file", "path"),
    [("x.test.md", "x.tps.json"), ("a/b.c.TEST.MD", "a/b.c.tps.json"), ("x.md", None), ("x.jsonl", None)],
)
def test_where_it_is(file: str, path: str | None) -> None:
    assert tps_path(Path(file)) == (Path(path) if path else None)


def test_the_command_line_makes_one_for_each_markdown_file(tmp_path: Path) -> None:
    given = Reads(files=(tmp_path / "ocean.test.md",), markdown=(open_file(tmp_path),))
    assert [type(one) for one in choose(Options(quiet=True), given)][:1] == [TpsReport]
    with pytest.raises(Exception, match="a TPS report is written there"):
        choose(Options(output=[str(tmp_path / "ocean.tps.json")]), given)
    assert not any(isinstance(one, TpsReport) for one in choose(Options(), Reads(files=(tmp_path / "x.yaml",))))


# What git knows.


def test_the_id_of_a_blob() -> None:
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert blob_id(b"what is up, doc?") == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"


def test_head_is_what_git_says(tmp_path: Path, story: Any) -> None:
    needs("git")
    repo = tmp_path / "repo"
    (repo / "tests").mkdir(parents=True)
    git(repo, "init", "-q")
    source = open_file(repo / "tests")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "one")
    report = begin(source, story)
    one = trial(source)
    report.ended(one, result(one, "passed", "passed"))
    found = read(repo / "tests")
    assert found["summary"]["path"] == "tests/ocean.test.md"
    assert found["summary"]["hash"] == git(repo, "rev-parse", "HEAD:tests/ocean.test.md")
    assert found["cases"][0]["iterations"][0]["commit"] == git(repo, "rev-parse", "HEAD")


def test_without_git_there_is_no_commit(tmp_path: Path, story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    monkeypatch.setenv("PATH", "")
    source = open_file(tmp_path)
    report = begin(source, story)
    one = trial(source)
    report.ended(one, result(one, "passed", "passed"))
    found = read(tmp_path)
    assert found["cases"][0]["iterations"][0]["commit"] == NO_COMMIT
    assert found["summary"]["path"] == "ocean.test.md"
    assert found["summary"]["hash"] == blob_id((tmp_path / "ocean.test.md").read_bytes())


def everything(source: CaseSource) -> list[tuple[TrialRef, TrialResult]]:
    """All trials of the file, with outcomes."""
    cases = source.suite.cases
    trials = [trial(source, case.index, variation) for case in cases for variation in range(max(len(case.chains), 1))]
    return [(one, result(one, *["passed"] * len(one.case.expectations))) for one in trials if not one.case.only_before]


def test_a_finished_run_is_told_by_its_counts(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path, FILE + "\n## Only before\n\n**Prompts:**\n\n- pour the water\n")
    assert source.suite.cases[-1].only_before
    report = begin(source, story)
    seen, found = [], {}
    for one, ended in everything(source):
        report.ended(one, ended)
        found = read(tmp_path)
        check_invariants(found)
        seen.append((found["summary"]["completed"], found["summary"]["iterations"]))
    assert [case["summary"]["iterations"] for case in found["cases"]] == [2, 1, 0]
    assert seen == [(0, 2), (0, 2), (2, 2)]


@pytest.mark.parametrize("only_failed", [False, True])
def test_a_run_of_some_cases_keeps_the_outcomes_of_the_others(tmp_path: Path, story: Any, only_failed: bool) -> None:
    source = open_file(tmp_path)
    report = begin(source, story)
    for one, ended in everything(source):
        report.ended(one, ended)
    before = read(tmp_path)
    second = f"^{re.escape(source.suite.cases[1].id)}$"
    report = begin(source, story, **({"only_failed": True} if only_failed else {"run": second}))
    one = trial(source, 1)
    report.ended(one, result(one, *["failed"] * len(one.case.expectations), after=100.0))
    found = read(tmp_path)
    check_invariants(found)
    assert found["cases"][0] == before["cases"][0]
    assert not any(found["cases"][1]["summary"]["successes"])
    assert found["summary"]["completed"] == found["summary"]["iterations"]


def test_outcomes_of_another_agent_or_of_a_changed_case_are_not_kept(tmp_path: Path, story: Any) -> None:
    def first_case_after(text: str = FILE, **more: Any) -> int:
        whole = open_file(tmp_path)
        report = begin(whole, story)
        for one, ended in everything(whole):
            report.ended(one, ended)
        source = open_file(tmp_path, text)
        report = begin(source, story, run=f"^{re.escape(source.suite.cases[1].id)}$")
        one = trial(source, 1, **more)
        report.ended(one, result(one, *["passed"] * len(one.case.expectations)))
        count: int = read(tmp_path)["cases"][0]["summary"]["completed"]
        return count

    assert first_case_after() == 2
    assert first_case_after(agent="other", ad_hoc=True) == 0
    assert first_case_after(FILE.replace(open_file(tmp_path).suite.cases[0].expectations[0], "it differs")) == 0


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"summary": 1, "cases": []}', b"\xff"])
def test_an_earlier_report_that_is_none_is_replaced(tmp_path: Path, story: Any, content: bytes) -> None:
    source = open_file(tmp_path)
    (tmp_path / "ocean.tps.json").write_bytes(content)
    report = begin(source, story, run="^nothing$")
    one = trial(source)
    report.ended(one, result(one, "passed", "passed"))
    assert read(tmp_path)["cases"][0]["summary"]["completed"] == 1


def test_the_invariants_can_fail(tmp_path: Path, story: Any) -> None:
    source = open_file(tmp_path)
    report = begin(source, story)
    one = trial(source)
    report.ended(one, result(one, "passed", "failed"))
    good = read(tmp_path)
    check_invariants(good)
    spoils: list[Callable[[dict[str, Any]], object]] = [
        lambda found: found["summary"].update(completed=5),
        lambda found: found["cases"][0]["summary"].update(successes=[1, 1]),
        lambda found: found["cases"][0]["iterations"].clear(),
        lambda found: found["cases"][0]["iterations"][0]["outcomes"].pop(),
    ]
    for spoil in spoils:
        bad = copy.deepcopy(good)
        spoil(bad)
        with pytest.raises(AssertionError):
            check_invariants(bad)


def test_a_case_without_prompts_has_none(tmp_path: Path, story: Any) -> None:
    """It judges what its befores have left."""
    source = open_file(tmp_path, FILE.replace("**Prompts:**\n\n- cool it again\n\n", ""))
    report = begin(source, story)
    late = trial(source, 1)
    report.ended(late, result(late, "passed"))
    found = read(tmp_path)["cases"][1]
    assert (found["summary"]["promptLists"], found["summary"]["dependencies"]) == ([], [0])
    assert found["iterations"][0]["prompts"] == []
