"""Snapshots by the command line, the API and pytest: golden files are compared with, written, and found obsolete."""

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.engine.support.project import Project, clean_environment

import atp

AGENT = """
    import json, os, pathlib

    def run(prompt, context):
        answers = json.loads(pathlib.Path(__file__).with_name("answers.json").read_text())
        found = answers.get(f"{prompt}.{context['run']}", answers.get(prompt))
        return found
"""
SHOP = {"name": "shop", "type": "custom", "config": {"entry": "agent.py:run"}}
ORDER = '{"id": 7, "items": ["tea"], "at": "12:01"}'


def answers(project: Project, **given: Any) -> None:
    project.write("agent.py", AGENT)
    project.write("answers.json", given)


def suite(project: Project, *assertions: dict[str, Any], **case: Any) -> str:
    return project.suite([SHOP], [{"id": "order", "input": "order", "assertions": list(assertions), **case}])


def golden(project: Project, name: str = "suite.yaml") -> dict[str, str]:
    """The golden files of a suite, by name."""
    folder = project.folder / "__snapshots__" / name
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*"))}


def messages(project: Project) -> list[str]:
    return [verdict["message"] for trial in project.trials() for verdict in trial.get("verdicts", [])]


def test_without_a_golden_file_the_check_fails_and_says_how_to_write_one(project: Project) -> None:
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot", "match": "text"})
    assert project.test(file).code == 1
    (message,) = messages(project)
    assert message == (
        "there is no golden file __snapshots__/suite.yaml/order@shop.text.txt: write it with --update-snapshots"
    )
    assert not (project.folder / "__snapshots__").exists()
    written = project.atp("test", file, "--update-snapshots")
    assert written.code == 0
    assert "1 golden file written: __snapshots__/suite.yaml/order@shop.text.txt" in written.out
    assert golden(project) == {"order@shop.text.txt": "Hello\n"}
    again = project.test(file)
    assert again.code == 0
    assert messages(project) == ["as in __snapshots__/suite.yaml/order@shop.text.txt"]


def test_a_recheck_writes_what_the_agent_answered_then(project: Project) -> None:
    answers(project, order="Hello")
    project.test(suite(project, {"type": "snapshot"}))
    answers(project, order="Good bye")
    assert project.atp("recheck", "last", "--update-snapshots").code == 0
    assert golden(project) == {"order@shop.text.txt": "Hello\n"}
    assert project.atp("recheck", "last").code == 0


@pytest.mark.parametrize("ci", ["true", "1"])
def test_nothing_is_written_when_ci_is_set(project: Project, ci: str) -> None:
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot"})
    ran = project.atp("test", file, "--update-snapshots", "-q", env={"CI": ci})
    assert ran.code == 1
    assert "no golden file is written or removed, because CI is set" in ran.err
    assert "--update-snapshots writes nothing here, because CI is set" in ran.out
    assert not (project.folder / "__snapshots__").exists()


@pytest.mark.parametrize(
    ("match", "first", "same", "other"),
    [
        ("text", "Hello\nyou", "Hello\nyou", "Hello\n you"),
        ("normalized", "Hello\n\n  you ", " Hello you\r\n", "Hello us"),
        (
            "json",
            f"Here:\n```json\n{ORDER}\n```",
            ' {"at": "9", "items": ["tea"], "id": 7.0}',
            '{"id": 8, "items": []}',
        ),
        ("json", {"$any": True}, '{"$any": true}', {"x": 1}),
    ],
)
def test_an_answer_is_compared_by_the_kind_of_match(
    project: Project, match: str, first: Any, same: Any, other: Any
) -> None:
    ignored = {"ignore": ["$.at"]} if match == "json" else {}
    file = suite(project, {"type": "snapshot", "match": match, **ignored})
    codes = []
    for answer, flags in ((first, ["--update-snapshots"]), (first, []), (same, []), (other, [])):
        answers(project, order={"output": answer})
        codes.append(project.test(file, *flags).code)
    assert codes == [0, 0, 0, 1]
    assert "differs from __snapshots__/suite.yaml/order@shop." in messages(project)[0]
    assert "; if the new answer is right: write it with --update-snapshots" in messages(project)[0]


