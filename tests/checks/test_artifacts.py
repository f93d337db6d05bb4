"""`artifact_exists` and `expected_artifacts` (rulings §2)."""

import base64
import hashlib
import os
from collections.abc import Callable
from typing import Any

import pytest

from atp.checks import agent_files
from atp.checks.matching.globs import matches_glob, normal_path
from atp.checks.matching.patterns import LONGEST_AT_ONCE
from atp.suite.result import Artifact, Verdict

Judge = Callable[..., Verdict]
MakeFolder = Callable[..., Any]

REPORT = '{"total": 3, "items": ["é"]}'
FILES = {
    "report.json": REPORT,
    "charts/2024/revenue.png": b"\x89PNG\x00",
    "notes [1].txt": "hello world\n",
    "empty": "",
}


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"path": "report.json"}, True),
        ({"path": "./report.json"}, True),
        ({"path": "Report.json"}, False),
        ({"path": "missing.txt"}, False),
        ({"path": "seed.txt"}, False),
        ({"path": "changed.txt"}, True),
        ({"path": "*.json"}, True),
        ({"path": "*.csv"}, False),
        ({"path": "*.png"}, False),
        ({"path": "**/*.png"}, True),
        ({"path": "**/*.json"}, True),
        ({"path": "charts/**"}, True),
        ({"path": "charts/"}, True),
        ({"path": "charts/*/revenue.???"}, True),
        ({"path": "charts/*/revenue.??"}, False),
        ({"path": "charts"}, False),
        ({"path": "notes [1].txt"}, True),
        ({"path": "report.json", "contains": '"total": 3'}, True),
        ({"path": "report.json", "contains": "é"}, True),
        ({"path": "report.json", "contains": "total: 4"}, False),
        ({"path": "report.json", "matches": r'"total": \d'}, True),
        ({"path": "report.json", "matches": "^x"}, False),
        ({"path": "report.json", "json_schema": {"required": ["total"]}}, True),
        ({"path": "report.json", "json_schema": {"required": ["sum"]}}, False),
        ({"path": "notes [1].txt", "json_schema": {}}, False),
        ({"path": "report.json", "min_bytes": len(REPORT.encode())}, True),
        ({"path": "report.json", "min_bytes": len(REPORT.encode()) + 1}, False),
        ({"path": "empty"}, True),
        ({"path": "empty", "min_bytes": 1}, False),
        ({"path": "report.json", "sha256": hashlib.sha256(REPORT.encode()).hexdigest().upper()}, True),
        ({"path": "report.json", "sha256": "0" * 64}, False),
        # Of several files one is enough.
        ({"path": "*", "contains": "hello"}, True),
        ({"path": "*", "contains": "goodbye"}, False),
        ({"path": "report.json", "negate": True}, False),
        ({"path": "missing.txt", "negate": True}, True),
    ],
)
def test_in_the_workspace(judge: Judge, folder: MakeFolder, given: dict[str, Any], holds: bool) -> None:
    workspace = folder({**FILES, "seed.txt": "x", "changed.txt": "y"}, seeded={"seed.txt"})
    verdict = judge({"type": "artifact_exists", **given}, workspace=workspace)
    assert verdict.outcome == ("passed" if holds else "failed"), verdict.message


ARTIFACTS = [
    Artifact(name="out/summary.txt", text="Total: 3"),
    Artifact(name="data.bin", base64=base64.b64encode(b"\x00\x01\x02").decode()),
    Artifact(name="result", kind="structured", data={"total": 3, "text": 'a "b"'}),
    Artifact(name="named.txt", kind="reference", size_bytes=99),
    Artifact(name="claimed.txt", sha256="0" * 64),
]


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"path": "out/summary.txt", "contains": "Total"}, True),
        ({"path": "out/*.txt", "min_bytes": 8}, True),
        ({"path": "data.bin", "min_bytes": 3}, True),
        ({"path": "data.bin", "min_bytes": 4}, False),
        ({"path": "data.bin", "sha256": hashlib.sha256(b"\x00\x01\x02").hexdigest()}, True),
        ({"path": "result", "json_schema": {"properties": {"total": {"const": 3}}}}, True),
        ({"path": "result", "json_schema": {"properties": {"total": {"const": 4}}}}, False),
        ({"path": "result", "contains": '"total":3'}, True),
        ({"path": "result", "contains": 'a "b"'}, True),
        # Given only by reference: it must be in the workspace.
        ({"path": "named.txt"}, False),
        ({"path": "claimed.txt"}, False),
        ({"path": "claimed.txt", "sha256": "0" * 64}, False),
        ({"path": "claimed.txt", "min_bytes": 1}, False),
    ],
)
def test_in_what_the_agent_returned(judge: Judge, given: dict[str, Any], holds: bool) -> None:
    verdict = judge({"type": "artifact_exists", **given}, artifacts=ARTIFACTS)
    assert verdict.outcome == ("passed" if holds else "failed"), verdict.message


