"""Reports on earlier runs: the same from the journal alone as while it ran, and what became of the rest said."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, kill
from tests.waiting import until

AGENT = """
    import os, signal

    def run(prompt, context, messages):
        if prompt == "raises":
            raise RuntimeError("no")
        if prompt == "kills" and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if prompt == "waits":
            import time
            while True:
                time.sleep(0.1)
        if prompt == "flaky":
            return "HELLO" if context["run"] == 2 else "half a pair: \\ud83d"
        return {"said": prompt, "big": 2**70, "x": 0.1}
"""
NAMES = ["run.json", "run.jsonl", "run.md", "run.xml", "run.csv", "run.ctrf.json", "run.html"]
CASES: list[dict[str, Any]] = [
    {
        "id": "plain",
        "name": "Says it | `twice`",
        "input": "plain",
        "tags": ["smoke"],
        "assert": [{"type": "contains", "value": "plain"}],
    },
    {"id": "flaky", "input": "flaky", "expected": "HELLO", "pass_rate": 0.2},
    {
        "id": "history",
        "input": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
    },
    {"id": "later", "input": "x", "skip": True, "name": "Not now"},
    {"id": "raises", "input": "raises", "runs": 2},
    {"id": "poor", "input": "poor", "assert": {"type": "contains", "value": "poor"}, "min_score": 90},
]


def outputs(names: list[str], folder: str = "") -> list[str]:
    return [word for name in names for word in ("-o", f"{folder}{name}")]


def differing(project: Project, names: list[str]) -> list[str]:
    """The reports that are not the same when they are made once more."""
    (project.folder / "again").mkdir(exist_ok=True)
    made = project.atp("report", "last", *outputs(names, "again/"))
    assert (made.code, made.err) == (0, "")
    pairs = [(project.folder / name, project.folder / "again" / name) for name in names]
    return [before.name for before, after in pairs if before.read_bytes() != after.read_bytes()]


def test_every_format_is_the_same_once_more(project: Project) -> None:
    project.write("agent.py", AGENT)
    first, second = project.cases(*CASES[:3], name="a.jsonl"), project.cases(*CASES[3:], name="b.jsonl")
    words = ["-n", "agent.py:run", "--runs", "3", "--parallel", "3", "--user", "me", "-c", "fake"]
    ran = project.atp("test", second, first, *words, *outputs(NAMES))
    assert ran.code == 1, ran.err
    assert differing(project, NAMES) == []


def test_a_run_that_went_on(project: Project) -> None:
    """The trials from before the break are in the report, those that ran again only once."""
    project.write("agent.py", AGENT)
    file = project.cases("a", "raises", "b", "kills", "c")
    assert project.atp("test", file, "-n", "agent.py:run", "--runs", "2").code == -9
    killed = project.atp("report", "last", "-o", "killed.json")
    assert killed.code == 0
    report = json.loads((project.folder / "killed.json").read_text("utf-8"))
    assert report["summary"]["stopped"] == "unfinished: it ended without a summary"
    assert report["summary"]["exit_code"] == 1
    assert [one["id"] for one in report["results"]] == ["a", "raises", "b"]
    assert report["summary"]["not_run"] == 2
    project.cases("new", "a", "raises", "b", "kills", "c")  # what is done moves down by one place
    ran = project.atp("test", file, "-n", "agent.py:run", "--runs", "2", "--resume", *outputs(NAMES))
    assert ran.code == 1
    assert differing(project, NAMES) == []
    report = json.loads((project.folder / "run.json").read_text("utf-8"))
    assert [(one["id"], one["runs"]) for one in report["results"]] == [
        (name, 2) for name in ("new", "a", "raises", "b", "kills", "c")
    ]


@pytest.mark.parametrize("killed", [False, True])
def test_the_time_of_a_run_that_went_on_is_that_of_all_its_parts(project: Project, killed: bool) -> None:
    project.write("agent.py", AGENT)
    file = project.cases("a", "raises", "b")
    assert project.atp("test", file, "-n", "agent.py:run", "--fail-fast").code == 1
    journal = project.runs()[0] / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    for line in lines:  # an hour ago; and that part took ten minutes
        for holder, name in ((line, "at"), (line.get("result", {}), "started_at")):
            if name in holder:
                holder[name] -= 3600
    trial = next(line["result"] for line in lines if line["type"] == "trial")
    trial["duration_ms"] = 600_000.0
    lines[-1]["at"] = trial["started_at"] + 600
    kept = lines[:-1] if killed else lines
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in kept), "utf-8")
    ran = project.atp("test", file, "-n", "agent.py:run", "--resume", *outputs(NAMES))
    assert "  Time:    10m" in ran.out, ran.out
    assert differing(project, NAMES) == []
    summary = json.loads((project.folder / "run.ctrf.json").read_text("utf-8"))["results"]["summary"]
    tests = json.loads((project.folder / "run.ctrf.json").read_text("utf-8"))["results"]["tests"]
    assert summary["start"] == round(lines[0]["at"] * 1000)
    assert summary["start"] <= min(one["start"] for one in tests if "start" in one)
    assert 600_000 <= summary["duration"] < summary["stop"] - summary["start"]
    report = json.loads((project.folder / "run.json").read_text("utf-8"))
    assert report["summary"]["duration_ms"] == summary["duration"]


def test_blocked_cases_have_nothing_to_show(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("agents/a.md", "---\ntype: custom\nconfig: {entry: ../agent.py:run}\n---\n")
    expected = '**Expectations:**\n- The output contains "x"\n\n'
    head = f"---\ntarget: agents/a.md\nruns: 2\n---\n# First\n**Prompts:**\n- raises\n{expected}"
    project.write("q.test.md", f"{head}# Second\n**Before:** First\n**Prompts:**\n- b\n{expected}")
    project.atp("test", "q.test.md")
    shown = project.atp("report", "-vv").out
    blocked = shown.partition("[second]")[2].partition("\n\n")[0]
    assert "blocked" in blocked, shown
    assert "\n  run 2:" not in blocked


def test_a_resumed_run_that_was_killed_keeps_what_is_done(project: Project) -> None:
    project.write("agent.py", AGENT)
    file = project.cases("a", "b", "kills", "waits")
    assert project.atp("test", file, "-n", "agent.py:run").code == -9
    running = project.start("test", file, "-n", "agent.py:run", "--resume")
    journal = project.runs()[0] / "journal.jsonl"
    until(lambda: journal.read_text("utf-8").count('"case":"kills"'))
    told = project.atp("report", "last")
    assert "Stopped: unfinished: it is still running" in told.out
    kill(running)
    project.atp("report", "last", "-o", "run.json")
    report = json.loads((project.folder / "run.json").read_text("utf-8"))
    assert [one["id"] for one in report["results"]] == ["a", "b", "kills"]


def test_an_interrupted_run(project: Project) -> None:
    project.write("agent.py", AGENT)
    file = project.cases("a", "waits", "b")
    running = project.start("test", file, "-n", "agent.py:run", *outputs(NAMES))
    until(lambda: project.runs() and "a" in [one["case"] for one in project.trials()])
    running.terminate()
    assert project.finish(running).code == 130
    assert differing(project, NAMES) == []


def test_which_run(project: Project) -> None:
    project.write("agent.py", AGENT)
    file = project.cases("a")
    assert project.atp("report").code == 2
    for _ in range(2):
        assert project.atp("test", file, "-n", "agent.py:run", "-o", "x.json").code == 0
    first, second = project.runs()
    folder = shutil.copytree(first, project.folder / "elsewhere")
    for name, run in [
        (first.name, first.name),
        (second.name[:-2], second.name),
        ("last", second.name),
        (str(folder), first.name),
        (str(folder / "journal.jsonl"), first.name),
    ]:
        assert project.atp("report", name, "-o", "y.json").out == "Report: y.json\n"
        assert json.loads((project.folder / "y.json").read_text("utf-8"))["summary"]["run_id"] == run
    missing = project.atp("report", "1999", "-o", "y.json")
    assert (missing.code, missing.err.startswith("error[no-run]: 1999: there is no such run")) == (2, True)
    (folder / "journal.jsonl").write_text("")
    empty = project.atp("report", str(folder))
    assert (empty.code, "has no run in it" in empty.err) == (2, True)
    unknown = project.atp("report", "last", "-o", "y.pdf")
    assert (unknown.code, "no report is called *.pdf" in unknown.err) == (2, True)
    test_file = project.atp("report", "last", "-o", file)
    assert (test_file.code, "it is a test file of this run" in test_file.err) == (2, True)


def test_the_summary_of_an_earlier_run(project: Project) -> None:
    project.write("agent.py", AGENT)
    file = project.cases({"id": "a", "input": "a", "expected": "b"})
    project.atp("test", file, "-n", "agent.py:run", "-o", "x.json")
    told = project.atp("report")
    assert told.code == 0
    assert told.out.startswith("─" * 63 + "\n  Summary\n")
    assert "  (cases.jsonl:1)\n" in told.out
    assert f"Only what failed: atp test {file} -n agent.py:run --only-failed\n" in told.out
    assert "assistant: {" in project.atp("report", "-vv").out


def test_a_damaged_journal_does_not_look_whole(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.atp("test", project.cases("a", "b"), "-n", "agent.py:run", "-o", "x.json")
    journal = project.runs()[0] / "journal.jsonl"
    lines = journal.read_text("utf-8").splitlines(keepends=True)
    lines[1] = lines[1][:50] + "\n"
    journal.write_text("".join(lines), "utf-8")
    told = project.atp("report").out
    assert "  Note:    1 damaged line of the journal was passed over\n" in told
    assert "Stopped" not in told
    assert "--resume" not in told  # there is nothing to go on with
    assert project.atp("report", "-o", "run.html", "-o", "run.xml", "-o", "run.md").code == 0
    assert "The journal is damaged" in (project.folder / "run.html").read_text("utf-8")
    assert 'type="damaged"' in (project.folder / "run.xml").read_text("utf-8")
    assert "| Note      | 1 damaged line" in (project.folder / "run.md").read_text("utf-8")


REPORTERS = """
    import json, time

    def good(prompt):
        asked = json.loads(prompt)
        return f"```html\\n<h1>{asked['format']} {sorted(asked)} {asked['report']['summary']['total']}</h1>\\n```"

    def empty(prompt):
        return "  "

    def broken(prompt):
        raise ValueError("no paper")

    def slow(prompt):
        time.sleep(600)