def test_the_sequence_of_tool_calls_is_compared_with_its_arguments(project: Project) -> None:
    def calls(*names: str, **more: Any) -> dict[str, Any]:
        called = [{"name": name, "arguments": {"q": "tea", "request": len(name), **more}} for name in names]
        return {"output": "done", "tool_calls": called}

    file = suite(project, {"type": "snapshot", "match": "tools", "ignore": ["$.request"]})
    answers(project, order=calls("find", "pay"))
    assert project.test(file, "--update-snapshots").code == 0
    (text,) = golden(project).values()
    assert json.loads(text) == [{"name": name, "arguments": {"q": "tea"}} for name in ("find", "pay")]
    answers(project, order=calls("find", "pay", request=99))
    assert project.test(file).code == 0
    answers(project, order=calls("pay", "find"))
    assert project.test(file).code == 1
    assert 'expected "find" at $[0].name, found "pay"' in messages(project)[0]
    answers(project, order={**calls("find"), "usage": {"tool_calls": 5}})
    assert project.test(file).code != 0


def test_an_agent_that_reports_no_tool_calls_is_refused_for_a_snapshot_of_them(project: Project) -> None:
    agent = {"name": "says", "type": "cli", "config": {"command": "cat", "protocol": "text"}}
    file = project.suite([agent], [{"id": "a", "input": "a", "assertions": [{"type": "snapshot", "match": "tools"}]}])
    ran = project.atp("test", file)
    assert ran.code == 2
    assert "tool calls" in ran.err


def test_all_dialects_have_snapshots(project: Project) -> None:
    answers(project, a={"output": {"id": 1, "at": 5}, "tool_calls": [{"name": "find", "arguments": {}}]})
    checks = [{"type": "snapshot", "match": "json", "ignore": ["$.at"]}]
    project.cases({"id": "a", "input": "a", "assert": checks})
    project.write(
        "talk.test.md",
        """\
        ---
        ---

        # Desk

        ## Talk

        **Prompts:**

        - a

        **Expectations:**

        - The response matches the JSON snapshot ignoring `$.at`
        - The tool calls match the snapshot
        """,
    )
    for file in ("cases.jsonl", "talk.test.md"):
        ran = project.test(file, "-n", "agent.py:run")
        assert ran.code == 1, ran.err
        assert project.test(file, "-n", "agent.py:run", "--update-snapshots").code == 0
        answers(project, a={"output": {"id": 1, "at": 6}, "tool_calls": [{"name": "find", "arguments": {}}]})
        assert project.test(file, "-n", "agent.py:run").code == 0
    assert golden(project, "cases.jsonl") == {"a.json.json": '{\n  "id": 1\n}\n'}
    assert [name.partition(".")[2] for name in golden(project, "talk.test.md")] == ["json.json", "tools.json"]


def test_of_several_runs_the_first_writes_and_the_others_must_equal_it(project: Project) -> None:
    file = suite(project, {"type": "snapshot"})
    answers(project, **{"order.1": "one", "order.2": "two", "order.3": "one"})
    ran = project.test(file, "--runs", "3", "--update-snapshots")
    assert ran.code == 1
    assert golden(project) == {"order@shop.text.txt": "one\n"}
    assert [trial.get("status") for trial in project.trials()] == [None, "failed", None]
    assert messages(project)[1].endswith(
        "run 1 of agent `shop` wrote it, so the agent does not answer the same each time"
    )
    answers(project, order="one")
    assert project.test(file, "--runs", "3").code == 0


def test_each_agent_of_a_suite_and_each_variation_has_its_own_golden_file(project: Project) -> None:
    answers(project, a="A", b="B")
    project.write("agent2.py", "def run(prompt):\n    return prompt * 2\n")
    other = {"name": "other", "type": "custom", "config": {"entry": "agent2.py:run"}}
    project.suite([SHOP, other], [{"id": "x", "input": "a", "assertions": [{"type": "snapshot"}]}])
    assert project.test("suite.yaml", "--update-snapshots").code == 0
    assert golden(project) == {"x@other.text.txt": "aa\n", "x@shop.text.txt": "A\n"}
    # Another implementation under the name of a flag is the agent of the suite, whatever its address is.
    assert project.test("suite.yaml", "-n", "agent2.py:run", "--update-snapshots").code == 0
    assert project.test("suite.yaml", "-n", "agent.py:run").code == 1
    assert golden(project)["x.text.txt"] == "aa\n"


