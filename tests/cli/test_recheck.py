"""`atp recheck`: what a journal holds is judged again with today's checks, and no agent is called."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.report.support.page import Read

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENT = """
    from pathlib import Path

    Path("imported.txt").open("a").write("imported\\n")

    def answer(prompt):
        Path("calls.txt").open("a").write("called\\n")
        return {"output": f"you said {prompt}", "usage": {"steps": 3, "total_tokens": 100, "cost_usd": 0.02}}
"""
JUDGE = """
    def short(asked):
        answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
        shown = {"met": len(answer) < 70, "reason": "by its length", "evidence": [answer]}
        return {"verdicts": [{"number": one["number"], **shown} for one in asked["expectations"]]}
"""
Verdicts = dict[tuple[str, str, int, int], list[tuple[str, str, str]]]


def recheck(project: Project, *arguments: str, **more: Any) -> Ran:
    ran = project.atp("recheck", *arguments, "--json", **more)
    assert "Traceback" not in ran.err, ran.err
    return ran


def verdicts(project: Project) -> Verdicts:
    """What the checks of the newest run found."""
    return {
        (one["agent"], one["case"], one.get("variation", 0), one.get("run", 1)): [
            (check["type"], check["outcome"], check.get("message", "")) for check in one.get("verdicts", [])
        ]
        for one in project.trials()
    }


def forget_origin(project: Project) -> None:
    """Delete all runs but the newest, so that what it has taken over is all there is."""
    for run in project.runs()[:-1]:
        shutil.rmtree(run)


def only(project: Project) -> dict[str, Any]:
    """The one trial of the newest run."""
    (found,) = project.trials()
    return found


@pytest.mark.parametrize(
    ("file", "flags"),
    [
        ("files.yaml", ["--runs", "2"]),
        ("expense.jsonl", ["-n", "expenses.py:answer"]),
        ("trip.jsonl", ["-n", "expenses.py:answer", "--runs", "2"]),
        ("quiz.test.md", ["-n", "expenses.py:answer"]),
        ("ocean.test.md", ["-n", "expenses.py:answer", "--assessor", "scripts:judge.short"]),
    ],
)
def test_the_examples_get_the_same_verdicts_and_no_agent_is_called(
    project: Project, file: str, flags: list[str]
) -> None:
    shutil.copytree(EXAMPLES, project.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".atp"))
    project.write("scripts/judge.py", JUDGE)
    for name in ("expenses.py", "clerk.py"):
        path = project.folder / name
        said = f"open({str(project.folder / 'called.txt')!r}, 'a').write('x')"
        path.write_text(path.read_text("utf-8").replace("\nimport ", f"\n{said}\nimport ", 1), "utf-8")
    ran = project.test(file, *flags, "-o", "then.json")
    before = verdicts(project)
    assert before
    assert any(before.values())
    (project.folder / "called.txt").unlink()
    again = recheck(project, "last", "-o", "now.json")
    assert (again.code, again.statuses, verdicts(project)) == (ran.code, ran.statuses, before), again.err
    assert not (project.folder / "called.txt").exists()
    start = project.journal()[0]
    assert start["rechecks"] == project.runs()[-2].name
    then, now = (json.loads((project.folder / one).read_text("utf-8")) for one in ("then.json", "now.json"))
    assert _without_times(then["results"]) == _without_times(now["results"])


def _without_times(value: Any) -> Any:
    """A report's results without what is of the run itself, and of the machine's clock."""
    if isinstance(value, dict):
        gone = {"run_id", "journal", "role_usage", "judge_usage", "workspace"}
        return {key: _without_times(one) for key, one in value.items() if key not in gone}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def tested(project: Project) -> Project:
    """A run of two cases, both of which pass."""
    project.write("agent.py", AGENT)
    project.write("atp.toml", "")
    project.cases(
        {"id": "a", "input": "hello", "assertions": [{"type": "contains", "value": "hello"}]},
        {"id": "b", "input": "bye", "assertions": [{"type": "contains", "value": "bye"}]},
    )
    assert project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl").code == 0
    for name in ("calls.txt", "imported.txt"):
        (project.folder / name).unlink()
    return project


def test_a_changed_check_changes_its_own_verdict_only(tested: Project) -> None:
    before = verdicts(tested)
    tested.cases(
        {"id": "a", "input": "hello", "assertions": [{"type": "contains", "value": "hello"}]},
        {"id": "b", "input": "bye", "assertions": [{"type": "contains", "value": "good bye"}]},
    )
    ran = recheck(tested, "last", "-o", "report.html")
    assert (ran.code, ran.statuses) == (1, {"a": "passed", "b": "failed"})
    after = verdicts(tested)
    key = ("agent.py:answer", "a", 0, 1)
    assert after[key] == before[key]
    assert (tested.folder / "report.html").exists()
    assert tested.lines("calls.txt") == tested.lines("imported.txt") == []
    assert tested.atp("report", "last", "-o", "again.json").code == 0
    assert json.loads((tested.folder / "again.json").read_text("utf-8"))["summary"]["failed"] == 1


def test_a_recheck_of_a_recheck_judges_the_same_conversations(tested: Project) -> None:
    first = recheck(tested, "last")
    once = verdicts(tested)
    second = recheck(tested, "last")
    assert (first.code, second.code, verdicts(tested)) == (0, 0, once)
    first_run, *rechecks = tested.runs()
    assert [tested.journal(run)[0]["rechecks"] for run in rechecks] == [first_run.name] * 2
    shutil.rmtree(first_run)  # then what the recheck has taken over is all there is
    assert recheck(tested, "last").code == 0
    assert (verdicts(tested), tested.journal()[0]["rechecks"]) == (once, rechecks[-1].name)


def test_an_error_of_a_recheck_does_not_last(tested: Project) -> None:
    right = (tested.folder / "cases.jsonl").read_text("utf-8")
    tested.write("cases.jsonl", right.replace("hello", "goodbye"))
    assert recheck(tested, "last").code == 3
    tested.write("cases.jsonl", right)
    assert recheck(tested, "last").code == 0


def test_a_case_that_the_run_does_not_have_is_listed_and_makes_it_3(tested: Project) -> None:
    with (tested.folder / "cases.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "new", "input": "new", "assertions": [{"type": "contains", "value": "new"}]}\n')
    ran = recheck(tested, "last")
    assert (ran.code, ran.statuses) == (3, {"a": "passed", "b": "passed", "new": "error"})
    assert "not in the run" in ran.results["new"]["error"]
    assert tested.lines("calls.txt") == []


def test_a_case_that_the_files_no_longer_have_is_left_out_with_a_note(tested: Project) -> None:
    tested.cases({"id": "a", "input": "hello", "assertions": [{"type": "contains", "value": "hello"}]})
    ran = tested.atp("recheck", "last")
    assert ran.code == 0
    assert "1 case of that run, no longer in the files, left out: `b`" in ran.out
    assert "--only-failed" not in ran.out


TURNS = """
    ---
    target: agents/x.md
    ---

    # Turns

    **Prompts:**

    - **Chain:**
      {}

    **Expectations:**

    - {}
