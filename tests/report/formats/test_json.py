"""The JSON report: document 4's shape, whole or not at all, in the files' order, in flat memory."""

import gc
import json
import os
import random
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parts import needs

from atp.report.formats.json import JsonReport
from atp.report.formats.jsonl import JsonlReport
from atp.report.records.report import read_report
from atp.suite.result import CaseResult, MadeFile


def written(path: Path, story: Any, cases: list[CaseResult], **end: Any) -> dict[str, Any]:
    story.tell([JsonReport(path)], cases, story.end(**end))
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


@pytest.mark.parametrize("name", ["troubles", "repeated"])
def test_golden(
    tmp_path: Path, story: Any, golden: Callable[[str, str], None], name: str, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "report.json"
    report = JsonReport(path)
    report.skipped("tests/expense.jsonl", story.skipped())  # before the start it has nowhere to go
    report.start(story.info())
    report.skipped("tests/expense.jsonl", story.skipped())
    for case in request.getfixturevalue(name):
        report.case(case)
    report.end(story.end())
    golden(f"{name}.json", path.read_text(encoding="utf-8"))


def test_the_documents_shape(tmp_path: Path, story: Any, document: list[CaseResult]) -> None:
    report = written(tmp_path / "report.json", story, document)
    figures = ["gates", "metrics", "groups"]
    assert list(report) == ["format", "summary", "environment", "results", "skipped", *figures, "metadata"]
    assert report["format"] == 1
    summary = {"total", "passed", "failed", "skipped", "duration_ms", "agent_id", "connector", "runs_per_case"}
    assert summary <= report["summary"].keys()
    assert report["environment"] == {"user_id": "test-user", "team_id": "test-team", "locale": "en-us"}
    assert {"id", "status", "input", "output", "expected", "duration_ms", "error"} <= report["results"][0].keys()
    assert report["metadata"]["started_at"] == "2024-12-17T10:00:00Z"
    assert report["metadata"]["completed_at"] == "2024-12-17T10:00:05Z"
    assert report["metadata"]["version"] == "0.1.0"


def test_the_documents_stability_fields(tmp_path: Path, story: Any, repeated: list[CaseResult]) -> None:
    first, second, third = written(tmp_path / "report.json", story, repeated)["results"]
    fields = {
        "id": "T001",
        "runs": 3,
        "passed": 3,
        "failed": 0,
        "pass_rate": 100.0,
        "consistency": 1.0,
        "output_consistency": 1.0,
        "stable": True,
        "avg_duration_ms": 233,
        "min_duration_ms": 210,
        "max_duration_ms": 256,
        "std_deviation_ms": 18.8,
    }
    assert {key: first[key] for key in fields} == fields
    details = [(one["run"], one["status"], one["duration_ms"]) for one in first["run_details"]]
    assert details == [(1, "passed", 234), (2, "passed", 210), (3, "passed", 256)]
    assert [one["output"] for one in second["run_details"]] == ["What type?", "Hm?", "What type?"]
    some = {"passed": 2, "failed": 1, "pass_rate": 66.7, "consistency": 0.67, "stable": False, "status": "failed"}
    assert {key: second[key] for key in some} == some
    assert second["error"] == "no type"
    assert second["output"] == "Hm?"
    assert (third["status"], third["error"], third["pass_rate"]) == ("passed", None, 66.7)


def test_the_documents_recipe(tmp_path: Path, story: Any, repeated: list[CaseResult]) -> None:
    needs("jq")
    path = tmp_path / "report.json"
    recipe = ["jq", "-e", ".results | all(.pass_rate >= 80)", str(path)]
    written(path, story, repeated[:1])
    assert subprocess.run(recipe, capture_output=True, check=False).returncode == 0
    written(path, story, repeated)
    assert subprocess.run(recipe, capture_output=True, check=False).returncode == 1


def test_a_cases_own_user_team_and_metadata_are_in_its_result(tmp_path: Path, story: Any) -> None:
    own = {"user": "eve", "team": "red", "metadata": {"ticket": "A-7"}}
    cases = [story.case("own", **own), story.case("plain")]
    story.tell([JsonlReport(tmp_path / "run.jsonl")], cases, story.end())
    report = written(tmp_path / "report.json", story, cases)
    assert {key: report["results"][0].get(key) for key in own} == own
    assert not own.keys() & report["results"][1].keys()
    assert read_report((tmp_path / "report.json").read_bytes()).results[0].metadata == own["metadata"]
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]
    assert [{key: one[key] for key in own if key in one} for one in events if one["type"] == "result"] == [own, {}]