def test_a_reference_is_looked_up_in_the_workspace(judge: Judge, folder: MakeFolder) -> None:
    given = {"type": "artifact_exists", "path": "named.txt", "contains": "here"}
    assert judge(given, artifacts=ARTIFACTS, workspace=folder({"named.txt": "I am here"})).passed
    verdict = judge({"type": "artifact_exists", "path": "named.txt"}, artifacts=ARTIFACTS, workspace=folder({}))
    assert verdict.passed  # the file of the first judgement is still there
    seeded = judge(given, artifacts=ARTIFACTS, workspace=folder({}, seeded={"named.txt"}))
    assert "not in the workspace" in seeded.message


def test_the_message_says_what_there_was(judge: Judge, folder: MakeFolder) -> None:
    workspace = folder({"a.txt": "", "seed.txt": ""}, seeded={"seed.txt"})
    verdict = judge({"type": "artifact_exists", "path": "b.txt"}, workspace=workspace)
    assert verdict.message == "expected the artifact `b.txt`, found a.txt"
    seeded = judge({"type": "artifact_exists", "path": "seed.txt"}, workspace=workspace)
    assert "the agent did not make or change it" in seeded.message


def test_a_link_out_of_the_workspace_is_no_artifact(judge: Judge, folder: MakeFolder, tmp_path: Any) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    workspace = folder({"real.txt": "inside"})
    os.symlink(tmp_path / "secret.txt", workspace.path() / "out.txt")
    os.symlink(workspace.path() / "real.txt", workspace.path() / "inner.txt")
    os.symlink("nowhere", workspace.path() / "dangling.txt")
    os.symlink("loop.txt", workspace.path() / "loop.txt")
    for name in ("out.txt", "dangling.txt", "loop.txt"):
        for more in ({}, {"contains": "secret"}, {"min_bytes": 1}):
            assert judge({"type": "artifact_exists", "path": name, **more}, workspace=workspace).outcome == "failed"
    assert judge({"type": "artifact_exists", "path": "inner.txt", "contains": "inside"}, workspace=workspace).passed