"""


def chain(expected: str, *prompts: str) -> str:
    return TURNS.format("\n      ".join(f"- {one}" for one in prompts), expected)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (("one", "two"), None),
        (("one", "three"), "what is said in turn 2 differs from what was said then"),
        (("two", "two"), "what is said in turn 1 differs from what was said then"),
        (("one",), "turn 2 was said then, and is no longer"),
        (("one", "two", "three"), "turn 3 was not said then"),
    ],
)
def test_a_case_that_says_something_else_now_is_not_judged(
    project: Project, now: tuple[str, ...], why: str | None
) -> None:
    project.write("agent.py", AGENT)
    project.write("turns.test.md", chain("no errors", "one", "two"))
    assert project.test("turns.test.md", "-n", "agent.py:answer", "-o", "out.json").code == 0
    project.write("turns.test.md", chain('the answer contains "said two"', *now))
    ran = recheck(project, "last", "-o", "out.json")
    assert ran.code == (0 if why is None else 3), ran.out
    if why is not None:
        (result,) = ran.results.values()
        assert "the case says something else now, so it has to be run" in result["error"]
        assert why in result["error"]


def test_another_input_of_a_task_is_another_conversation(project: Project) -> None:
    project.write("agent.py", AGENT)
    agents = [{"name": "it", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    check = [{"type": "contains", "value": "said"}]

    def write(number: int) -> None:
        task = {"description": "add", "input_data": {"number": number}}
        project.suite(agents, [{"id": "a", "assertions": check, "task": task}])

    write(1)
    assert project.test("suite.yaml").code == recheck(project, "last").code == 0
    write(2)
    ran = recheck(project, "last")
    assert (ran.code, "its `input_data` differs" in ran.results["a"]["error"]) == (3, True)


@pytest.mark.parametrize(
    ("limits", "status", "code"),
    [
        ({"max_steps": 3, "max_tokens": 100, "budget_usd": 0.02}, "passed", 0),
        ({"max_steps": 2}, "failed", 1),
        ({"max_tokens": 99}, "failed", 1),
        ({"budget_usd": 0.01}, "failed", 1),
    ],
)
def test_limits_are_judged_on_the_recorded_usage(
    project: Project, limits: dict[str, Any], status: str, code: int
) -> None:
    project.write("agent.py", AGENT)
    agents = [{"name": "it", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    check = [{"type": "contains", "value": "said"}]
    project.suite(agents, [{"id": "a", "assertions": check}])
    assert project.test("suite.yaml").code == 0
    project.suite(agents, [{"id": "a", "assertions": check, "constraints": limits}])
    ran = recheck(project, "last")
    assert (ran.code, ran.statuses) == (code, {"a": status}), ran.err
    assert [one["type"] for one in only(project)["verdicts"]] == ["contains", *(["limits"] if code else [])]


def test_what_a_limit_stopped_is_unjudged_under_a_wider_limit(project: Project) -> None:
    project.write("agent.py", AGENT)
    agents = [{"name": "it", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    check = [{"type": "contains", "value": "said"}]
    project.suite(agents, [{"id": "a", "assertions": check, "constraints": {"max_steps": 2}}])
    assert project.test("suite.yaml").code == 1
    assert recheck(project, "last").code == 1
    project.suite(agents, [{"id": "a", "assertions": check, "constraints": {"max_steps": 9}}])
    ran = recheck(project, "last")
    assert ran.code == 3
    assert "not kept by that run: a limit stopped the agent then" in ran.results["a"]["error"]


def test_a_shorter_timeout_is_judged_on_the_recorded_turns(project: Project) -> None:
    project.write("agent.py", "import time\n\ndef answer(prompt):\n    time.sleep(0.05)\n    return prompt\n")
    agents = [{"name": "it", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    project.suite(agents, [{"id": "a", "assertions": [{"type": "contains", "value": "a"}]}])
    assert project.test("suite.yaml").code == 0
    limited = {"id": "a", "assertions": [{"type": "contains", "value": "a"}], "constraints": {"timeout_seconds": 0.01}}
    project.suite(agents, [limited])
    ran = recheck(project, "last")
    assert (ran.code, ran.statuses) == (1, {"a": "timeout"})


def test_errors_stay_what_they_were(project: Project) -> None:
    project.write("agent.py", "def answer(prompt):\n    raise ValueError('broken')\n")
    project.cases({"id": "a", "input": "a", "assertions": [{"type": "contains", "value": "a"}]})
    ran = project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl")
    project.write("agent.py", "def answer(prompt):\n    return prompt\n")
    again = recheck(project, "last")
    assert (again.code, again.statuses) == (ran.code, ran.statuses)
    assert again.results["a"]["error"] == ran.results["a"]["error"]


FILES = """
    from pathlib import Path

    def answer(prompt, workspace):
        Path(workspace, "small.txt").write_text("all is well")
        Path(workspace, "large.txt").write_text("x" * 1_000_001)
        Path(workspace, "link.txt").symlink_to("small.txt")
        Path(workspace, "folder").symlink_to("/etc")
        return "done"