def test_each_column_of_a_matrix_has_its_own_golden_file(project: Project) -> None:
    project.write("agent.py", "def run(prompt, options):\n    return prompt * options['times']\n")
    check = [{"type": "snapshot"}]
    cases = [
        {"id": "both", "input": "la", "assertions": check},
        {"id": "twice", "input": "la", "assertions": check, "agents": ["shop [times=2]"]},
    ]
    file = project.suite([{**SHOP, "matrix": {"times": [1, 2]}}], cases)
    assert project.test(file, "--update-snapshots").code == 0
    assert sorted(golden(project).values()) == ["la\n", "lala\n", "lala\n"]
    ran = project.test(file)
    assert (ran.code, "no check uses" in ran.out + ran.err) == (0, False)


@pytest.mark.parametrize(
    ("flags", "names"),
    [([], ["order@shop@one.text.txt", "order@shop@two.text.txt"]), (["-n", "agent.py:run"], ["order@@one.text.txt"])],
)
def test_each_connector_of_a_run_with_several_has_its_own_golden_file(
    project: Project, flags: list[str], names: list[str]
) -> None:
    project.write("agent.py", "def run(prompt, context):\n    return prompt + context['connector']\n")
    file = suite(project, {"type": "snapshot"})
    columns = [*flags, "-c", "one", "-c", "two"]
    assert project.test(file, *columns, "--update-snapshots").code == 0
    assert {*names} <= {*golden(project)}
    assert sorted(golden(project).values()) == ["orderone\n", "ordertwo\n"]
    assert project.test(file, *columns).code == 0
    # A run with one connector, or with none, has a golden file as before, and does not remove those of the columns.
    assert project.test(file, *flags, "--update-snapshots", "-c", "one").code == 0
    assert len(golden(project)) == 3
    ran = project.test(file, *flags, "-c", "one")
    assert (ran.code, "no check uses" in ran.out + ran.err) == (0, False)


def test_who_wrote_a_golden_file_makes_no_difference_to_a_comparison(project: Project) -> None:
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot"})
    assert project.test(file, "--update-snapshots").code == 0
    assert project.test(file).code == 0
    (same,) = json.loads(project.atp("compare", "last~1", "last", "--json").out)["cases"]
    assert (same["class"], same.get("why")) == ("same", None)
    answers(project, order="Good day")
    assert project.test(file, "--update-snapshots").code == 0
    (other,) = json.loads(project.atp("compare", "last~1", "last", "--json").out)["cases"]
    assert (other["class"], other["why"]) == ("changed", "its golden files changed")


def test_obsolete_golden_files_are_reported_by_a_whole_run_and_removed_on_request(project: Project) -> None:
    answers(project, a="A", b="B")

    def cases(*names: str) -> str:
        tests = [{"id": name, "input": name, "assertions": [{"type": "snapshot"}]} for name in names]
        return project.suite([SHOP], tests)

    project.write("__snapshots__/test_code/test_one.json", "{}")  # of another tool
    project.write("__snapshots__/gone.yaml/a.text.txt", "A\n")
    file = cases("a", "b")
    assert project.test(file, "--update-snapshots").code == 0
    assert not (project.folder / "__snapshots__/gone.yaml").exists()
    cases("a")
    assert "no check uses" not in project.atp("test", file, "--run", "^a").out
    assert "no check uses" not in project.atp("test", file, "--run", "^a", "--update-snapshots").out
    ran = project.atp("test", file)
    assert ran.code == 0
    assert (
        "1 golden file no check uses: __snapshots__/suite.yaml/b@shop.text.txt; --update-snapshots removes" in ran.out
    )
    assert set(golden(project)) == {"a@shop.text.txt", "b@shop.text.txt"}
    assert "no check uses" not in project.atp("test", file, "-n", "agent.py:run", env={"CI": "1"}).err
    removed = project.atp("test", file, "--update-snapshots")
    assert "1 golden file removed that no check uses" in removed.out
    assert set(golden(project)) == {"a@shop.text.txt"}
    assert (project.folder / "__snapshots__/test_code/test_one.json").exists()


