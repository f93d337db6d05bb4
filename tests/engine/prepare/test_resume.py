"""Going on with a run after kill -9, a signal or an edit: nothing that was finished is lost or done again."""

import json
import random
import resource
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

import pytest
from tests.engine.support.project import Project, kill
from tests.waiting import until

COUNTS = """
    import os, signal, time

    def run(prompt, context):
        with open("asked", "a") as file:
            print(f"{prompt}.{context['run']}", file=file)
        name, _, what = prompt.partition("-")
        if what == "kills" and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "waits" and not os.path.exists("go"):
            time.sleep(600)
        if what == "raises":
            raise RuntimeError("no")
        time.sleep(0.02)
        return prompt
"""
AGENT = ["-n", "agent.py:run"]


def asked(project: Project) -> Counter[str]:
    """How often the agent was asked what, counted by itself."""
    return Counter(project.lines("asked"))


def names(project: Project) -> list[str]:
    """The cases in the journal whose trials ended well, each as often as it stands there."""
    return [one["case"] for one in project.trials() if one.get("status", "passed") == "passed"]


def test_an_agent_that_kills_atp_costs_only_itself(project: Project) -> None:
    project.write("agent.py", COUNTS)
    file = project.cases("a", "b", "c-kills", "d", "e")
    died = project.atp("test", file, *AGENT)
    assert died.code == -9
    assert names(project) == ["a", "b"]
    (listed,) = json.loads(project.atp("runs", "--json").out)
    assert listed["state"] == "unfinished"
    ran = project.test(file, *AGENT, "--resume")
    assert ran.code == 0
    assert ran.statuses == dict.fromkeys(["a", "b", "c-kills", "d", "e"], "passed")
    assert ran.summary["passed"] == 5
    assert asked(project) == {"a.1": 1, "b.1": 1, "c-kills.1": 2, "d.1": 1, "e.1": 1}
    assert len(project.runs()) == 1
    second = ["start", *["kept"] * 2, *["trial"] * 3, "summary"]
    assert [line["type"] for line in project.journal()] == ["start", *["trial"] * 2, *second]
    (listed,) = json.loads(project.atp("runs", "--json").out)
    assert (listed["state"], listed["passed"], listed["total"]) == ("finished", 5, 5)


def test_in_parallel_only_what_was_in_flight_runs_again(project: Project) -> None:
    project.write("agent.py", COUNTS)
    file = project.cases("a", "b-waits", "c", "d-waits", "e", "f-waits", "g", "h")
    running = project.start("test", file, *AGENT, "--parallel", "4", "--runs", "2")
    until(lambda: len(names_now(project)) == 4)  # a and c, twice each: the four workers wait in b and d by then
    until(lambda: len(project.lines("asked")) == 8)
    kill(running)
    done = names_now(project)
    before = asked(project)
    (project.folder / "go").touch()
    ran = project.test(file, *AGENT, "--parallel", "4", "--runs", "2", "--resume")
    assert ran.code == 0
    assert len(ran.results) == 8
    assert ran.events[0]["resumed"] == len(done)
    after = asked(project)
    assert len(after) == 16
    again = {name for name, times in after.items() if times == 2}
    assert again == set(before) - set(done)
    assert sum(after.values()) == 16 + len(again)


def has_asked(project: Project, times: int) -> bool:
    return len(project.lines("asked")) >= times


def names_now(project: Project) -> list[str]:
    """The trials whose lines are complete in the journal of a run that is under way."""
    text = "".join(path.read_text() for path in project.folder.glob(".atp/runs/*/journal.jsonl"))
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [f"{one['result']['case']}.{one['result'].get('run', 1)}" for one in lines if one["type"] == "trial"]


def test_killed_at_random_times(project: Project) -> None:
    """Again and again, until it comes to its end: each case is reported once, and hardly any is asked twice."""
    project.write("agent.py", COUNTS)
    cases = [f"c{number}" for number in range(60)]
    file = project.cases(*cases)
    chance = random.Random()
    kills = 3
    for number in range(kills):
        running = project.start("test", file, *AGENT, "--parallel", "3", *(["--resume"] if number else []))
        wanted = len(project.lines("asked")) + chance.randint(3, 12)
        until(partial(has_asked, project, wanted))
        time.sleep(chance.random() * 0.05)
        kill(running)
    ran = project.test(file, *AGENT, "--parallel", "3", "--resume")
    assert ran.code == 0
    assert sorted(ran.results) == sorted(cases)
    assert sorted(names(project)) == sorted(cases)
    counted = asked(project)
    assert sorted(counted) == sorted(f"{one}.1" for one in cases)
    assert sum(counted.values()) - len(cases) <= 3 * kills