"""


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        ({"path": "small.txt", "contains": "well"}, "passed"),
        ({"path": "small.txt", "contains": "ill"}, "failed"),
        ({"path": "none.txt"}, "failed"),
        ({"path": "none.txt", "negate": True}, "passed"),
        ({"path": "large.txt"}, "passed"),
        ({"path": "large.txt", "min_bytes": 1_000_001}, "passed"),
        ({"path": "large.txt", "contains": "y"}, "unjudged"),
        ({"path": "large.txt", "contains": "y", "negate": True}, "unjudged"),
        ({"path": "link.txt", "negate": True}, "unjudged"),
        ({"path": "folder/hostname", "negate": True}, "unjudged"),
    ],
)
def test_files_are_judged_as_far_as_they_were_kept(project: Project, check: dict[str, Any], outcome: str) -> None:
    project.write("agent.py", FILES)
    project.cases({"id": "a", "input": "a", "assertions": [{"type": "artifact_exists", "path": "small.txt"}]})
    assert project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl").code == 0
    project.cases({"id": "a", "input": "a", "assertions": [{"type": "artifact_exists", **check}]})
    ran = recheck(project, "last")
    (verdict,) = only(project)["verdicts"]
    assert (verdict["outcome"], ran.code) == (outcome, {"passed": 0, "failed": 1, "unjudged": 3}[outcome])
    if outcome == "unjudged":
        what = "content of `large.txt`" if check["path"] == "large.txt" else "link `"
        assert verdict["message"].startswith("not kept by that run: ")
        assert what in verdict["message"]
    assert not project.workspaces()
    forget_origin(project)
    second = recheck(project, "last")
    assert (second.code, only(project)["verdicts"]) == (ran.code, [verdict])


@pytest.mark.parametrize(("large", "outcome"), [(False, "passed"), (True, "unjudged")])
def test_a_script_that_asks_for_the_workspace_needs_all_of_it(project: Project, large: bool, outcome: str) -> None:
    small = "\n".join(line for line in FILES.split("\n") if "symlink" not in line).replace("1_000_001", "10")
    project.write("agent.py", FILES if large else small)
    project.write(
        "scripts/look.py",
        """
        from pathlib import Path

        def workspace(output, input, expected, context):
            return "well" in Path(context["workspace"], "small.txt").read_text()

        def answer(output):
            return output == "done"
        """,
    )
    checks = [{"type": "script", "script": f"scripts:look.{name}"} for name in ("workspace", "answer")]
    project.cases({"id": "a", "input": "a", "assertions": checks})
    assert project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl").code == 0
    recheck(project, "last")
    first, second = only(project)["verdicts"]
    assert (first["outcome"], second["outcome"]) == (outcome, "passed")
    if large:
        assert first["message"] == "not kept by that run: the whole workspace"


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        ({"type": "contains", "value": "the key is"}, "passed"),
        ({"type": "contains", "value": "s3cret-token-value"}, "unjudged"),
        ({"type": "contains", "value": "s3cret-token-value", "negate": True}, "unjudged"),
        ({"type": "not_contains", "value": "s3cret-token-value"}, "unjudged"),
        ({"type": "regex", "value": "key"}, "unjudged"),
        ({"type": "script", "script": "scripts:say.yes"}, "unjudged"),
    ],
)
def test_a_masked_text_that_a_check_looks_at_is_unjudged(project: Project, check: dict[str, Any], outcome: str) -> None:
    env = {"API_TOKEN": "s3cret-token-value"}
    project.write("agent.py", "def answer(prompt):\n    return 'the key is s3cret-token-value'\n")
    project.write("scripts/say.py", "def yes(output):\n    return True\n")
    project.cases({"id": "a", "input": "a", "assertions": [check]})
    project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl", env=env)
    assert only(project)["masked"] is True
    for _ in range(2):  # and the same of what is read from the journal of a recheck
        recheck(project, "last", env=env)
        forget_origin(project)
        (verdict,) = only(project)["verdicts"]
        assert verdict["outcome"] == outcome, verdict
        if outcome == "unjudged":
            assert "not kept by that run: the output with the secrets in it, which are masked" in verdict["message"]


def test_three_stars_of_an_agent_are_no_mask(project: Project) -> None:
    project.write("agent.py", "def answer(prompt):\n    return 'one *** two'\n")
    project.cases({"id": "a", "input": "a", "assertions": [{"type": "equals", "value": "one *** two"}]})
    env = {"API_TOKEN": "s3cret-token-value"}
    project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl", env=env)
    assert only(project)["masked"] is False
    assert recheck(project, "last", env=env).code == 0
    forget_origin(project)
    assert recheck(project, "last", env=env).code == 0


def test_a_run_without_a_name_and_a_run_whose_files_are_gone_are_said(tested: Project) -> None:
    missing = tested.atp("recheck", "nothing")
    assert (missing.code, "error[no-run]" in missing.err) == (2, True)
    (tested.folder / "cases.jsonl").rename(tested.folder / "moved.jsonl")
    gone = tested.atp("recheck", "last")
    assert (gone.code, "error[nothing-to-recheck]" in gone.err) == (2, True)


def test_no_run_goes_on_with_a_recheck(tested: Project) -> None:
    recheck(tested, "last")
    ran = tested.atp("test", "cases.jsonl", "-n", "agent.py:answer", "--resume-from", "last")
    assert (ran.code, "error[rechecked-run]" in ran.err) == (2, True)
    assert tested.atp("test", "cases.jsonl", "-n", "agent.py:answer", "--resume").code == 2


def test_a_dry_run_shows_what_would_be_judged(tested: Project) -> None:
    runs = tested.runs()
    ran = tested.atp("recheck", "last", "--dry-run")
    assert ran.code == 0
    assert "agent.py:answer × a  variation 1, run 1/1, 1 turn, 1 check" in ran.out
    assert "2 cases, 2 trials, 0 calls of agents" in ran.out
    assert "cost" not in ran.out
    assert tested.runs() == runs
    assert tested.lines("imported.txt") == []


DESK = """
---
target: agents/desk.md
---

