"""The traps that other tools fall into (`peers.md`), one test each, through the command line."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.engine.support.project import Project, alive, together
from tests.engine.support.server import Server
from tests.models.mock_server import MockModels, fails
from tests.waiting import until

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""
HELLO = {"type": "contains", "value": "hello"}


def test_unknown_assertion_type_or_key_is_refused(project: Project) -> None:
    project.write("agent.py", "def run(): open('called', 'w')")
    checks: list[tuple[dict[str, Any], str]] = [
        ({"type": "contians", "value": "x"}, "contains"),
        ({"type": "contains", "value": "x", "negat": True}, "negate"),
        ({"type": "contains", "vlaue": "x"}, "value"),
    ]
    file = project.cases(*({"id": said, "input": "x", "assert": check} for check, said in checks))
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.code == 2
    assert all(f"did you mean `{said}`?" in ran.err for _, said in checks)
    assert not (project.folder / "called").exists()


def test_a_check_that_raises_is_an_error_of_the_judge(project: Project) -> None:
    project.write("agent.py", ECHO)
    project.write("scripts/checks.py", "def explodes(output):\n    raise KeyError('gone')\n")
    script = {"type": "script", "script": "scripts.checks.explodes"}
    file = project.cases(
        {"id": "raises", "input": "x", "assert": script},
        {"id": "negated", "input": "x", "assert": {**script, "negate": True}},
        {"id": "also-wrong", "input": "x", "assert": [script, HELLO]},
        {"id": "fine", "input": "hello", "assert": HELLO},
    )
    ran, part = project.tests([file, "-n", "agent.py:run"], [file, "-n", "agent.py:run", "--run", "raises|fine"])
    assert ran.statuses == {"raises": "error", "negated": "error", "also-wrong": "failed", "fine": "passed"}
    assert ran.results["raises"]["blame"] == "judge"
    assert "KeyError: 'gone'" in ran.results["raises"]["error"]
    assert (ran.code, part.code) == (1, 3)


def test_a_judge_that_is_out_is_neither_a_failure_nor_a_pass(project: Project) -> None:
    project.write("agent.py", ECHO)
    judged = {"type": "llm_eval", "criteria": "completeness", "threshold": 0.1}
    file = project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}],
        [{"id": "judged", "assertions": [judged]}, {"id": "negated", "assertions": [{**judged, "negate": True}]}],
    )
    with MockModels(fails(400)) as models:
        ran = project.test(file, "--assessor", "openai.judge", env=models.env)
    assert ran.code == 3
    assert {(one["status"], one["blame"]) for one in ran.results.values()} == {("error", "judge")}
    assert ran.summary["errors"] == 2
    assert ran.summary["passed"] == ran.summary["failed"] == 0


def test_without_a_judge_nothing_is_run_that_needs_one(project: Project) -> None:
    project.write("agent.py", ECHO)
    file = project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}],
        [{"id": "judged", "assertions": [{"type": "llm_eval", "criteria": "completeness"}]}],
    )
    ran = project.test(file)
    assert ran.code == 2
    assert "no model is set for the judge" in ran.err
    assert "--role-connector" in ran.err


def test_an_over_budget_trial_fails_and_an_over_budget_run_is_incomplete(project: Project) -> None:
    project.write("agent.py", "def run(): return {'output': 'hello', 'usage': {'cost_usd': 0.4}}")
    agent = {"name": "dear", "type": "custom", "config": {"entry": "agent.py:run"}}
    dear = {"id": "dear", "constraints": {"budget_usd": 0.1}, "assertions": [HELLO]}
    others = [{"id": f"c{number}", "assertions": [HELLO]} for number in range(4)]
    ran = project.test(project.suite([agent], [dear]))
    assert ran.code == 1
    assert ran.results["dear"]["error"] == "budget_usd exceeded: $0.4 of $0.1, $0.3 too much"
    ran = project.test(project.suite([agent], others), "--budget-usd", "0.5")
    assert ran.code == 3
    assert ran.statuses == {"c0": "passed", "c1": "passed"}
    assert all(one["assertions"][0]["passed"] for one in ran.results.values())
    assert ran.summary["not_run"] == 2
    assert "$0.8 of $0.5" in ran.summary["stopped"]


def test_every_run_is_judged_not_only_the_first(project: Project) -> None:
    project.write("agent.py", "def run(context): return 'hello' if context['run'] == 1 else 'good-bye'")
    ran = project.test(project.cases({"id": "a", "input": "x", "assert": HELLO}), "-n", "agent.py:run", "--runs", "4")
    assert ran.code == 1
    assert ran.results["a"]["status"] == "failed"
    assert [one["status"] for one in ran.results["a"]["run_details"]] == ["passed", "failed", "failed", "failed"]
    assert ran.results["a"]["pass_rate"] == 25.0


def test_crashed_cases_stay_in_the_denominator(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt, context):
            if prompt == "crash" or (prompt == "some" and context["run"] > 1):
                raise RuntimeError("crash")
            return "hello"
        """,
    )
    file = project.cases("crash", "fine", "some")
    ran = project.test(file, "-n", "agent.py:run", "--runs", "3", "--parallel", "9")
    assert ran.summary["total"] == 3
    assert ran.summary["total_runs"] == 9
    assert ran.summary["passed_runs"] == 4
    assert ran.summary["overall_pass_rate"] == 44.4
    assert {name: one["pass_rate"] for name, one in ran.results.items()} == {"crash": 0.0, "fine": 100.0, "some": 33.3}


