"""Every flag of `atp test`, and where else its setting may come from."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran, together
from tests.engine.support.server import Server

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""

HELLO = {"type": "contains", "value": "hello"}

TELLS = """
    def run(prompt, context):
        with open("asked", "a") as file:
            print(f"{context['case_id']}.{context['run']}", file=file)
        return context

    def other(prompt):
        return f"other {prompt}"

    def fails():
        raise RuntimeError("no")
"""
AGENT = ["-n", "agent.py:run"]


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    project.write("agent.py", TELLS)


# What is tested: -i and paths


def test_files_folders_patterns_and_messages(project: Project) -> None:
    project.cases("a", name="tests/one.jsonl")
    project.cases("b", name="tests/sub/two.jsonl")
    project.cases("old", name="tests/output-20240101000000.jsonl")
    project.write("tests/notes.yaml", "not: a suite")
    project.write("tests/list.json", [{"id": "only by name", "input": "x"}])
    folder, pattern, files = project.tests(
        ["-i", "tests", *AGENT],
        ["tests/*.jsonl", "-i", "tests/list.json", *AGENT, "--run", "only|a"],
        ["-i", "tests/one.jsonl", "tests/sub/two.jsonl", *AGENT],
    )
    assert sorted(folder.results) == ["a", "b"]
    assert sorted(pattern.results) == ["a", "only by name"]
    assert sorted(files.results) == ["a", "b"]


def test_a_message(project: Project) -> None:
    said = project.atp("test", "-i", "Say something/anything, {please} [bold]now[/bold]", "-n", "agent.py:other")
    assert (said.code, said.out) == (0, "other Say something/anything, {please} [bold]now[/bold]\n")
    long = "word " * 900
    (one,) = project.test("-i", long, "-n", "agent.py:other").results.values()
    assert one["output"] == f"other {long}"


def test_input_that_is_not_there(project: Project) -> None:
    texts = ["gone.jsonl", "no/such/thing", "gone*.jsonl"]
    named = [flag for text in texts for flag in ("-i", text)]
    odd = os.fsdecode(b"caf\xe9.jsonl")
    project.cases("a", name=odd)
    all_of_them, *others = project.tests(
        [*named, odd, *AGENT],
        ["just words", *AGENT],
        AGENT,
        ["-i", "agents:x.y", *AGENT],
        ["-i", "scripts:x.y", *AGENT],
    )
    assert "its name is not Unicode" in all_of_them.err
    assert all(text in all_of_them.err for text in texts)
    for ran in (all_of_them, *others):
        assert ran.code == 2
        assert ran.err
        assert ran.out == ""


# Which agent: -n, -c


def test_agents_by_every_kind_of_name(project: Project, server: Server) -> None:
    project.write("atp.toml", f"[agents.'team.http']\ntype = 'http'\nconfig.endpoint = '{server.url('echo')}'")
    own = [{"name": name, "type": "custom", "config": {"entry": "agent.py:other"}} for name in ("first", "second")]
    file = project.suite(own, [{"id": "all"}, {"id": "narrow", "agents": ["first"]}])
    names = ["agent:other", "./agent.py:other", server.url("echo"), "team.http"]
    flags = [flag for name in names for flag in ("-n", name)]
    own_agents, picked, ran = project.tests([file], [file, "-n", "second", "-n", "second"], [file, *flags])
    assert [event["agent_id"] for event in own_agents.events[1:-1]] == ["first", "second", "first"]
    assert list(picked.results) == ["all"]  # named twice, tested once
    assert ran.code == 0
    assert sorted((one["agent_id"], one["id"]) for one in ran.events[1:-1]) == sorted(
        (name, case) for name in names for case in ("all", "narrow")
    )
    assert "lists are ignored, because -n names another agent" in ran.err


def test_agents_that_are_not_there(project: Project) -> None:
    project.write("broken.py", "1 / 0")
    file = project.suite([{"name": "first", "type": "custom", "config": {"entry": "agent.py:run"}}], [{"id": "a"}])
    names = {
        "frist": "did you mean `first`?",
        "agent.py:runn": "did you mean `run`?",
        "nowhere.py:run": "nowhere.py",
        "no_such_module:run": "no_such_module",
        "broken.py:run": "ZeroDivisionError",
        "agents/gone.md": "agents/gone.md",
    }
    wrong, none = project.tests([file, *(flag for name in names for flag in ("-n", name))], [project.cases("a")])
    assert wrong.code == none.code == 2
    for said in names.values():
        assert said in wrong.err
    assert "name one with -n" in none.err
    assert project.runs() == []


# Who it runs as: -u, -t, -c, --ctx


def test_identity_comes_from_flag_then_case_then_ctx_then_settings(project: Project) -> None:
    file = project.cases("plain", {"id": "own", "input": "x", "user": "case-user", "team": "case-team"})
    project.write("atp.toml", "user = 'toml-user'\nteam = 'toml-team'\nlocale = 'de-de'")
    project.write("ctx.json", {"team": "ctx-team", "client_ip": "10.0.0.1", "metadata": {"x": 1}})

    def who(ran: Ran) -> dict[str, tuple[str, str, str]]:
        seen = {name: one["output"] for name, one in ran.results.items()}
        return {name: (one["user"], one["team"], one["locale"]) for name, one in seen.items()}

    flags = ["-u", "flag-user", "-t", "flag-team", "--locale", "fr-fr", "--ctx", "ctx.json", "-c", "gpt"]
    env = {"ATP_USER": "env-user", "ATP_TEAM": "env-team"}
    by_file, by_env, by_flag = together(
        lambda: project.test(file, *AGENT),
        lambda: project.test(file, *AGENT, "--ctx", "ctx.json", env=env),
        lambda: project.test(file, *AGENT, *flags, env=env),
    )
    own = ("case-user", "case-team", "de-de")
    assert who(by_file) == {"plain": ("toml-user", "toml-team", "de-de"), "own": own}
    assert who(by_env) == {"plain": ("env-user", "ctx-team", "de-de"), "own": own}
    assert who(by_flag) == dict.fromkeys(["plain", "own"], ("flag-user", "flag-team", "fr-fr"))
    for one in by_flag.results.values():
        seen = one["output"]
        assert (seen["client_ip"], seen["metadata"], seen["connector"]) == ("10.0.0.1", {"x": 1}, "gpt")
    assert by_flag.events[0]["environment"]["user_id"] == "flag-user"


def test_yao_keeps_user_and_team_in_authorized(project: Project) -> None:
    project.write("agent.py", "def run(context):\n    return f\"{context['user']} {context['team']}\"\n")
    project.write("ctx.json", {"authorized": {"user_id": "ann", "team_id": "ops", "scope": "all"}, "team": "own"})
    check = {"type": "equals", "value": "ann own"}
    ran = project.test(project.cases({"id": "a", "input": "x", "assert": check}), *AGENT, "--ctx", "ctx.json")
    assert ran.statuses == {"a": "passed"}, ran.out


def test_a_bad_ctx_file(project: Project) -> None:
    project.write("ctx.yaml", "user: me\nteem: us\n")
    file = project.cases("a")
    bad, gone = project.tests([file, *AGENT, "--ctx", "ctx.yaml"], [file, *AGENT, "--ctx", "gone.yaml"])
    assert bad.code == gone.code == 2
    assert "ctx.yaml:2" in bad.err
    assert "did you mean `team`?" in bad.err
    assert "gone.yaml" in gone.err


# How often and how long: --runs, --timeout, --parallel


def test_runs_come_from_flag_then_case_then_suite_then_environment_then_file(project: Project) -> None:
    own = [{"name": "x", "type": "custom", "config": {"entry": "agent.py:run"}}]
    tests: list[dict[str, Any]] = [{"id": "plain"}, {"id": "own", "runs": 2}]
    with_defaults = project.suite(own, tests, defaults={"runs_per_test": 3})
    without = project.suite(own, tests, file="without.yaml")
    project.write("atp.toml", "runs = 4")

    def runs(ran: Ran) -> dict[str, int]:
        return {name: len(one.get("run_details", [0])) for name, one in ran.results.items()}

    by_suite, by_flag, by_env, by_file = together(
        lambda: project.test(with_defaults, env={"ATP_RUNS": "5"}),
        lambda: project.test(with_defaults, "--runs", "1"),
        lambda: project.test(without, env={"ATP_RUNS": "5"}),
        lambda: project.test(without),
    )
    assert runs(by_suite) == {"plain": 3, "own": 2}
    assert runs(by_flag) == {"plain": 1, "own": 1}
    assert runs(by_env) == {"plain": 5, "own": 2}
    assert runs(by_file) == {"plain": 4, "own": 2}


def test_the_timeout_flag_is_only_a_default(project: Project) -> None:
    project.write("agent.py", "import time\ndef run(prompt):\n    time.sleep(1.5)\n    return prompt")
    file = project.cases("short", {"id": "own", "input": "x", "timeout": "1m"})
    ran = project.test(file, *AGENT, "--timeout", "300ms", "--parallel", "2")
    assert ran.statuses == {"short": "timeout", "own": "passed"}
    assert ran.results["short"]["error"] == "timeout after 300ms"


def test_parallel_and_the_limit_of_an_agent(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import asyncio, collections
        full = asyncio.Event()
        now, most = collections.Counter(), collections.Counter()
        async def run(context):
            name = context["agent"]
            now[name] += 1
            now["all"] += 1
            most[name] = max(most[name], now[name])
            most["all"] = max(most["all"], now["all"])
            if now["all"] == 6:
                full.set()
            await full.wait()
            now[name] -= 1
            now["all"] -= 1
            return dict(most)
        """,
    )
    agents = [
        {"name": "free", "type": "custom", "config": {"entry": "agent.py:run"}},
        {"name": "two", "type": "custom", "config": {"entry": "agent.py:run", "parallel": 2}},
    ]
    file = project.suite(agents, [{"id": f"t{number:02}"} for number in range(12)])
    ran = project.test(file, "--parallel", "6")
    results = [event for event in ran.events if event["type"] == "result"]
    assert len(results) == 24
    most = {name: max(one["output"].get(name, 0) for one in results) for name in ("free", "two", "all")}
    assert most["two"] == 2
    assert most["all"] == 6
    assert most["free"] >= 4