def test_secrets_are_masked_in_golden_files_and_any_secret_equals_the_mask(project: Project) -> None:
    file = suite(project, {"type": "snapshot"}, {"type": "snapshot", "match": "json"})
    first, second = "sk-first-secret-123", "sk-other-secret-456"
    for secret, flags in ((first, ["--update-snapshots"]), (second, [])):
        answers(project, order=f'{{"token": "{secret}"}}')
        assert project.test(file, *flags, env={"SHOP_API_KEY": secret}).code == 0
        assert first not in "".join(golden(project).values())
    assert project.test(file, env={"SHOP_API_KEY": first}).code == 1


@pytest.mark.parametrize(
    "hostile", ["../../escape", "/etc/passwd", "a/b", "..", "x" * 300, "CON\n", "\u202eabc", "a@b+1"]
)
def test_the_id_of_a_case_leads_nowhere_else(project: Project, hostile: str) -> None:
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot", "name": hostile}, id=hostile)
    before = {path for path in project.folder.parent.rglob("*") if ".atp" not in path.parts}
    assert project.test(file, "--update-snapshots").code == 0
    made = {path for path in project.folder.parent.rglob("*") if ".atp" not in path.parts} - before
    new = [path for path in made if path.is_file()]
    assert [path.parent for path in new] == [project.folder / "__snapshots__" / "suite.yaml"]
    assert project.test(file).code == 0


def test_a_negated_snapshot_without_a_golden_file_is_unjudged_and_never_written(project: Project) -> None:
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot", "negate": True})
    for flags in ([], ["--update-snapshots"]):
        assert project.test(file, *flags).code == 3
        assert not (project.folder / "__snapshots__").exists()
    suite(project, {"type": "none_of", "assertions": [{"type": "snapshot"}]})
    assert project.test(file).code == 3


@pytest.mark.parametrize("broken", [b"{", b"<<<<<<< HEAD\n{}\n", b"\xff\xfe", b'{"a": 1, "a": 2}'])
def test_a_broken_golden_file_is_unjudged_until_it_is_written_anew(project: Project, broken: bytes) -> None:
    answers(project, order='{"a": 1}')
    file = suite(project, {"type": "snapshot", "match": "json"})
    assert project.test(file, "--update-snapshots").code == 0
    project.write("__snapshots__/suite.yaml/order@shop.json.json", broken)
    assert project.test(file).code == 3
    assert "order@shop.json.json" in messages(project)[0]
    assert project.test(file, "--update-snapshots").code == 0
    assert project.test(file).code == 0


def test_a_golden_file_that_is_a_link_is_not_followed(project: Project) -> None:
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot"})
    target = project.write("target.txt", "Hello\n")
    link = project.folder / "__snapshots__/suite.yaml/order@shop.text.txt"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    assert project.test(file).code == 3
    answers(project, order="Changed")
    assert project.test(file, "--update-snapshots").code == 0
    assert target.read_text("utf-8") == "Hello\n"
    assert not link.is_symlink()