def test_missing_metrics_earn_no_marks(project: Project) -> None:
    project.write("agent.py", ECHO)
    limits = {"max_steps": 10, "budget_usd": 1.0}
    ran = project.test(
        project.suite(
            [{"name": "mute", "type": "custom", "config": {"entry": "agent.py:run"}}],
            [{"id": "hello", "constraints": limits, "assertions": [HELLO]}],
        )
    )
    (one,) = ran.results.values()
    assert one["dimensions"] == {"completeness": 1.0}
    assert [warning for warning in one["warnings"] if warning.startswith("unobserved")] == one["warnings"]
    assert len(one["warnings"]) == 2


def test_a_program_that_is_not_installed_is_an_error(project: Project) -> None:
    file = project.suite(
        [{"name": "gone", "type": "cli", "config": {"command": "no-such-linter-anywhere", "protocol": "text"}}],
        [{"id": "a", "assertions": [{"type": "not_contains", "value": "problem"}]}, {"id": "b"}],
    )
    ran = project.test(file)
    assert ran.code == 3
    assert {(one["status"], one["blame"]) for one in ran.results.values()} == {("error", "environment")}
    assert "no-such-linter-anywhere" in ran.results["a"]["error"]


def test_a_filter_that_matches_nothing_is_exit_2(project: Project) -> None:
    project.write("agent.py", ECHO)
    file = project.cases({"id": "a", "input": "x", "tags": ["slow"]})
    filters = [("--run", "nothing"), ("--tags", "nothing"), ("--tags", "!slow")]
    for ran in project.tests(*([file, "-n", "agent.py:run", *one] for one in filters)):
        assert ran.code == 2
        assert "no case is left to run" in ran.err


def test_ctrl_c_is_exit_130(project: Project) -> None:
    project.write("agent.py", "import time\ndef run(): open('at-it', 'w'); time.sleep(600)")
    running = project.start("test", project.cases("a"), "-n", "agent.py:run")
    until((project.folder / "at-it").exists)
    running.send_signal(2)
    assert project.finish(running).code == 130


def test_bob_does_not_get_alices_answer(project: Project) -> None:
    """What is taken over on `--resume` is taken over only if nothing that decides it has changed."""
    project.write(
        "agent.py",
        """
        def run(prompt, context):
            with open("asked", "a") as file:
                print(context["user"], file=file)
            if prompt == "stop":
                raise RuntimeError
            return context["user"]
        """,
    )
    file = project.cases("who", "stop")
    flags = [file, "-n", "agent.py:run", "--fail-fast"]
    project.test(*flags, "-u", "alice")
    again = project.test(*flags, "-u", "alice", "--resume")
    other = project.test(*flags, "-u", "bob", "--resume")
    assert again.results["who"]["output"] == "alice"
    assert other.results["who"]["output"] == "bob"
    assert project.lines("asked") == ["alice", "alice", "alice", "bob", "bob"]