# When to stop: --fail-fast, --max-…, --budget-…


@pytest.mark.parametrize("parallel", ["1", "3"])
def test_fail_fast(project: Project, parallel: str) -> None:
    project.write(
        "agent.py",
        """
        import os, time
        def run(prompt):
            print(prompt, file=open("asked", "a"))
            if prompt.startswith("slow") and not os.path.exists("go"):
                time.sleep(600)
            while prompt == "fails" and len(open("asked").readlines()) < 3:  # all are at work
                time.sleep(0.01)
            return prompt
        """,
    )
    first = ["a", "b"] if parallel == "1" else ["slow1", "slow2"]
    fails = {"id": "fails", "input": "fails", "assert": {"type": "equals", "value": "works"}}
    later = [f"later{number}" for number in range(20)]
    flags = [project.cases(*first, fails, *later), *AGENT, "--fail-fast", "--parallel", parallel]
    ran = project.test(*flags)
    assert ran.code == 1
    expected = {"a": "passed", "b": "passed"} if parallel == "1" else {"slow1": "cancelled", "slow2": "cancelled"}
    assert ran.statuses == {**expected, "fails": "failed"}
    assert sorted(project.lines("asked")) == sorted([*first, "fails"])
    assert ran.summary["not_run"] == 20
    assert ran.summary["stopped"] == "first failure: fails"
    # A failure from before is no news: going on goes on.
    (project.folder / "go").touch()
    ran = project.test(*flags, "--resume")
    assert (ran.code, len(ran.results), ran.statuses["fails"]) == (1, 23, "failed")
    again = [] if parallel == "1" else first
    assert sorted(project.lines("asked")) == sorted([*first, "fails", *again, *later])