def test_every_result_has_a_pass_rate(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    results = written(tmp_path / "report.json", story, troubles)["results"]
    assert [one["pass_rate"] for one in results] == [0.0] * 7 + [100.0, 0.0]


def test_a_rate_is_not_rounded_up_to_a_gate(tmp_path: Path, story: Any) -> None:
    trials = [story.trial(run=number, status="passed" if number <= 1999 else "failed") for number in range(1, 2501)]
    (result,) = written(tmp_path / "report.json", story, [story.case("c", *trials)])["results"]
    assert result["pass_rate"] == 79.9


def test_variations_are_told_apart_from_runs(tmp_path: Path, story: Any) -> None:
    trials = [story.trial(variation=variation, run=run, score=80.0) for variation in range(2) for run in (1, 2)]
    trials[3].status = "failed"
    case = story.case("c", *trials, status="failed")
    (result,) = written(tmp_path / "report.json", story, [case])["results"]
    assert (result["runs"], result["passed"], result["iterations"], result["pass_rate"]) == (4, 3, 2, 75.0)
    assert [(one["variation"], one["runs"], one["pass_rate"]) for one in result["variations"]] == [
        (0, 2, 100.0),
        (1, 2, 50.0),
    ]
    assert [(one["variation"], one["run"]) for one in result["run_details"]] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert (result["score"], result["std_deviation_score"]) == (80.0, 0.0)


def test_the_agents_error_stands_for_the_case(tmp_path: Path, story: Any) -> None:
    """As in the summary, which counts a case as failed when one of its errors is the agent's."""
    network = story.trial(status="error", blame="environment", error="connection refused")
    agent = story.trial(status="error", blame="agent", error="agent error: boom", run=2)
    case = story.case("c", network, agent, status="error")
    (result,) = written(tmp_path / "report.json", story, [case])["results"]
    assert (result["error"], result["blame"]) == ("agent error: boom", "agent")


def test_results_stand_in_the_order_of_the_files(tmp_path: Path, story: Any) -> None:
    cases = [
        story.case(f"{file}-{index}-{agent}", index=index, file=file, agent=agent)
        for file in ("b.jsonl", "a.jsonl")
        for index in range(20)
        for agent in ("one", "two")
    ]
    shuffled = cases[:1] + random.Random(1).sample(cases[1:40], 39) + random.Random(2).sample(cases[40:], 40)
    path = tmp_path / "report.json"
    report = written(path, story, shuffled, info=story.info(agents=["one", "two"]))
    assert [one["id"] for one in report["results"]] == [one.case for one in cases]


def test_it_appears_whole_at_the_end(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "report.json"
    path.write_text("earlier")
    path.chmod(0o640)
    report = JsonReport(path)
    report.start(story.info())
    report.case(story.case())
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]
    report.end(story.end())
    assert json.loads(path.read_bytes())["results"][0]["id"] == "c"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_one_and_a_device_is_not_replaced(tmp_path: Path, story: Any) -> None:
    real, link, nowhere = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "null.json"
    real.touch()
    link.symlink_to(real)
    nowhere.symlink_to(os.devnull)
    reports = [JsonReport(link), JsonReport(nowhere)]
    story.tell(reports, [story.case()], story.end())
    assert [list(one.problems) for one in reports] == [[], []]
    assert link.is_symlink()
    assert json.loads(real.read_bytes())["results"]
    assert not Path(os.devnull).is_file()


def test_a_full_disk_on_the_way_leaves_the_earlier_report(
    tmp_path: Path, story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("earlier")
    report = JsonReport(path)
    report.start(story.info())

    def full(place: int, item: bytes) -> None:
        raise OSError(28, "No space left on device")

    assert report._results is not None
    monkeypatch.setattr(report._results, "add", full)
    report.case(story.case())
    report.case(story.case())
    report.end(story.end())
    assert len(report.problems) == 1
    assert path.read_text() == "earlier"


def test_on_stdout(story: Any, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    story.tell([JsonReport(None)], [story.case(name="é\u2028")], story.end())
    assert json.loads(capsysbinary.readouterr().out)["results"][0]["name"] == "é\u2028"


@pytest.mark.no_cover  # which doubles what it takes, and other tests cover the same
def test_memory_stays_flat(tmp_path: Path, story: Any) -> None:
    """20,000 cases may cost the numbers that say where each is, and nothing more."""
    path = tmp_path / "report.json"
    report = JsonReport(path)
    report.start(story.info())
    trial = story.trial("x" * 500)

    def hear(first: int, last: int) -> None:
        for index in range(first, last):
            report.case(story.case(f"T{index}", trial, index=index))

    hear(0, 1000)
    gc.collect()
    tracemalloc.start()
    hear(1000, 2000)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 1000 * 64
    hear(2000, 20000)
    tracemalloc.start()
    report.end(story.end())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000 < path.stat().st_size / 5
    results = json.loads(path.read_bytes())["results"]
    assert [one["id"] for one in results] == [f"T{index}" for index in range(20000)]


def test_files_that_the_agent_made_are_named_with_size_and_digest(tmp_path: Path, story: Any) -> None:
    kept = MadeFile(name="out/a.csv", size=12, sha256="ab" * 32, kept=True)
    cases = [story.case("c", story.trial(files=[kept, MadeFile(name="b", size=3)])), story.case("d")]
    first, second = written(tmp_path / "report.json", story, cases)["results"]
    named = {"name": "out/a.csv", "size_bytes": 12, "sha256": "ab" * 32, "kept": True}
    assert first["files"] == [named, {"name": "b", "size_bytes": 3}]
    assert "files" not in second