def test_a_command_line_agent_that_kills_its_parent(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import os, pathlib, signal, sys
        prompt = sys.stdin.read().strip()
        here = pathlib.Path(__file__).parent
        with open(here / "asked", "a") as file:
            print(f"{prompt}.1", file=file)
        if prompt == "b" and not (here / "killed").exists():
            (here / "killed").touch()
            os.kill(os.getppid(), signal.SIGKILL)
        print(prompt)
        """,
    )
    config = {"command": [sys.executable, "agent.py"], "protocol": "text"}
    file = project.suite([{"name": "cli", "type": "cli", "config": config}], [{"id": name} for name in "abc"])
    assert project.atp("test", file).code == -9
    ran = project.test(file, "--resume")
    assert ran.statuses == {"a": "passed", "b": "passed", "c": "passed"}
    assert asked(project) == {"a.1": 1, "b.1": 2, "c.1": 1}
    assert project.workspaces() == []


def test_a_torn_last_line_is_cut_off_and_said_so(project: Project) -> None:
    project.write("agent.py", COUNTS)
    file = project.cases("a", "b", "c-kills")
    project.atp("test", file, *AGENT)
    journal = project.runs()[-1] / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-30])  # the last line, of `b`, is half written
    ran = project.atp("test", file, *AGENT, "--resume", "-o", "out.jsonl")
    assert ran.code == 0
    torn = len(whole[:-30]) - len(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert f"the last line of the journal was torn by a crash: {torn} bytes were cut off" in ran.out
    assert "1 of 3 trials taken over" in ran.out
    assert asked(project) == {"a.1": 1, "b.1": 2, "c-kills.1": 2}
    assert names(project) == ["a", "b", "c-kills"]


def test_an_edited_case_runs_again_an_untouched_one_does_not(project: Project) -> None:
    """Nor does one whose files are as they were: a script that judges, a folder that the workspace starts with."""
    project.write("agent.py", COUNTS)
    project.write("scripts/checks.py", "def fine(output): return True")
    project.write("seed/file.txt", "one")
    project.write("same/file.txt", "one")
    limited = {"id": "lim", "input": "lim", "timeout": "30s"}
    meta = {"id": "meta", "input": "meta", "metadata": {"x": 1}}
    rest: list[dict[str, Any] | str] = [
        {"id": "script", "input": "script", "assert": {"type": "script", "script": "scripts.checks.fine"}},
        {"id": "seed", "input": "seed", "workspace": "seed"},
        {"id": "same", "input": "same", "workspace": "same"},
        "plain",
        "z-kills",
    ]
    file = project.cases("gone", limited, meta, *rest)
    project.atp("test", file, *AGENT)
    project.write("scripts/checks.py", "def fine(output): return False")
    project.write("seed/file.txt", "two")
    project.cases("new", {**limited, "timeout": "31s"}, {**meta, "metadata": {"x": 2}}, *rest)
    ran = project.test(file, *AGENT, "--resume")
    names = ["new", "lim", "meta", "script", "seed", "same", "plain", "z-kills"]
    assert ran.statuses == {**dict.fromkeys(names, "passed"), "script": "failed"}
    once = ["gone", "new", "same", "plain"]
    assert asked(project) == {f"{name}.1": 1 if name in once else 2 for name in [*names, "gone"]}


def test_an_edited_agent_runs_everything_again(project: Project) -> None:
    project.write("agent.py", COUNTS)
    file = project.cases("a", "b", "c-kills")
    project.atp("test", file, *AGENT)
    project.write("agent.py", COUNTS.replace("return prompt", "return prompt + '!'"))
    ran = project.test(file, *AGENT, "--resume")
    assert [one["output"] for one in ran.results.values()] == ["a!", "b!", "c-kills!"]
    assert asked(project) == {"a.1": 2, "b.1": 2, "c-kills.1": 2}


def test_an_edited_script_of_a_checkpoint_runs_its_dialogue_again(project: Project) -> None:
    def dialogue(name: str) -> dict[str, Any]:
        script = {"type": "any_of", "assertions": [{"type": "script", "script": f"scripts:{name}.holds"}]}
        points = [{"id": "c", "assertion": script}]
        return {"id": name, "input": name, "simulator": {}, "checkpoints": points, "max_turns": 1}

    project.write("agent.py", COUNTS)
    project.write("scripts/sim.py", "def user(told):\n    return {'input': 'hi', 'goal_achieved': False}\n")
    for name in ("edited", "same"):
        project.write(f"scripts/{name}.py", "def holds(output):\n    return True\n")
    flags = [project.cases(dialogue("edited"), dialogue("same"), "z-kills"), *AGENT, "--simulator", "scripts:sim.user"]
    project.atp("test", *flags)
    project.write("scripts/edited.py", "def holds(output):\n    return not output\n")
    ran = project.test(*flags, "--resume")
    assert ran.statuses == {"edited": "failed", "same": "passed", "z-kills": "passed"}
    assert asked(project) == {"edited.1": 2, "same.1": 1, "z-kills.1": 2}


JUDGE = """
    def judge(asked):
        text = asked["record"][-1]["text"]
        return {"verdicts": [{"number": 1, "score": SCORE, "reason": "so", "evidence": [text]}]}

    def user(told):
        return {"input": "", "goal_achieved": True}
"""


@pytest.mark.parametrize("role", ["judge", "user"])
def test_what_another_judge_or_user_decided_runs_again(project: Project, role: str) -> None:
    """Or the results of one run would be the opinions of two judges. What needed neither is kept."""
    project.write("agent.py", COUNTS)
    for name, score in (("judge", "1"), ("user", "1")):
        project.write(f"scripts/{name}.py", JUDGE.replace("SCORE", score))
    judged = {"id": "judge", "input": "judge", "assert": {"type": "llm_eval", "criteria": "it is right"}}
    point = {"id": "c", "assertion": {"type": "contains", "value": "user"}}
    dialogue = {"id": "user", "input": "user", "simulator": {}, "checkpoints": [point], "max_turns": 1}
    file = project.cases(judged, dialogue, "plain", "z-kills")
    flags = [file, *AGENT, "--assessor", "scripts:judge.judge", "--simulator", "scripts:user.user"]
    project.atp("test", *flags)
    project.write(f"scripts/{role}.py", JUDGE.replace("SCORE", "0"))
    ran = project.test(*flags, "--resume")
    failed = "failed" if role == "judge" else "passed"
    assert ran.statuses == {"judge": failed, "user": "passed", "plain": "passed", "z-kills": "passed"}
    assert asked(project) == {**dict.fromkeys(["judge.1", "user.1", "plain.1"], 1), "z-kills.1": 2, f"{role}.1": 2}


def test_errors_and_cancelled_trials_run_again_failures_do_not(project: Project) -> None:
    project.write("agent.py", COUNTS)
    wrong = {"id": "wrong", "input": "wrong", "assert": {"type": "equals", "value": "right"}}
    file = project.cases("fine", wrong, "a-raises", "b-waits")
    flags = [file, *AGENT, "--parallel", "4", "--timeout", "1m"]
    running = project.start("test", *flags)
    until(lambda: len(names_now(project)) == 3)
    running.send_signal(2)
    assert project.finish(running).code == 130
    by_case = {one["case"]: one.get("status", "passed") for one in project.trials()}
    assert by_case == {"fine": "passed", "wrong": "failed", "a-raises": "error", "b-waits": "cancelled"}
    (project.folder / "go").touch()
    ran = project.test(*flags, "--resume")
    assert ran.code == 1
    assert ran.statuses == {"fine": "passed", "wrong": "failed", "a-raises": "error", "b-waits": "passed"}
    assert asked(project) == {"fine.1": 1, "wrong.1": 1, "a-raises.1": 2, "b-waits.1": 2}


def test_which_run_is_resumed(project: Project) -> None:
    project.write("agent.py", COUNTS)
    file, other = project.cases("a", "b-kills"), project.cases("x", name="other.jsonl")
    nothing = project.test(file, *AGENT, "--resume")
    assert nothing.code == 2
    assert "there is no unfinished run of this input" in nothing.err
    project.atp("test", file, *AGENT)
    (killed,) = project.runs()
    assert project.test(other, *AGENT).code == 0
    complete, unknown, several = project.tests(
        [other, *AGENT, "--resume"],
        [file, *AGENT, "--resume-from", "19990101"],
        [file, *AGENT, "--resume-from", "2"],
    )
    assert complete.code == unknown.code == several.code == 2
    assert "there is no such run" in unknown.err
    assert "several runs begin so" in several.err
    assert project.lines("asked") == ["a.1", "b-kills.1", "x.1"]
    # Newer runs, of other input or finished, don't hide it; a prefix names it as well as the whole.
    assert project.test(file, *AGENT).code == 0
    ran = project.test(file, *AGENT, "--resume-from", killed.name[:-2])
    assert (ran.code, ran.events[0]["run_id"], ran.events[0]["resumed"]) == (0, killed.name, 1)
    ran = project.test(file, *AGENT, "--resume-from", killed.name)
    assert (ran.code, ran.events[0]["resumed"]) == (0, 2)
    assert asked(project) == {"a.1": 2, "b-kills.1": 3, "x.1": 1}
    assert project.test(file, *AGENT, "--resume").code == 2
    assert len(project.runs()) == 3


def test_a_run_that_another_process_is_in(project: Project) -> None:
    project.write("agent.py", COUNTS)
    file = project.cases("a", "b-waits")
    running = project.start("test", file, *AGENT)
    until(lambda: len(project.lines("asked")) == 2)
    for flags in (["--resume"], ["--resume-from", project.runs()[0].name]):
        ran = project.test(file, *AGENT, *flags)
        assert ran.code == 2
        assert "under way in another process" in ran.err
    assert running.poll() is None
    rows = project.atp("runs").out.splitlines()
    assert len(rows) == 1
    assert "running" in rows[0]
    kill(running)
    rows = project.atp("runs").out.splitlines()
    assert "unfinished" in rows[0]
    assert project.lines("asked") == ["a.1", "b-waits.1"]


def test_resume_with_kept_workspaces_and_a_damaged_line(project: Project) -> None:
    project.write("agent.py", COUNTS.replace("context):", "context, workspace):"))
    file = project.cases("a", "b", "c-kills")
    project.atp("test", file, *AGENT, "--keep-workspaces")
    journal = project.runs()[-1] / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text(lines[0] + '{"type":"trial","result":{"key"' + "\n" + lines[2])  # `a` is damaged
    ran = project.test(file, *AGENT, "--keep-workspaces", "--resume")
    assert ran.statuses == {"a": "passed", "b": "passed", "c-kills": "passed"}
    assert asked(project) == {"a.1": 2, "b.1": 1, "c-kills.1": 2}


def test_a_full_disk_ends_the_run_in_good_order(project: Project) -> None:
    project.write("agent.py", "import time\ndef run(prompt):\n    time.sleep(.1)\n    return prompt * 2000")
    file = project.cases(*[f"case-{number}" for number in range(12)])

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    flags = ("--parallel", "2", "-o", "/dev/null", "-r", "report.summary")
    ran = project.atp("test", file, *AGENT, *flags, preexec_fn=small_files)
    assert ran.code == 3
    assert "Traceback" not in ran.err
    assert "journal.jsonl can't be written: File too large" in ran.out + ran.err
    done = [one for one in project.trials() if one.get("status", "passed") == "passed"]  # not the one cancelled then
    assert 0 < len(done) < 12
    again = project.test(file, *AGENT, "--parallel", "2", "--resume")
    assert again.code == 0
    assert len(again.results) == 12
    assert again.events[0]["resumed"] == len(done)


def test_going_on_with_a_part_of_a_run_is_refused(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello' if prompt == 'a' else 1/0")
    file = project.cases("a", "b")
    project.test(file, "-n", "agent.py:run", "--fail-fast")
    run = json.loads(project.atp("runs", "--json").out)[0]["run"]
    ran = project.test(file, "-n", "agent.py:run", "--resume-from", run, "--run", "^b$")
    assert ran.code == 2
    assert "other-filter" in ran.err


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