def test_budgets_for_the_whole_run(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import time
        def run(prompt):
            if prompt == "slow":
                time.sleep(600)
            return {"output": "x", "usage": {"total_tokens": 100, "cost_usd": 0.25}}
        async def events():
            yield {"event_type": "llm_request", "payload": {"input_tokens": 60, "output_tokens": 50}}
        """,
    )
    file = project.cases(*[f"c{number}" for number in range(6)])
    usd, tokens, events = project.tests(
        [file, *AGENT, "--budget-usd", "0.5"],
        [file, *AGENT, "--budget-tokens", "100"],
        [file, "-n", "agent.py:events", "--budget-tokens", "100"],
    )
    assert {ran.code for ran in (usd, tokens, events)} == {3}
    assert (usd.summary["stopped"], len(usd.results)) == ("the budget is used up: $0.75 of $0.5", 3)
    assert (tokens.summary["stopped"], len(tokens.results)) == ("the budget is used up: 200 of 100 tokens", 2)
    assert (events.summary["stopped"], len(events.results)) == ("the budget is used up: 110 of 100 tokens", 1)
    ran = project.atp("test", project.cases("fine", "slow", "later"), *AGENT, "--max-time", "1s")
    assert ran.code == 3
    assert "Stopped:   the run's time is up (1s)" in ran.out
    assert project.trials()[-1]["status"] == "cancelled"
    assert "later" not in [one["case"] for one in project.trials()]


def test_max_errors_counts_what_is_not_the_agents(project: Project, server: Server) -> None:
    agents = [{"name": "x", "type": "http", "config": {"endpoint": server.url("status?code=503"), "retry": 0}}]
    ran = project.test(project.suite(agents, [{"id": f"t{n}"} for n in range(5)]), "--max-errors", "2")
    assert ran.code == 3
    assert ran.summary["stopped"] == "2 errors that are not the agent's"
    assert len(ran.results) == 2
    ran = project.test(project.cases("a", "b", "c"), "-n", "agent.py:fails", "--max-errors", "1")
    assert (ran.code, len(ran.results)) == (1, 3)


# Trying again: --retries


def test_retries_are_for_the_infrastructure_only(project: Project, server: Server) -> None:
    urls = {
        "flaky": "flaky?key=retries",
        "bad": "status?code=500",
        "gone": "status?code=404",
        "busy": "status?code=429",
    }
    agents = [{"name": name, "type": "http", "config": {"endpoint": server.url(url)}} for name, url in urls.items()]
    agents.append({"name": "never", "type": "http", "config": {"endpoint": server.url("status?code=502"), "retry": 0}})
    ran = project.test(project.suite(agents, [{"id": "a"}]), "--parallel", "5")
    results = {event["agent_id"]: event for event in ran.events if event["type"] == "result"}
    assert results["flaky"]["status"] == "passed"
    assert results["flaky"]["attempt"] == 3
    assert results["flaky"]["retries"] == ["HTTP 503: starting up"] * 2
    assert {name: server.calls[url] for name, url in urls.items()} == {"flaky": 3, "bad": 1, "gone": 1, "busy": 3}
    assert server.calls["status?code=502"] == 1
    assert {name: one["blame"] for name, one in results.items()} == {
        "flaky": None,
        "bad": "agent",
        "gone": "agent",
        "busy": "environment",
        "never": "environment",
    }
    project.suite([{"name": "f", "type": "http", "config": {"endpoint": server.url("flaky?key=once")}}], [{"id": "a"}])
    ran = project.test("suite.yaml", "--retries", "1")
    assert (ran.code, ran.results["a"]["attempt"], server.calls["flaky?key=once"]) == (3, 2, 2)


# Which cases: --run, --tags, --only-failed, --dry-run


def test_choosing_cases(project: Project) -> None:
    file = project.cases(
        {"id": "one", "name": "First case", "input": "x", "tags": ["fast", "core"]},
        {"id": "two", "input": "x", "tags": ["slow"]},
        {"id": "three", "input": "x", "tags": ["fast", "flaky"]},
        {"id": "skipped", "input": "x", "tags": ["fast"], "skip": True},
    )

    flags = [["--run", "^t|First"], ["--tags", "fast,!flaky"], ["--tags", "core,slow"], [], ["--run", "("]]
    by_name, without, either, ran, bad, none = project.tests(
        *([file, *AGENT, *one] for one in flags), [file, *AGENT, "--run", "skipped"]
    )
    assert list(by_name.results) == ["one", "two", "three"]
    assert list(without.results) == ["one"]
    assert list(either.results) == ["one", "two"]
    assert ran.summary["skipped"] == 1
    assert [event["id"] for event in ran.events if event["type"] == "skipped"] == ["skipped"]
    assert bad.code == none.code == 2
    assert "not a regular expression" in bad.err


def test_only_failed(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import os
        def run(prompt):
            print(prompt, file=open("asked", "a"))
            if prompt.startswith("bad") and not os.path.exists("mended"):
                raise RuntimeError
            return prompt
        """,
    )
    file = project.cases("good1", "bad1", "good2", "bad2")
    early = project.test(file, *AGENT, "--only-failed")
    assert early.code == 2
    assert "has not been run yet" in early.err
    project.test(file, *AGENT)
    assert list(project.test(file, *AGENT, "--only-failed").results) == ["bad1", "bad2"]
    (project.folder / "mended").touch()
    assert project.test(file, *AGENT, "--only-failed").code == 0
    late = project.test(file, *AGENT, "--only-failed")
    assert late.code == 2
    assert "everything passed in the last run" in late.err