def test_nobody_looks_behind_a_link_to_a_folder_elsewhere(judge: Judge, folder: MakeFolder, tmp_path: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text("secret")
    workspace = folder({"real/a.txt": "inside"})
    os.symlink(tmp_path / "elsewhere", workspace.path() / "out")
    os.symlink("real", workspace.path() / "inner")
    for path in ("out/secret.txt", "out/*.txt", "**/secret.txt", "out"):
        given = {"type": "artifact_exists", "path": path}
        assert judge(given, workspace=workspace).outcome == "failed"
        assert judge({**given, "negate": True}, workspace=workspace).outcome == "unjudged"
    assert judge({"type": "artifact_exists", "path": "inner/a.txt"}, workspace=workspace).passed
    assert judge({"type": "artifact_exists", "path": "inner/b.txt", "negate": True}, workspace=workspace).passed
    assert judge({"type": "artifact_exists", "path": "*.csv", "negate": True}, workspace=workspace).passed


def test_files_that_were_there_count_if_asked_for(judge: Judge, folder: MakeFolder) -> None:
    workspace = folder({"made.txt": "", "seed.txt": ""}, seeded={"seed.txt"})
    for path, there in (("made.txt", True), ("seed.txt", True), ("*.txt", True), ("gone.txt", False)):
        given = {"type": "artifact_exists", "path": path, "untouched": True}
        assert judge(given, workspace=workspace).passed is there
        assert judge({**given, "negate": True}, workspace=workspace).passed is not there


def test_a_folder_is_no_file(judge: Judge, folder: MakeFolder) -> None:
    verdict = judge({"type": "artifact_exists", "path": "charts"}, workspace=folder(FILES))
    assert "it is a folder: `charts/` asks for a file in it" in verdict.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
@pytest.mark.parametrize(
    ("made", "seeded", "given", "outcome"),
    [
        ({"d/a.txt": "x"}, set(), {"path": "d"}, "unjudged"),
        ({"d/e/a.txt": "x"}, set(), {"path": "./d/e"}, "unjudged"),
        ({"d/a.txt": "x"}, {"d/a.txt"}, {"path": "d"}, "passed"),
        ({"d/a.txt": "x"}, {"d/a.txt"}, {"path": "d", "untouched": True}, "unjudged"),
        ({"d/a.txt": "x", "d/b.txt": "x"}, {"d/a.txt"}, {"path": "d"}, "unjudged"),
        ({"d/a.txt": "x"}, set(), {"path": "d/"}, "failed"),
        ({"d/a.txt": "x"}, set(), {"path": "d", "contains": "x"}, "unjudged"),
        ({"dd/a.txt": "x"}, set(), {"path": "d"}, "passed"),
        ({"d": "x"}, set(), {"path": "d"}, "failed"),
    ],
)
def test_a_folder_does_not_speak_for_the_absence_of_its_name(
    judge: Judge, folder: MakeFolder, made: dict[str, str], seeded: set[str], given: dict[str, Any], outcome: str
) -> None:
    negated = {"type": "artifact_exists", "negate": True, **given}
    verdict = judge(negated, workspace=folder(made, seeded=seeded))
    assert verdict.outcome == outcome, verdict.message
    if outcome == "unjudged":
        assert "/` asks for its files" in verdict.message
        around = {"type": "none_of", "assertions": [{"type": "artifact_exists", **given}]}
        assert judge(around, workspace=folder(made, seeded=seeded)).outcome == "unjudged"


def test_an_empty_folder_or_one_of_artifacts_leaves_the_absence_open(judge: Judge, folder: MakeFolder) -> None:
    workspace = folder({"a.txt": "x"})
    (workspace.path() / "d").mkdir()
    negated = {"type": "artifact_exists", "path": "d", "negate": True}
    assert judge(negated, workspace=workspace).outcome == "unjudged"
    assert judge(negated, artifacts=[{"name": "d/a.txt", "type": "file", "content": "x"}]).outcome == "unjudged"


def test_a_pipe_is_no_file_and_nobody_waits_for_it(judge: Judge, folder: MakeFolder) -> None:
    workspace = folder({})
    os.mkfifo(workspace.path() / "out.txt")
    for more in ({}, {"contains": "x"}, {"sha256": "0" * 64}):
        verdict = judge({"type": "artifact_exists", "path": "out.txt", **more}, workspace=workspace)
        assert verdict.outcome == "failed"
        assert "not a regular file" in verdict.message


def test_a_file_too_large_to_read_is_unjudged(
    judge: Judge, folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_files, "LARGEST", 10)
    workspace = folder({"big.txt": "x" * 11, "small.txt": "y"})
    given = {"type": "artifact_exists", "path": "big.txt", "contains": "x"}
    assert judge(given, workspace=workspace).outcome == "unjudged"
    assert judge({**given, "negate": True}, workspace=workspace).outcome == "unjudged"
    assert judge({"type": "artifact_exists", "path": "big.txt", "min_bytes": 11}, workspace=workspace).passed
    assert judge({"type": "artifact_exists", "path": "*.txt", "contains": "y"}, workspace=workspace).passed
    assert (
        judge({"type": "artifact_exists", "path": "*.txt", "contains": "z"}, workspace=workspace).outcome == "unjudged"
    )


def test_a_slow_pattern_on_a_file_is_unjudged(judge: Judge, folder: MakeFolder, fast_patience: None) -> None:
    workspace = folder({"a.txt": "a" * 5000 + "b"})
    verdict = judge({"type": "artifact_exists", "path": "a.txt", "matches": "(a|aa)+$"}, workspace=workspace)
    assert verdict.outcome == "unjudged"


def test_bytes_that_are_not_text_are_searched_all_the_same(judge: Judge, folder: MakeFolder) -> None:
    workspace = folder({"a.bin": b"\xff\xfe hello \xff"})
    assert judge({"type": "artifact_exists", "path": "a.bin", "contains": "hello"}, workspace=workspace).passed


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a.txt", "a.txt", True),
        ("*", "a.txt", True),
        ("*", "a/b", False),
        ("**", "a/b/c", True),
        ("**/c", "c", True),
        ("**/c", "a/b/c", True),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/**/c", "a/b/d", False),
        ("a/*/c", "a/c", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("*a*b*", "xaxbx", True),
        ("*a*b", "xaxbx", False),
        ("[a]", "a", False),
        ("[a]", "[a]", True),
        ("**/*.py", "x/.py", True),
        ("", "", True),
        ("**/a/**/b", "x/a/y/a/b", True),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert matches_glob(pattern, path) is matches


def test_paths_are_brought_into_one_form() -> None:
    assert normal_path("./a//b/./c") == "a/b/c"
    assert normal_path("a\\b") == "a/b"
    assert normal_path("a/") == "a/**"


def test_broken_base64_is_unjudged(judge: Callable[..., Verdict]) -> None:
    artifacts = [Artifact(name="a.bin", base64="x"), Artifact(name="ok.txt", text="héllo")]
    given = {"type": "artifact_exists", "path": "a.bin", "min_bytes": 1}
    assert judge(given, artifacts=artifacts).outcome == "unjudged"
    assert judge({**given, "path": "ok.txt", "min_bytes": 6}, artifacts=artifacts).passed


def test_what_stands_for_bytes_that_are_no_text_is_not_found(judge: Judge, folder: MakeFolder) -> None:
    workspace = folder({"a.bin": b"\xff\xfe hello"})
    given = {"type": "artifact_exists", "path": "a.bin", "contains": "\ufffd"}
    assert judge(given, workspace=workspace).outcome == "unjudged"


def test_a_long_text_that_an_agent_returns_is_searched_in_a_thread(judge: Judge) -> None:
    artifacts = [Artifact(name="a.txt", text="y" * (LONGEST_AT_ONCE + 1) + "x")]
    given = {"type": "artifact_exists", "path": "a.txt", "matches": "yx$"}
    assert judge(given, artifacts=artifacts).passed
    assert judge({**given, "matches": "z"}, artifacts=artifacts).outcome == "failed"


def test_base64_may_be_broken_into_lines(judge: Judge) -> None:
    artifacts = [Artifact(name="a.txt", base64="aGVs\r\nbG8=\n")]
    assert judge({"type": "artifact_exists", "path": "a.txt", "contains": "hello"}, artifacts=artifacts).passed