"""


def test_an_agent_writes_the_report(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("reporters.py", REPORTERS)
    file = project.cases("a")
    ran = project.atp("test", file, "-n", "agent.py:run", "-r", "reporters.py:good", "-o", "x.html", "-o", "y.json")
    assert (ran.code, ran.err) == (0, "")
    assert "Report: x.html\n" in ran.out
    assert (project.folder / "x.html").read_text("utf-8") == "<h1>html ['format', 'options', 'report'] 1</h1>\n"
    assert json.loads((project.folder / "y.json").read_text("utf-8"))["summary"]["passed"] == 1
    ran = project.atp("test", file, "-n", "agent.py:run", "-r", "reporters.py:good")
    assert ran.out == "<h1>text ['format', 'options', 'report'] 1</h1>\n"
    again = project.atp("report", "last", "-r", "reporters.py:good", "-o", "z.md")
    assert (again.code, again.err) == (0, "")
    assert "<h1>markdown" in (project.folder / "z.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "flags", "why"),
    [
        ("empty", [], "reporters.py:empty gave an empty report"),
        ("broken", [], "ValueError: no paper"),
        ("slow", ["--timeout", "300ms"], "reporters.py:slow: timeout after 300ms"),
    ],
)
def test_the_built_in_report_stands_in(project: Project, name: str, flags: list[str], why: str) -> None:
    project.write("agent.py", AGENT)
    project.write("reporters.py", REPORTERS)
    call = ["-n", "agent.py:run", "-r", f"reporters.py:{name}", *flags]
    ran = project.atp("test", project.cases("a"), *call, "-o", "x.md")
    assert ran.code == 3
    assert why in ran.err
    assert "the built-in report was written instead" in ran.err
    assert (project.folder / "x.md").read_text("utf-8").startswith("# Agent Test Report\n")
    if name == "empty":
        wrong = project.cases({"id": "w", "input": "w", "expected": "v"}, name="w.jsonl")
        failed = project.atp("test", wrong, *call, "-o", "notes.txt")
        assert failed.code == 1
        assert "  Failed:  1\n" in Path(project.folder / "notes.txt").read_text("utf-8")


def test_a_signal_cuts_a_reporter_short(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("reporters.py", REPORTERS.replace("time.sleep(600)", "open('asked', 'w').close(); time.sleep(600)"))
    call = ["-n", "agent.py:run", "-r", "reporters.py:slow", "-o", "x.md"]
    running = project.start("test", project.cases("a"), *call)
    until((project.folder / "asked").exists)
    running.terminate()
    ran = project.finish(running)
    assert ran.code == 130
    assert (project.folder / "x.md").read_text("utf-8").startswith("# Agent Test Report\n")
    assert "  Passed:  1\n" in ran.out


def test_nobody_who_could_write_it(project: Project) -> None:
    project.write("agent.py", AGENT)
    ran = project.atp("test", project.cases("a"), "-n", "agent.py:run", "-r", "report.beautiful", "-o", "x.html")
    assert ran.code == 2
    assert "unknown-reporter" in ran.err
    project.write("reporters.py", "def odd(x, y):\n    return x\n")
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:run", "-r", "reporters.py:odd", "-o", "x.html")
    assert ran.code == 2
    assert "-r reporters.py:odd: it can't be called: `reporters.py:odd`: it takes `x`" in ran.err
    assert not project.runs()


def test_in_a_workflow(project: Project) -> None:
    project.write("agent.py", AGENT)
    hostile = "::error::owned\n  ::set-output name=x::y\n##[group]x"
    project.cases(
        {"id": "bad, or: worse", "input": hostile, "expected": "100%"}, {"id": "fine", "input": "x"}, name="sub/c.jsonl"
    )
    github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(project.folder / "step.md"),
        "GITHUB_WORKSPACE": str(project.folder),
    }
    (project.folder / "step.md").write_text("before\n")
    ran = project.atp(
        "test", "c.jsonl", "-n", "../agent.py:run", "-v", "-o", "x.json", env=github, cwd=project.folder / "sub"
    )
    assert ran.code == 1
    commands = [line for line in ran.out.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=sub/c.jsonl,line=1,col=1,title=[bad%2C or%3A worse]::equals: ")
    assert '"100%25"' in commands[0]
    step = (project.folder / "step.md").read_text("utf-8")
    assert step.startswith("before\n# Agent Test Report\n\n## Summary\n")
    assert "### ❌ bad, or\\: worse - Failed" in step
    assert "fine" not in step
    silent = project.test("sub/c.jsonl", "-n", "agent.py:run", "-o", "x.json", env=github)
    assert [one["type"] for one in silent.events] == ["start", "result", "result", "summary"]


def test_a_run_of_a_project_further_down_is_found_by_what_is_printed(project: Project) -> None:
    project.write("atp.toml", "")
    project.write("examples/atp.toml", "")
    project.write("examples/agent.py", "def answer(prompt): return 'bye'")
    agents = [{"name": "a", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    task = {"description": "count", "input_data": {"log": "one two"}}
    test = {"id": "t", "task": task, "assertions": [{"type": "contains", "value": "hello"}]}
    ran = project.atp("test", project.suite(agents, [test], file="examples/s.yaml"), "-vv")
    assert (ran.code, 'input data: {"log":"one two"}' in ran.out) == (1, True)
    (line,) = [one for one in ran.out.splitlines() if "Full report: " in one]
    named = line.partition("atp report ")[2].split()[0]
    assert named.startswith("examples/.atp/runs/")
    again = project.atp("report", named, "-o", "report.html")
    assert (again.code, (project.folder / "report.html").is_file()) == (0, True)
    journal = (project.folder / named / "journal.jsonl").read_text("utf-8").splitlines()
    (about,) = [one["about"] for one in map(json.loads, journal) if one["type"] == "trial"]
    assert about["input_data"] == {"log": "one two"}
    none = f"No runs yet in {project.folder / '.atp/runs'}.\n"
    assert project.atp("runs").out == f"{none}There are runs in examples: atp runs examples\n"
    assert "s.yaml" in project.atp("runs", "examples").out
    assert "help: there are runs in examples: --project examples\n" in project.atp("report", "last").err
    assert project.atp("report", "last", "--project", "examples").code == 0


def test_commands_and_places_are_right_where_they_are_printed(project: Project) -> None:
    """A run that was started in another directory: places start here, and commands begin with `cd`."""
    project.write("atp.toml", "")
    project.write("w 1/agent.py", AGENT)
    project.cases({"id": "a", "input": "a", "expected": "b"}, name="w 1/cases.jsonl")
    command = "atp test cases.jsonl -n agent.py:run --only-failed"
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:run", "-o", "x.html", cwd=project.folder / "w 1")
    assert ran.code == 1, ran.err
    here = project.atp("report", "last")
    assert "(w 1/cases.jsonl:1)" in here.out
    (line,) = [one for one in here.out.splitlines() if "Only what failed: " in one]
    assert line.endswith(f": cd 'w 1' && {command}")
    deeper = project.folder / "w 1" / "deeper"
    deeper.mkdir()
    assert f": cd .. && {command}\n" in project.atp("report", "last", cwd=deeper).out
    there = project.atp("report", "last", cwd=project.folder / "w 1").out
    assert f": {command}\n" in there
    assert "(cases.jsonl:1)" in there
    project.atp("report", "last", "-o", "r.json")
    (result,) = json.loads((project.folder / "r.json").read_text("utf-8"))["results"]
    assert result["file"] == "w 1/cases.jsonl"