def test_dry_run_shows_the_plan_and_runs_nothing(project: Project) -> None:
    own = [{"name": name, "type": "custom", "config": {"entry": "agent.py:run"}} for name in ("x", "y")]
    tests: list[dict[str, Any]] = [
        {
            "id": "one",
            "runs": 3,
            "constraints": {"budget_usd": 0.5},
            "assertions": [{"type": "contains", "value": "x"}],
        },
        {"id": "two", "agents": ["x"]},
        {"id": "three", "skip": True},
    ]
    ran = project.atp("test", project.suite(own, tests), "--dry-run", "--timeout", "90s")
    assert ran.code == 0
    assert "x × one  variation 1, run 3/3, 1 turn, 1 check, at most 1m30s" in ran.out
    assert "3 cases, 7 trials, 7 calls of agents, 1 at a time" in ran.out
    assert "1 case skipped by its file" in ran.out
    assert "cost: at most $3 by the cases' own limits; 1 trial without a limit" in ran.out
    assert project.lines("asked") == []
    assert project.runs() == []


# What is kept and shown: --keep-…, --strict, --quiet, --verbose, --json, -o, -r


def test_keeping_workspaces(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt, workspace):
            (workspace / "made.txt").write_text(prompt)
            if prompt == "bad":
                raise RuntimeError
        """,
    )
    file = project.cases("good", "bad")

    def kept() -> list[str]:
        return sorted(path.read_text() for path in project.folder.glob(".atp/runs/*/work/*/made.txt"))

    project.test(file, *AGENT, "--keep-failed")
    assert kept() == ["bad"]
    trial = project.trials()[-1]
    assert (Path(trial["workspace"]) / "made.txt").read_text() == "bad"
    project.test(file, *AGENT, "--keep-workspaces")
    assert kept() == ["bad", "bad", "good"]


def test_strict_turns_warnings_into_errors(project: Project) -> None:
    file = project.cases({"id": "a", "input": "x", "messages": [{"role": "user", "content": "y"}]})
    loose, strict = project.tests([file, *AGENT], [file, *AGENT, "--strict"])
    assert (loose.code, strict.code) == (0, 2)
    assert "warning" in loose.err


def test_quiet_and_verbose(project: Project) -> None:
    file = project.cases("hello", "good-bye")
    call = ["test", file, "-n", "agent.py:other"]
    quiet, normal, listed, verbose = together(
        lambda: project.atp(*call, "--quiet"),
        lambda: project.atp(*call),
        lambda: project.atp(*call, "-v"),
        lambda: project.atp(*call, "-vv"),
    )
    assert "Passed:  2" in quiet.out
    assert "hello" not in quiet.out
    assert "hello" not in normal.out, "what passed is counted"
    assert "✓ [hello]" in listed.out
    assert "other hello" not in listed.out
    assert "other hello" in verbose.out


def test_quiet_leaves_out_no_warning(project: Project) -> None:
    file, near = project.cases("a"), {"ATP_PARALEL": "3"}
    normal, quiet = together(
        lambda: project.atp("test", file, *AGENT, env=near),
        lambda: project.atp("test", file, *AGENT, "--quiet", env=near),
    )
    assert "warning[unknown-setting]" in normal.err
    assert quiet.err == normal.err


def test_reports(project: Project) -> None:
    file = project.cases("a", "b")
    project.test(file, *AGENT)
    (default,) = project.folder.glob("output-*.jsonl")
    assert [json.loads(line)["type"] for line in default.read_text().splitlines()] == [
        "start",
        "result",
        "result",
        "summary",
    ]
    ran = project.atp("test", file, *AGENT, "-o", "one.json", "-o", "two.jsonl")
    assert ran.code == 0
    report = json.loads((project.folder / "one.json").read_text())
    assert [one["id"] for one in report["results"]] == ["a", "b"]
    assert len((project.folder / "two.jsonl").read_text().splitlines()) == 4
    assert len(list(project.folder.glob("output-*.jsonl"))) == 1
    wrong = {("-o", "x.docx"): ".docx", ("-o", "no/where.json"): "no/where.json", ("-r", "x"): "-r x"}
    for ran, said in zip(project.tests(*([file, *AGENT, *one] for one in wrong)), wrong.values(), strict=True):
        assert ran.code == 2
        assert said in ran.err
    assert project.lines("asked") == ["a.1", "b.1", "a.1", "b.1"]


def test_a_report_that_cannot_be_written_is_exit_3(project: Project) -> None:
    project.write("agent.py", "import os\ndef run():\n    os.rename('out', 'gone')\n    open('out', 'w').close()")
    (project.folder / "out").mkdir()
    file = project.cases("a")
    ran = project.atp("test", file, *AGENT, "-o", "out/report.json")
    assert ran.code == 3
    assert "report.json" in ran.err
    (project.folder / ".atp").rename(project.folder / "earlier")
    (project.folder / ".atp").touch()
    ran = project.test(file, *AGENT)
    assert ran.code == 2
    assert "can't be written: Not a directory" in ran.err


# The environment: --env-file, .env, hooks, settings


def test_env_files_never_override_the_real_environment(project: Project) -> None:
    project.write(
        "shows.py", "import os, sys\nsys.stdin.read()\nprint(os.environ['A'], os.environ['B'], os.environ['C'])"
    )
    config = {
        "command": [sys.executable, "shows.py"],
        "protocol": "text",
        "environment": {"A": "${FROM_FILE}", "B": "${FROM_BOTH}", "C": "${QUOTED}"},
    }
    file = project.suite([{"name": "cli", "type": "cli", "config": config}], [{"id": "a"}])
    project.write("atp.toml", "")
    text = "# a comment\nFROM_FILE=file\nexport FROM_BOTH=file # said twice\nQUOTED='a # b'\nATP_RUNS=2\n"
    project.write(".env", text)
    project.write("other.env", text.replace("=file", "=other"))
    project.write("bad.env", "FINE=1\nnot a setting\n")
    beside, named, gone, bad = together(
        lambda: project.test(file, env={"FROM_BOTH": "real"}),
        lambda: project.test(file, "--env-file", "other.env", env={"ATP_RUNS": "1"}),
        lambda: project.test(file, "--env-file", "gone.env"),
        lambda: project.test(file, "--env-file", "bad.env"),
    )
    assert beside.results["a"]["output"] == "file real a # b"
    assert len(beside.results["a"]["run_details"]) == 2
    assert named.results["a"]["output"] == "other other a # b"
    assert "run_details" not in named.results["a"]
    assert gone.code == bad.code == 2
    assert "there is no such file" in gone.err
    assert "bad.env:2" in bad.err


HOOKS = """
    import asyncio
    def _note(*what):
        with open("called", "a") as file:
            print(*what, sep=":", file=file)
    def before_all(): _note("before_all")
    async def after_all(context): _note("after_all", bool(context["run"]))
    def before(context): _note("before", context["case_id"])
    async def after(context):
        await asyncio.sleep(0)
        _note("after", context["case_id"], context["status"])
    def fails(): raise OSError("no database")
    def leaves(): raise SystemExit(0)
    def cancels(): raise asyncio.CancelledError