# Desk

## Opens

**Prompts:**

- open the desk

**Expectations:**

- the `open` function was called

## Asks

**Before:** Opens

**Prompts:**

- ask
- ask politely

**Expectations:**

- the `open` function was called
- {own}

## Left

**Before:** Asks

**Expectations:**

- the `{tool}` function was called
"""
DESK_AGENT = """
    from pathlib import Path

    def answer(prompt, messages):
        Path("calls.txt").open("a").write("called\\n")
        call = {"name": "open" if "open" in prompt else "ask", "arguments": {"said": len(messages)}, "result": "ok"}
        return {"output": f"{prompt} is done", "tool_calls": [call]}
"""
OWN = "the `open` function was not called (turns: own)"


@pytest.fixture
def desk(project: Project) -> Project:
    """A run of cases that go on from each other."""
    project.write("agent.py", DESK_AGENT)
    project.write("desk.test.md", DESK.format(own=OWN, tool="ask"))
    assert project.test("desk.test.md", "-n", "agent.py:answer", "-o", "out.json").code == 0
    (project.folder / "calls.txt").unlink()
    return project


def test_befores_and_variations_are_judged_from_the_journal(desk: Project) -> None:
    before = verdicts(desk)
    assert len(before) == 4
    ran = recheck(desk, "last", "-o", "out.json")
    assert (ran.code, verdicts(desk)) == (0, before), ran.err
    forget_origin(desk)
    again = recheck(desk, "last", "-o", "out.json")
    assert (again.code, verdicts(desk)) == (0, before), again.err
    assert desk.lines("calls.txt") == []


def test_a_before_that_fails_today_blocks_what_goes_on_from_it(desk: Project) -> None:
    desk.write("desk.test.md", DESK.replace("- the `open`", "- the `shut`", 1).format(own=OWN, tool="ask"))
    ran = recheck(desk, "last", "-o", "out.json")
    assert (ran.code, sorted(ran.statuses.values())) == (1, ["blocked", "blocked", "failed"])


def test_a_check_on_what_befores_did_can_change(desk: Project) -> None:
    desk.write("desk.test.md", DESK.format(own=OWN, tool="shout"))
    ran = recheck(desk, "last", "-o", "out.json")
    assert ran.code == 1
    assert sorted(ran.statuses.values()) == ["failed", "passed", "passed"]


def test_a_resumed_run_is_judged_with_the_befores_of_each_part(project: Project) -> None:
    agent = DESK_AGENT.replace('f"{prompt} is done"', 'f"{prompt} is done " + Path("at").read_text()')
    project.write("agent.py", agent.replace("call =", "assert prompt != Path('at').read_text()\n        call ="))
    project.write("desk.test.md", DESK.format(own=OWN, tool="ask"))
    flags = ["desk.test.md", "-n", "agent.py:answer", "-o", "out.json"]
    project.write("at", "ask politely")
    assert project.test(*flags).code == 1
    project.write("at", "later")
    assert project.test(*flags, "--resume-from", "last").code == 0
    before = verdicts(project)
    replayed = [line["result"]["case"] for line in project.journal() if line["type"] == "before"]
    assert replayed
    (project.folder / "calls.txt").unlink()
    ran = recheck(project, "last", "-o", "out.json")
    assert (ran.code, verdicts(project)) == (0, before), ran.out
    assert project.lines("calls.txt") == []
    once = [line["result"]["case"] for line in project.journal() if line["type"] == "before"]
    assert len(once) == len(set(once))
    forget_origin(project)
    again = recheck(project, "last", "-o", "out.json")
    assert (again.code, verdicts(project)) == (0, before), again.out


SIMULATOR = """
    def user(turn):
        said = ["hello", "file it", "thanks"]
        number = turn["turn_number"]
        return {"input": said[number - 1], "goal_achieved": number == 3}