def test_a_timeout_ends_the_agents_process(project: Project) -> None:
    project.write(
        "sleeper.py", "import os, time\nopen('../../../../../pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    agent = {"name": "sleeper", "type": "cli", "config": {"command": [sys.executable, "sleeper.py"]}}
    ran = project.test(project.suite([agent], [{"id": "a", "constraints": {"timeout_seconds": 2}}]))
    assert ran.results["a"]["status"] == "timeout"
    assert ran.results["a"]["error"] == "timeout after 2s"
    assert not alive(int((project.folder / "pid").read_text()))


def test_output_beyond_a_pipes_buffer_does_not_deadlock(project: Project) -> None:
    project.write(
        "loud.py",
        """
        import sys, threading
        def shout(stream):
            for _ in range(50):
                stream.write("x" * 1024 * 1024)
            stream.flush()
        threads = [threading.Thread(target=shout, args=[stream]) for stream in (sys.stdout, sys.stderr)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """,
    )
    config = {"command": [sys.executable, "loud.py"], "protocol": "text"}
    check = {"type": "regex", "value": "^x{1000}"}
    ran = project.test(
        project.suite([{"name": "loud", "type": "cli", "config": config}], [{"id": "a", "assertions": [check]}])
    )
    assert ran.results["a"]["status"] == "passed"
    assert len(ran.results["a"]["output"]) == 50 * 1024 * 1024


HOSTILE = "[bold red]{{ 7919*7927 }} ${API_KEY} {API_KEY} %(API_KEY)s [/nope] </judge> \x1b[31m\x07 ${{x}}"


def test_agent_output_is_never_a_template_nor_markup(project: Project) -> None:
    project.write("agent.py", f"def run(): return {HOSTILE!r}")
    check = {"type": "equals", "value": HOSTILE}
    file = project.cases({"id": "a", "input": "x", "assert": check}, {"id": "b", "input": "x", "assert": HELLO})
    secret = {"API_KEY": "very-secret-key"}
    ran, shown = together(
        lambda: project.test(file, "-n", "agent.py:run", env=secret),
        lambda: project.atp("test", file, "-n", "agent.py:run", "-v", env=secret),
    )
    assert ran.statuses == {"a": "passed", "b": "failed"}
    assert ran.results["a"]["output"] == HOSTILE
    assert shown.code == 1
    assert "[bold red]{{ 7919*7927 }} ${API_KEY} {API_KEY} %(API_KEY)s [/nope] </judge>" in shown.out
    assert "\x1b" not in shown.out + shown.err
    assert str(7919 * 7927) not in shown.out
    assert secret["API_KEY"] not in shown.out + shown.err + ran.out


def test_secrets_are_masked_in_every_output(project: Project) -> None:
    project.write(
        "agent.py", "def run(options): print('key', options['api_key']); return f\"key {options['api_key']}\""
    )
    config = {"entry": "agent.py:run", "api_key": "${API_KEY}"}
    file = project.suite([{"name": "leaks", "type": "custom", "config": config}], [{"id": "a", "assertions": [HELLO]}])
    ran = project.atp("test", file, "-v", "-o", "r.json", "-o", "r.jsonl", env={"API_KEY": "very-secret-key"})
    assert ran.code == 1
    journal = (project.runs()[-1] / "journal.jsonl").read_text()
    reports = [(project.folder / name).read_text() for name in ("r.json", "r.jsonl")]
    for text in (ran.out, ran.err, journal, *reports):
        assert "very-secret-key" not in text
    assert all("key ***" in text for text in (journal, *reports))


def test_an_artifacts_path_never_leaves_the_workspace(project: Project) -> None:
    project.write("mine.txt", "mine")
    project.write(
        "agent.py",
        """
        import json, os, sys
        request = json.load(sys.stdin)
        os.symlink(os.environ["OUT"], "link")
        made = {"type": "file", "path": os.environ["TO"], "content": "overwritten"}
        print(json.dumps({"task_id": request["task_id"], "status": "completed", "artifacts": [made]}))
        """,
    )
    agents = []
    for path in ("../../../../../mine.txt", f"/tmp/../{project.folder}/mine.txt", "link/mine.txt"):
        environment = {"OUT": str(project.folder), "TO": path}
        config = {"command": [sys.executable, "agent.py"], "environment": environment}
        agents.append({"name": path, "type": "cli", "config": config})
    ran = project.test(project.suite(agents, [{"id": "a"}]), "--parallel", "3")
    assert [(one["status"], one["blame"]) for one in ran.events[1:-1]] == [("error", "agent")] * 3
    assert (project.folder / "mine.txt").read_text() == "mine"


def test_resume_never_restores_the_result_of_an_edited_test(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt):
            with open("asked", "a") as file:
                print(prompt, file=file)
            if prompt == "stop":
                raise RuntimeError
            return f"you said {prompt}"
        """,
    )
    first, same = {"id": "a", "input": "one", "assert": {"type": "contains", "value": "one"}}, "same"
    project.cases(first, same, "stop")
    assert project.test("cases.jsonl", "-n", "agent.py:run", "--fail-fast").statuses["a"] == "passed"
    project.cases({**first, "assert": {"type": "contains", "value": "two"}}, same, "stop")
    ran = project.test("cases.jsonl", "-n", "agent.py:run", "--resume")
    assert ran.statuses == {"a": "failed", "same": "passed", "stop": "error"}
    assert project.lines("asked") == ["one", "same", "stop", "one", "stop"]


def test_the_journal_is_only_ever_appended_to(project: Project) -> None:
    """Were it written anew after every case, what stood there before would move or change."""
    project.write(
        "agent.py",
        """
        import glob
        def run():
            (name,) = glob.glob(".atp/runs/*/journal.jsonl")
            with open(name, "rb") as file, open("sizes", "a") as out:
                print(len(file.read()), __import__("os").fstat(file.fileno()).st_ino, sep=":", file=out)
        """,
    )
    project.test(project.cases(*[f"c{number}" for number in range(6)]), "-n", "agent.py:run")
    sizes, inodes = zip(*(line.split(":") for line in project.lines("sizes")), strict=True)
    whole = (project.runs()[-1] / "journal.jsonl").read_bytes()
    assert len(set(inodes)) == 1
    assert [int(size) for size in sizes] == [len(b"".join(whole.splitlines(True)[: n + 1])) for n in range(6)]


def test_a_case_that_exits_costs_one_case(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import sys
        def run(prompt):
            match prompt:
                case "exit": sys.exit(0)
                case "raise": raise SystemExit
                case "interrupt": raise KeyboardInterrupt
            return prompt
        async def later(prompt):
            return run(prompt)
        """,
    )
    file = project.cases("before", "exit", "raise", "interrupt", "after")
    for ran in project.tests([file, "-n", "agent.py:run"], [file, "-n", "agent.py:later"]):
        bad = dict.fromkeys(["exit", "raise", "interrupt"], "error")
        assert ran.statuses == {"before": "passed", **bad, "after": "passed"}
        assert {ran.results[name]["blame"] for name in bad} == {"agent"}
        assert ran.code == 1