"""


def test_hooks_are_called_in_order(project: Project) -> None:
    project.write("sub/hooks.py", HOOKS)
    project.write("agent.py", "def run(prompt):\n    if prompt == 'bad': raise RuntimeError\n    return prompt")
    both = {"before_hook": "hooks.py:before", "after_hook": "hooks.py:after"}
    project.cases({"id": "a", "input": "x", **both}, {"id": "b", "input": "bad", **both}, name="sub/cases.jsonl")
    flags = ["--before-all", "sub/hooks.py:before_all", "--after-all", "sub/hooks.py:after_all"]
    assert project.test("sub/cases.jsonl", *AGENT, *flags).code == 1
    lines = ["before_all", "before:a", "after:a:passed", "before:b", "after:b:error", "after_all:True"]
    assert project.lines("called") == lines


def test_the_hook_after_a_trial_is_called_when_the_hook_before_it_fails(project: Project) -> None:
    project.write("hooks.py", HOOKS)
    file = project.cases({"id": "a", "input": "x", "before": "hooks.py:fails", "after": "hooks.py:after"})
    assert project.test(file, *AGENT).statuses == {"a": "error"}
    assert project.lines("called") == ["after:a:error"]


def test_a_hook_before_a_trial_is_told_no_status(project: Project) -> None:
    project.write("hooks.py", "def go(about):\n    assert about['status'] is None\n")
    assert project.test(project.cases({"id": "a", "input": "x", "before_hook": "hooks.py:go"}), *AGENT).code == 0


def test_a_failing_hook_is_an_error_of_the_environment(project: Project) -> None:
    project.write("hooks.py", HOOKS)
    wrong = {"type": "equals", "value": "never"}
    file = project.cases(
        {"id": "before", "input": "x", "before_hook": "hooks.py:fails"},
        {"id": "after", "input": "x", "after_hook": "hooks.py:fails"},
        {"id": "leaves", "input": "x", "before_hook": "hooks.py:leaves"},
        {"id": "cancels", "input": "x", "before_hook": "hooks.py:cancels"},
        {"id": "wrong", "input": "x", "assert": wrong, "after_hook": "hooks.py:fails"},
        {"id": "fine", "input": "x"},
    )
    ran = project.test(file, *AGENT)
    broken = ("error", "environment")
    got = {name: (one["status"], one["blame"]) for name, one in ran.results.items()}
    assert got == {
        "before": broken,
        "after": broken,
        "leaves": broken,
        "cancels": broken,
        "wrong": ("failed", None),
        "fine": ("passed", None),
    }
    assert ran.results["before"]["error"] == "hook hooks.py:fails: OSError: no database"
    assert ran.results["wrong"]["warnings"] == ["hook hooks.py:fails: OSError: no database"]
    assert project.lines("asked") == ["after.1", "wrong.1", "fine.1"]
    flags = [["--run", "fine", flag, "hooks.py:fails"] for flag in ("--before-all", "--after-all")]
    before, after = project.tests(*([file, *AGENT, *one] for one in flags))
    told = "hook hooks.py:fails: OSError: no database"
    assert (before.code, before.summary["stopped"]) == (3, told)
    # After the run there is nothing left to go on with.
    assert (after.code, after.summary["exit_code"], after.summary["stopped"]) == (3, 3, None)
    assert told in after.err
    assert "--resume" not in after.err


def test_a_hook_that_is_not_there_is_known_before_anything_runs(project: Project) -> None:
    project.write("hooks.py", HOOKS)
    file = project.cases("a", {"id": "b", "input": "x", "after_hook": "hooks.py:aftr"})
    ran = project.test(file, *AGENT, "--after-all", "gone.py:x")
    assert ran.code == 2
    assert "did you mean `after`?" in ran.err
    assert "gone.py" in ran.err
    assert project.lines("asked") == []


@pytest.mark.parametrize("name", ["atp.toml", "pyproject.toml"])
def test_mistakes_in_the_settings_file(project: Project, name: str) -> None:
    head = "" if name == "atp.toml" else "[project]\nname = 'x'\n[tool.atp]\n"
    line = head.count("\n")
    wrong = {
        "paralel = 3": "did you mean `parallel`?",
        "runs = 'many'": "runs",
        "max-errors = 0": "max_errors",
        "resume = true": "unknown key `resume`",
    }
    project.write(f"wrong/{name}", head + "".join(f"{text}\n" for text in wrong))
    project.write(f"torn/{name}", f"{head}parallel = 2\nfail_fast = = 1\n")
    project.write(f"right/{name}", f"{head}parallel = 2\nfail-fast = true\nname = 'agent.py:other'\n")
    files = [project.cases("a", name=f"{folder}/cases.jsonl") for folder in ("wrong", "torn", "right")]
    mistakes, torn, right = together(
        lambda: project.test(files[0], *AGENT),
        lambda: project.test(files[1], *AGENT),
        lambda: project.atp("test", files[2]),
    )
    assert mistakes.code == torn.code == 2
    for number, said in enumerate(wrong.values(), 1):
        assert f"{name}:{line + number}" in mistakes.err
        assert said in mistakes.err
    assert f"{name}:{line + 2}" in torn.err
    assert "not TOML" in torn.err
    assert right.code == 0
    assert "Parallel: 2" in right.out


def test_mistakes_in_flags_and_the_environment(project: Project) -> None:
    file = project.cases("a")
    wrong = {"--runs": "0", "--timeout": "soon", "--parallel": "-1", "--budget-usd": "nan", "--max-errors": "many"}
    flags, unknown, env = together(
        lambda: project.test(file, *AGENT, *(word for one in wrong.items() for word in one)),
        lambda: project.test(file, *AGENT, "--no-such-flag"),
        lambda: project.test(file, *AGENT, env={"ATP_PARALLEL": "none"}),
    )
    assert flags.code == unknown.code == env.code == 2
    for name in wrong:
        assert f"`{name}`" in flags.err
    assert "--no-such-flag" in unknown.err
    assert "`ATP_PARALLEL`" in env.err
    assert project.lines("asked") == []


def test_runs_per_case_is_told_only_where_all_cases_have_as_many(project: Project) -> None:
    twice = {"id": "b", "input": "b", "runs": 2, "expected": "something else"}
    file = project.cases("a", twice)

    def told(*arguments: str) -> list[int | None]:
        events = project.test(file, *AGENT, *arguments).events
        return [events[0]["runs_per_case"], events[-1]["runs_per_case"]]

    assert told() == [None, None]
    project.atp("report", "last", "-o", "run.json")
    assert json.loads((project.folder / "run.json").read_bytes())["summary"]["runs_per_case"] is None
    assert told("--run", "a") == [1, 1]
    assert told("--runs", "3") == [3, 3]
    assert told("--only-failed") == [2, 2]


def test_why_there_are_more_trials_than_cases(project: Project) -> None:
    runs = project.cases("a", {"id": "b", "input": "b", "runs": 2}, name="runs.jsonl")
    project.write("agents/x.md", "---\ntype: custom\nconfig: {entry: ../agent.py:run}\n---\n")
    expected = '**Expectations:**\n- The output contains "x"\n\n'
    first = f"# First\n**Prompts:**\n- x\n- xx\n{expected}"
    second = f"# Second\n**Prompts:**\n- x\n{expected}"
    project.write("varied.test.md", f"---\ntarget: agents/x.md\n---\n{first}{second}")
    assert "Trials: 3 (up to 2 runs each)\n" in project.atp("test", runs, *AGENT).out
    assert "Trials: 6 (variations × up to 2 runs)\n" in project.atp("test", "varied.test.md", "--runs", "2").out
    assert "Trials: 6 (variations × up to 2 runs)\n" in project.atp("report", "-v").out


def test_the_runs_time_covers_its_hooks(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'\ndef wait(context):\n    import time; time.sleep(30)\n")
    file = project.cases({"id": "a", "input": "x", "assert": HELLO})
    ran = project.test(file, "-n", "agent.py:run", "--before-all", "agent.py:wait", "--max-time", "1s")
    assert ran.code == 3


def test_a_filter_that_matches_nothing_is_exit_2(project: Project) -> None:
    project.write("agent.py", ECHO)
    file = project.cases({"id": "a", "input": "x", "tags": ["slow"]})
    filters = [("--run", "nothing"), ("--tags", "nothing"), ("--tags", "!slow")]
    for ran in project.tests(*([file, "-n", "agent.py:run", *one] for one in filters)):
        assert ran.code == 2
        assert "no case is left to run" in ran.err


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