"""
CLERK = """
    from pathlib import Path

    def answer(prompt):
        Path("calls.txt").open("a").write("called\\n")
        answers = {"hello": "What is it?", "file it": "Filed as EXP-7.", "thanks": "You are welcome."}
        return answers[prompt]
"""


def dialogue(*checkpoints: tuple[str, str], **more: Any) -> dict[str, Any]:
    points = [{"id": name, "assertion": {"type": "contains", "value": text}} for name, text in checkpoints]
    simulator = {"use": "scripts.people.user", "options": {"metadata": {"persona": "a clerk", "goal": "to file"}}}
    return {"id": "trip", "simulator": simulator, "checkpoints": points, "max_turns": 5, **more}


@pytest.fixture
def talk(project: Project) -> Project:
    """A run of a dialogue that ends with its second turn, when both checkpoints are reached."""
    project.write("scripts/people.py", SIMULATOR)
    project.write("agent.py", CLERK)
    project.cases(dialogue(("asks", "What"), ("files", "EXP")))
    ran = project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl")
    assert ran.code == 0, ran.out
    (project.folder / "calls.txt").unlink()
    return project


@pytest.mark.parametrize(
    ("case", "code", "outcomes"),
    [
        (dialogue(("asks", "What"), ("files", "EXP")), 0, ["passed", "passed"]),
        (dialogue(("files", "EXP")), 0, ["passed"]),
        (dialogue(("asks", "What"), ("files", "EXP"), max_turns=1), 1, ["passed", "failed"]),
        (dialogue(("asks", "What"), ("thanks", "welcome")), 3, ["passed", "unjudged"]),
        (dialogue(("asks", "What"), ("files", "EXP"), assertions=[{"type": "contains", "value": "Filed"}]), 0, None),
        (dialogue(("asks", "What"), ("files", "EXP"), assertions=[{"type": "contains", "value": "What"}]), 1, None),
    ],
)
def test_a_dialogue_is_judged_on_its_recorded_turns(
    talk: Project, case: dict[str, Any], code: int, outcomes: list[str] | None
) -> None:
    talk.cases(case)
    ran = recheck(talk, "last")
    assert ran.code == code, (ran.out, ran.err)
    found = only(talk)["verdicts"]
    assert outcomes is None or [one["outcome"] for one in found] == outcomes
    if code == 3:
        assert "not kept by that run: the dialogue ended with turn 2" in found[-1]["message"]
    assert talk.lines("calls.txt") == []


def test_another_persona_is_another_conversation(talk: Project) -> None:
    case = dialogue(("asks", "What"), ("files", "EXP"))
    case["simulator"]["options"]["metadata"]["persona"] = "a manager"
    talk.cases(case)
    ran = recheck(talk, "last")
    assert (ran.code, "another persona or goal" in ran.results["trip"]["error"]) == (3, True)


FICKLE = """
    from pathlib import Path

    def judge(asked):
        answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
        Path("judged.txt").open("a").write("judged\\n")
        odd = len(Path("judged.txt").read_text().split()) % 2 == 1
        met = odd or "kind" not in asked["expectations"][0]["text"]
        one = {"met": met, "reason": "a whim", "evidence": [answer]}
        return {"verdicts": [{"number": number["number"], **one} for number in asked["expectations"]]}