def test_stdout_of_json_has_nothing_else_in_it(project: Project, server: Server) -> None:
    project.write(
        "agent.py",
        """
        import os, subprocess, sys
        print("imported")
        os.write(1, b"imported, too\\n")
        def run(prompt):
            print("printed")
            sys.stdout.write("no line end")
            sys.__stdout__.write("by the back door\\n")
            os.write(1, b"below Python\\n")
            subprocess.run(["echo", "from a child"])
            return prompt
        """,
    )
    project.write("hooks.py", "def setup():\n    print('from a hook')\n")
    project.write(
        "scripts/checks.py", "print('loading')\ndef fine(output):\n    print('from a script')\n    return True\n"
    )
    check = {"type": "script", "script": "scripts.checks.fine"}
    one = {"id": "a", "input": "x", "assert": check, "before_hook": "hooks.py:setup", "after_hook": "hooks.py:setup"}
    flags = ["-n", "agent.py:run", "--before-all", "hooks.py:setup", "--after-all", "hooks.py:setup", "-v"]
    file = project.cases(one)
    ran, dry, report = together(
        lambda: project.test(file, *flags),
        lambda: project.test(file, *flags, "--dry-run"),
        lambda: project.atp("test", file, *flags, "-r", "report.json"),
    )
    assert ran.code == 0
    assert [event["type"] for event in ran.events] == ["start", "result", "summary"]
    assert [event["type"] for event in dry.events] == ["trial", "plan"]
    assert json.loads(report.out)["summary"]["passed"] == 1


def test_files_are_where_the_tests_say(project: Project) -> None:
    """A trap of our own: a path in a file starts at that file, wherever `atp` is called from."""
    project.write("sub/agent.py", ECHO)
    file = project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}], [{"id": "a"}], file="sub/suite.yaml"
    )
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    assert project.test(str(Path("..") / file), cwd=elsewhere).code == 0