def test_resuming_runs_again_what_has_another_golden_file(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    open('asked', 'a').write(prompt + ' ')\n    return prompt\n")
    tests = [{"id": name, "input": name, "assertions": [{"type": "snapshot"}]} for name in ("a", "b")]
    file = project.suite([SHOP], tests)
    assert project.test(file, "--update-snapshots").code == 0
    run = project.runs()[0]
    assert project.test(file, "--resume-from", run.name).code == 0  # to compare is not to write
    assert project.lines("asked") == ["a", "b", "a", "b"]
    assert project.test(file, "--resume-from", run.name).code == 0
    assert project.lines("asked") == ["a", "b", "a", "b"]
    project.write("__snapshots__/suite.yaml/b@shop.text.txt", "other\n")
    assert project.test(file, "--resume-from", run.name).statuses == {"a": "passed", "b": "failed"}
    assert project.lines("asked") == ["a", "b", "a", "b", "b"]


def test_golden_files_are_no_tests_of_their_own(project: Project) -> None:
    answers(project, order="Hello")
    suite(project, {"type": "snapshot"})
    assert project.test(".", "--update-snapshots").code == 0
    project.write("__snapshots__/suite.yaml/stray.jsonl", '{"id": "stray", "input": "x"}\n')
    for given in (".", "**/*.*l"):
        assert project.test(given).statuses == {"order": "passed"}


@pytest.mark.parametrize(
    ("assertion", "code"),
    [
        ({"type": "snapshot", "match": "text", "ignore": ["$.a"]}, "snapshot-ignore"),
        ({"type": "snapshot", "match": "json", "ignore": ["$"]}, "snapshot-ignore"),
        ({"type": "snapshot", "match": "json", "ignore": ["$["]}, "json-path"),
        ({"type": "snapshot", "match": "exact"}, "bad-value"),
        ({"type": "snapshot", "ignored": []}, "unknown-key"),
    ],
)
def test_mistakes_are_found_with_their_place(project: Project, assertion: dict[str, Any], code: str) -> None:
    answers(project, order="x")
    ran = project.atp("validate", suite(project, assertion))
    assert ran.code == 2
    assert f"error[{code}]" in ran.err + ran.out
    assert "suite.yaml:" in ran.err + ran.out


def test_a_snapshot_is_no_checkpoint(project: Project) -> None:
    point = {"id": "p", "assert": {"type": "all_of", "assertions": [{"type": "snapshot"}]}}
    file = project.cases({"id": "a", "input": "a", "simulator": {"use": "sim"}, "checkpoints": [point]})
    ran = project.atp("validate", file)
    assert ran.code == 2
    assert "snapshot-checkpoint" in ran.err + ran.out


def test_reports_show_the_difference_of_long_answers(project: Project) -> None:
    lines = [f"line {number} of a long answer" for number in range(400)]
    answers(project, order="\n".join(lines))
    file = suite(project, {"type": "snapshot"})
    assert project.test(file, "--update-snapshots").code == 0
    lines[300] = "line 300 of another answer"
    answers(project, order="\n".join(lines))
    ran = project.atp("test", file, "-o", "report.html")
    assert ran.code == 1
    assert "differs from __snapshots__/suite.yaml/order@shop.text.txt from line 301 on" in ran.out
    assert "- line 300 of a long answer" in ran.out
    assert "+ line 300 of another answer" in ran.out


def test_the_api_writes_and_compares(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(project.folder)
    answers(project, order="Hello")
    file = suite(project, {"type": "snapshot"})
    assert atp.run_sync(atp.load(file)).exit_code == 1
    assert atp.run_sync(atp.load(file), atp.Options(update_snapshots=True)).passed
    assert atp.run_sync(atp.load(file)).passed


def test_pytest_writes_and_compares(project: Project) -> None:
    answers(project, order="Hello")
    suite(project, {"type": "snapshot"})

    def run(*flags: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--atp", *flags]
        return subprocess.run(
            command, cwd=project.folder, env=clean_environment(), capture_output=True, encoding="utf-8", check=False
        )

    failing = run()
    assert failing.returncode == 1
    assert "--update-snapshots" in failing.stdout
    assert run("--atp-update-snapshots").returncode == 0
    assert golden(project) == {"order@shop.text.txt": "Hello\n"}
    assert run().returncode == 0


def test_a_run_that_writes_golden_files_goes_on_where_it_ended(project: Project) -> None:
    """What it wrote is taken over with its trials, and what was changed since is written anew."""
    project.write(
        "agent.py",
        """
        import pathlib

        def run(prompt, context):
            open("asked", "a").write(prompt + " ")
            if prompt == "b" and context["run"] == 2:
                if pathlib.Path("breaks").exists():
                    raise RuntimeError("no")
                return "something else"
            return prompt
        """,
    )
    check = {"assertions": [{"type": "snapshot"}]}
    file = project.suite([SHOP], [{"id": name, "input": name, **check} for name in ("a", "b", "c")])
    flags = ("--update-snapshots", "--runs", "2")
    project.write("breaks", "")
    assert project.test(file, *flags, "--fail-fast").code == 1
    assert golden(project) == {"a@shop.text.txt": "a\n", "b@shop.text.txt": "b\n"}
    project.write("__snapshots__/suite.yaml/a@shop.text.txt", "changed by hand\n")
    (project.folder / "breaks").unlink()
    project.write("asked", "")
    ran = project.test(file, *flags, "--resume")
    assert project.lines("asked") == ["a", "b", "c", "c"]
    assert ran.statuses == {"a": "passed", "b": "failed", "c": "passed"}
    assert any("run 1 of agent `shop` wrote it" in one for one in messages(project))
    assert golden(project) == {f"{name}@shop.text.txt": f"{name}\n" for name in ("a", "b", "c")}