"""


def judged(project: Project, *words: str) -> None:
    """A case that a judge decides, after a run."""
    project.write("agent.py", AGENT)
    project.write("scripts/fickle.py", FICKLE)
    cases = [{"id": f"case {number}", "input": "a", "expectations": [one]} for number, one in enumerate(words)]
    project.cases(*cases)
    project.test("cases.jsonl", "-n", "agent.py:answer", "--assessor", "scripts:fickle.judge", "-o", "out.jsonl")
    (project.folder / "judged.txt").unlink()
    (project.folder / "calls.txt").unlink()


def test_the_judge_alone_is_repeated_and_its_instability_told(project: Project) -> None:
    judged(project, "it is kind", "it is clear")
    ran = project.atp(
        "recheck", "last", "--runs", "4", "-v", "-o", "report.json", "-o", "report.md", "-o", "report.html"
    )
    assert len(project.lines("judged.txt")) == 8
    assert project.lines("calls.txt") == []
    fickle, steady = project.trials()
    assert [one["outcomes"] for one in fickle["rejudged"]] == [["failed"], ["passed"], ["failed"]]
    assert [one.get("status", "passed") for one in fickle["rejudged"]] == ["failed", "passed", "failed"]
    assert [one["outcomes"] for one in steady["rejudged"]] == [["passed"]] * 3
    assert "Judge: 4 judgings, two differ 67% of the time; between 16% and 95% in the long run" in ran.out
    assert "expectation: it is kind: 4 judgings" in ran.out
    assert "Judge: 4 judgings agree; in the long run, two differ at most 66% of the time" in ran.out
    markdown = (project.folder / "report.md").read_text("utf-8")
    assert "- Judge: 4 judgings, two differ 67% of the time; between 16% and 95% in the long run\n" in markdown
    assert "  - `expectation: it is kind`: 4 judgings" in markdown
    assert Read(project.folder / "report.html").case(0)["judge"][0].startswith("Judge: 4 judgings, two differ 67%")
    first, second = json.loads((project.folder / "report.json").read_text("utf-8"))["results"]
    found = first["judge_consistency"]
    assert (found["judgings"], found["flip_rate"]) == (4, 66.7)
    assert [one["check"] for one in found["checks"]] == ["expectation: it is kind"]
    assert second["judge_consistency"]["flip_rate"] == 0
    assert second["judge_consistency"]["interval"][0] == 0


def test_a_judge_that_is_asked_once_is_not_repeated(project: Project) -> None:
    judged(project, "it is clear")
    assert recheck(project, "last", "--assessor", "scripts:fickle.judge").code == 0
    assert len(project.lines("judged.txt")) <= 1
    assert "rejudged" not in only(project)


def test_another_judge_judges_the_same_conversations(project: Project) -> None:
    judged(project, "it is clear")
    project.write("scripts/strict.py", FICKLE.replace("met = odd or", "met = False and"))
    ran = recheck(project, "last", "--assessor", "scripts:strict.judge")
    assert (ran.code, project.lines("calls.txt")) == (1, [])


def test_a_judge_that_failed_then_is_asked_again(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("scripts/fickle.py", "def judge(asked):\n    raise ValueError('no')\n")
    project.cases({"id": "a", "input": "a", "expectations": ["it is clear"]})
    flags = ["-n", "agent.py:answer", "--assessor", "scripts:fickle.judge", "-o", "out.jsonl"]
    assert project.test("cases.jsonl", *flags).code == 3
    project.write("scripts/fickle.py", FICKLE)
    assert recheck(project, "last").code == 0


def test_runs_lists_what_was_judged_again(tested: Project) -> None:
    recheck(tested, "last")
    first, second = tested.atp("runs").out.splitlines()
    assert first.endswith(f"(judges {tested.runs()[0].name} again)")
    assert "again" not in second


def test_a_copy_of_the_file_is_paired_by_its_cases(tested: Project) -> None:
    check = [{"type": "contains", "value": "hello"}]
    name = tested.cases({"id": "a", "input": "hello", "assertions": check}, name="wider.jsonl")
    ran = tested.atp("recheck", "last", name, "-o", "out.json")
    assert ran.code == 0
    assert "wider.jsonl is taken for cases.jsonl of that run, by the ids of its cases" in ran.out
    assert "left out: `b`" in ran.out
    other = tested.cases({"id": "z", "input": "hello", "assertions": check}, name="other.jsonl")
    assert recheck(tested, "last", other).code == 3


def test_a_case_in_quarantine_is_out_of_the_exit_code_of_a_recheck_too(tested: Project) -> None:
    (tested.folder / "cases.jsonl").write_text(
        (tested.folder / "cases.jsonl").read_text("utf-8").replace('"value": "bye"', '"value": "good bye"'), "utf-8"
    )
    assert recheck(tested, "last").code == 1
    entry = {"case": "b", "owner": "me", "reason": "flaky", "expires": "2999-01-01"}
    tested.write("quarantine.yaml", {"quarantine": [entry]})
    ran = recheck(tested, "last")
    assert ran.code == 0, ran.err


def test_runs_that_were_stopped_by_their_results_are_decided_as_such(project: Project) -> None:
    project.write("agent.py", "def answer(prompt):\n    return 'hello'\n")
    check = [{"type": "contains", "value": "hello"}]
    project.cases({"id": "a", "input": "hello", "assertions": check, "pass_rate": 0.5, "confidence": 0.9})
    flags = ["-n", "agent.py:answer", "--runs", "auto", "--max-runs", "30", "-o", "out.jsonl"]
    ran = project.test("cases.jsonl", *flags)
    assert ran.code == 0, ran.out
    trials = len(project.trials())
    again = recheck(project, "last")
    assert (again.code, len(project.trials())) == (0, trials)
    (closed,) = [line for line in project.journal() if line["type"] == "case"]
    assert (closed["decision"], closed["stopped_by"]) == ("passed", "decided")


def test_runs_auto_judged_again_come_to_the_same_estimate_unless_the_verdicts_differ(project: Project) -> None:
    agent = "def answer(prompt, context):\n    return 'no' if context['run'] % int(prompt) == 0 else 'yes'\n"
    project.write("agent.py", agent)
    asked = [{"id": f"by-{n}", "input": str(n), "expected": "yes"} for n in (1, 7, 99)]
    project.cases(*asked)
    flags = ["-n", "agent.py:answer", "--runs", "auto", "--pass-rate", "0.8", "--margin", "0.1", "--max-runs", "40"]
    project.test("cases.jsonl", *flags, "-o", "first.json")
    recheck(project, "last", "-o", "again.json")
    first, again = (json.loads((project.folder / f"{one}.json").read_text("utf-8")) for one in ("first", "again"))
    keys = ("status", "estimate", "stopped_by", "judged_runs", "surplus_runs", "pass_rate_interval")
    assert [[case.get(key) for key in keys] for case in again["results"]] == [
        [case.get(key) for key in keys] for case in first["results"]
    ]
    assert first["results"][0]["estimate"] is not None
    assert again["summary"]["overall_pass_rate"] == first["summary"]["overall_pass_rate"]
    project.cases({**asked[0], "expected": "no"}, *asked[1:])  # the few runs that showed a failure don't show a success
    recheck(project, "last", "-o", "other.json")
    case = json.loads((project.folder / "other.json").read_text("utf-8"))["results"][0]
    assert case["status"] == "inconclusive"
    assert "recorded runs did not decide; run the case again" in case["error"]


def test_runs_auto_that_decided_nothing_does_not_pass_by_its_observed_share(project: Project) -> None:
    project.write("agent.py", "def answer(prompt):\n    return 'hello'\n")
    project.cases({"id": "a", "input": "hello", "assertions": [{"type": "contains", "value": "hello"}]})
    flags = ["-n", "agent.py:answer", "--runs", "auto", "--max-runs", "12", "--pass-rate", "0.9", "-o", "out.jsonl"]
    assert project.test("cases.jsonl", *flags).code == 4
    again = recheck(project, "last", "--strict")  # that so few runs can't show the rate was said when they were run
    assert (again.code, "too-few-runs" in again.err) == (4, False)


@pytest.mark.parametrize(("pass_rate", "code"), [({}, 3), ({"pass_rate": 0.5}, 3), ({"pass_rate": 0.2}, 3)])
def test_a_case_that_a_stop_cut_short_is_cut_short_again(
    project: Project, pass_rate: dict[str, float], code: int
) -> None:
    project.write("agent.py", "def answer(prompt):\n    return {'output': 'hi', 'usage': {'total_tokens': 10}}\n")
    project.cases({"id": "a", "input": "hello", "assertions": [{"type": "contains", "value": "hi"}], **pass_rate})
    flags = ["-n", "agent.py:answer", "--runs", "10", "--budget-tokens", "30", "-o", "out.jsonl"]
    assert project.test("cases.jsonl", *flags).code == code
    ran = len(project.trials())
    assert 0 < ran < 10
    again = recheck(project, "last", "-o", "again.json")
    (case,) = json.loads((project.folder / "again.json").read_text("utf-8"))["results"]
    assert (again.code, case["status"], case["planned"]) == (code, "cancelled", 10)
    assert len(project.trials()) == ran


def test_cases_that_a_stop_kept_from_being_run_again_do_not_pass(project: Project) -> None:
    project.write("agent.py", "def answer(prompt):\n    return {'output': 'no', 'usage': {'total_tokens': 10}}\n")
    check = [{"type": "contains", "value": "yes"}]
    project.cases(*({"id": name, "input": "say yes", "assertions": check} for name in ("a", "b")))
    flags = ["-n", "agent.py:answer", "-o", "out.jsonl"]
    assert project.test("cases.jsonl", *flags).code == 1
    project.write("agent.py", "def answer(prompt):\n    return {'output': 'yes', 'usage': {'total_tokens': 10}}\n")
    assert project.test("cases.jsonl", *flags, "--only-failed", "--budget-tokens", "5").code == 3
    assert len(project.trials()) == 1
    assert recheck(project, "last").code == 3


@pytest.mark.parametrize(
    ("setting", "change", "status"),
    [("fail_fast = true", {"expected": "no"}, "failed"), ("max_errors = 1", {"input": "something else"}, "error")],
)
def test_settings_that_spare_calls_of_agents_leave_no_case_out(
    project: Project, setting: str, change: dict[str, str], status: str
) -> None:
    project.write("agent.py", "def answer(prompt):\n    return prompt\n")
    asked = [{"id": name, "input": "hi", "expected": "hi"} for name in ("a", "b")]
    project.cases(*asked)
    assert project.test("cases.jsonl", "-n", "agent.py:answer", "-o", "out.jsonl").code == 0
    project.write("atp.toml", setting)
    project.cases(*({**one, **change} for one in asked))
    assert recheck(project, "last").statuses == {"a": status, "b": status}


def test_gates_of_the_command_line_hold_again(tested: Project) -> None:
    flags = ["-n", "agent.py:answer", "--gate", "cost_usd mean <= 0.001", "-o", "out.jsonl"]
    assert tested.test("cases.jsonl", *flags).code == 1
    assert recheck(tested, "last").code == 1


def test_a_test_in_python_leads_its_conversation_itself_and_is_left_unjudged(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write(
        "scripts/test_desk.py",
        """
        def test_said(t, ctx):
            t.assert_.contains(ctx.agent("agent.py:answer").send("hello"), "hello")
        """,
    )
    project.test("-i", "scripts:test_desk.test_said", "-o", "out.jsonl")
    (project.folder / "calls.txt").unlink()
    again = recheck(project, "last")
    assert (again.code, again.statuses) == (3, {"test_said": "error"})
    assert "a test in Python leads its conversations itself; run it again" in only(project)["verdicts"][0]["message"]
    assert project.lines("calls.txt") == []


def test_cases_that_were_generated_are_not_generated_again(project: Project) -> None:
    project.write("agent.py", AGENT)
    made = [{"id": "made", "input": "hello", "assert": {"type": "contains", "value": "hello"}}]
    project.write(
        "scripts/make.py", f"def cases(count, target_agent):\n    open('made', 'a').write('x')\n    return {made}\n"
    )
    project.test("-i", "scripts:make.cases?count=1", "-n", "agent.py:answer", "-o", "out.jsonl")
    (project.folder / "calls.txt").unlink()
    again = recheck(project, "last")
    assert (again.code, again.statuses) == (0, {"made": "passed"}), again.err
    assert (project.lines("calls.txt"), project.lines("made")) == ([], ["x"])


def test_a_recheck_says_how_to_see_what_changed(tested: Project) -> None:
    changed = (tested.folder / "cases.jsonl").read_text("utf-8").replace('"value": "bye"', '"value": "good bye"')
    (tested.folder / "cases.jsonl").write_text(changed, "utf-8")
    ran = tested.atp("recheck", "last", "-q")
    command = ran.out.split("What changed: atp ")[1].splitlines()[0]
    shown = tested.atp(*command.split())
    assert shown.code == 0, shown.err
    assert "  Not compared: changed since A (1):\n    b  1/1 → 0/1  the case changed\n" in shown.out
