"""Statuses, blame and exit codes by the rulings; limits, stability, conversations, workspaces."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.engine.support.project import Project
from tests.engine.support.server import Server
from tests.models.mock_server import MockModels, fails

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""


HELLO = {"type": "contains", "value": "hello"}
ODD = """
    import asyncio, sys, time

    def run(prompt):
        match prompt:
            case "raises": raise ValueError("no")
            case "raises half": raise ValueError("half \\ud800 a pair")
            case "prints half": print("half \\ud800 a pair")
            case "exits": sys.exit(0)
            case "cancels": raise asyncio.CancelledError
            case "recurses": return run(prompt)
            case "object": return object()
            case "surrogate": return "half \\ud800 a pair"
            case "huge": return {"number": 10**300}
            case "nan": return {"number": float("nan")}
            case "deep":
                value = []
                for _ in range(100_000):
                    value = [value]
                return value
            case "loop":
                value = []
                value.append(value)
                return value
            case "bytes": return b"hello"
            case "bad parts": return {"output": "hello", "tool_calls": "none"}
            case "bad event": return (event for event in [{"event_type": "tool_call", "payload": {}}])
            case "nothing": return None
            case "stop": raise StopIteration("early")
            case "generator exits": return (sys.exit(0) for _ in range(2))
        return f"hello {prompt}"
"""


def custom(entry: str = "agent.py:run", name: str = "custom", **config: Any) -> dict[str, Any]:
    return {"name": name, "type": "custom", "config": {"entry": entry, **config}}


def http(url: str, name: str = "http", **config: Any) -> dict[str, Any]:
    return {"name": name, "type": "http", "config": {"endpoint": url, **config}}


def cli(file: str, name: str = "cli", **config: Any) -> dict[str, Any]:
    return {"name": name, "type": "cli", "config": {"command": [sys.executable, file], **config}}


def test_whatever_a_python_agent_does_costs_one_case(project: Project) -> None:
    project.write("agent.py", ODD)
    odd = [line.split('"')[1] for line in ODD.splitlines() if line.strip().startswith("case ")]
    cases = [{"id": prompt, "input": prompt} for prompt in [*odd, "fine"]]
    ran = project.test(project.cases(*cases), "-n", "agent.py:run", "--parallel", "4")
    assert ran.code == 1
    assert sorted(ran.statuses) == sorted([*odd, "fine"])
    bad = {name: one for name, one in ran.results.items() if one["status"] != "passed"}
    assert set(odd) - set(bad) == {"nothing", "huge", "prints half"}
    assert "fine" not in bad
    for name, one in bad.items():
        assert (one["status"], one["blame"]) == ("error", "agent"), name
        assert one["error"].startswith("agent error: "), name
    assert bad["raises"]["error"] == "agent error: ValueError: no"
    assert "RecursionError" in bad["recurses"]["error"]
    assert len(project.trials()) == len(cases)


def test_blame_over_the_wire(project: Project, server: Server) -> None:
    project.write("exits.py", "import sys\nsys.stdin.read()\nprint('gone wrong', file=sys.stderr)\nsys.exit(3)")
    project.write("says.py", "import sys\nsys.stdin.read()\nprint('not JSON')")
    agents = [
        http(server.url("status?code=500"), "500"),
        http(server.url("status?code=404"), "404"),
        http(server.url("status?code=301"), "301"),
        http(server.url("status?code=429"), "429", retry=0),
        http(server.url("status?code=503"), "503", retry=0),
        http("http://127.0.0.1:9/", "refused", retry=0),
        http("http://no-such-host.invalid/", "unknown host", retry=0),
        http(server.url("broken"), "broken"),
        http(server.url("slow"), "own timeout", timeout=0.5),
        cli("exits.py", "exits"),
        cli("says.py", "not the protocol"),
    ]
    ran = project.test(project.suite(agents, [{"id": "a"}]), "--parallel", "11")
    results = {event["agent_id"]: event for event in ran.events if event["type"] == "result"}
    got = {name: (one["status"], one["blame"]) for name, one in results.items()}
    agent, environment = ("error", "agent"), ("error", "environment")
    assert got == {
        **dict.fromkeys(["500", "404", "301", "broken", "exits", "not the protocol"], agent),
        **dict.fromkeys(["429", "503", "refused", "unknown host"], environment),
        "own timeout": ("timeout", None),
    }
    assert results["own timeout"]["error"] == "timeout after 0.5s"
    assert results["exits"]["error"] == "agent error: exit code 3: gone wrong"
    assert (ran.summary["failed"], ran.summary["errors"], ran.code) == (7, 4, 1)
    logs = {one["agent"]: one["transcript"].get("logs", []) for one in project.trials()}
    assert any("not JSON" in line for line in logs["not the protocol"])


def test_exit_codes(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    if prompt == 'raises': raise ValueError\n    return prompt")
    project.write("scripts/s.py", "def unjudged(output): raise ValueError('\\ud800')")
    unjudged = {"type": "script", "script": "scripts.s.unjudged"}
    file = project.cases(
        "passes",
        {"id": "fails", "input": "x", "assert": HELLO},
        "raises",
        {"id": "unjudged", "input": "x", "assert": unjudged},
        {"id": "skipped", "input": "x", "skip": True},
    )
    expected = {"passes|skipped": 0, "passes|raises": 1, "fails|unjudged": 1, "passes|unjudged": 3, "skipped": 2}
    runs = project.tests(*([file, "-n", "agent.py:run", "--run", f"^({one})$"] for one in expected))
    assert {one: ran.code for one, ran in zip(expected, runs, strict=True)} == expected


def test_an_agent_that_blocks_is_reported_at_once_and_holds_nothing_up(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import asyncio, time
        def run(prompt):
            if prompt == "blocks":
                time.sleep(600)
            return prompt
        async def deaf(prompt):
            while prompt == "blocks":
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    pass
            return prompt
        """,
    )
    agents = [custom(), custom("agent.py:deaf", "deaf")]
    tests = [{"id": "blocks", "input": "blocks", "timeout": "300ms"}, {"id": "after", "input": "after"}]
    ran = project.test(project.suite(agents, tests))
    got = [(one["agent_id"], one["id"], one["status"]) for one in ran.events[1:-1]]
    assert got == [
        ("custom", "blocks", "timeout"),
        ("deaf", "blocks", "timeout"),
        ("custom", "after", "passed"),
        ("deaf", "after", "passed"),
    ]


STREAMS = """
    import asyncio, json, pathlib, sys, time
    here = pathlib.Path(__file__).parent

    def count(name, number):
        (here / name).write_text(str(number))

    async def run(context):
        for number in range(1, 501):
            count("custom", number)
            yield {"event_type": "tool_call", "payload": {"tool": "search", "input": {"n": number}}}
            await asyncio.sleep(0.01)

    def steps(context):
        for number in range(1, 501):
            count("generator", number)
            yield {"event_type": "progress", "payload": {"current_step": number * 2}}

    if __name__ == "__main__":
        sys.stdin.read()
        for number in range(1, 501):
            count("cli", number)
            event = {"event_type": "llm_request", "payload": {"input_tokens": 60, "output_tokens": 40}}
            print(json.dumps(event), file=sys.stderr, flush=True)
            time.sleep(0.05)
"""


def test_a_streaming_agent_is_stopped_at_the_event_that_passes_a_limit(project: Project, server: Server) -> None:
    project.write("streams.py", STREAMS)
    agents = [
        custom("streams.py:run"),
        custom("streams.py:steps", "generator"),
        cli("streams.py"),
        http(server.url("endless")),
    ]
    limits = {"max_steps": 5, "max_tokens": 250}
    ran = project.test(project.suite(agents, [{"id": "a", "constraints": limits}]), "--parallel", "4")
    results = {event["agent_id"]: event for event in ran.events if event["type"] == "result"}
    steps = "max_steps exceeded: 6 of 5 steps, 1 too many"
    tokens = "max_tokens exceeded: 300 of 250 tokens, 50 too many"
    assert {name: one["error"] for name, one in results.items()} == {
        "custom": steps,
        "generator": steps,
        "cli": tokens,
        "http": steps,
    }
    assert {one["status"] for one in results.values()} == {"failed"}
    assert {name: len(one["tool_calls"]) for name, one in results.items()} == {
        "custom": 6,
        "generator": 0,
        "cli": 0,
        "http": 6,
    }
    stopped = {name: int((project.folder / name).read_text()) for name in ("custom", "generator", "cli")}
    assert (stopped["custom"], stopped["generator"]) == (6, 3)
    assert stopped["cli"] < 500
    assert server.calls["endless events"] < 500


def test_limits_on_what_is_used_and_on_tools(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt):
            calls = [{"name": name, "arguments": {}} for name in prompt.split()]
            usage = {"total_tokens": 500, "cost_usd": 0.02}
            return {"output": "hello", "tool_calls": calls, "usage": usage}
        """,
    )
    tests: list[dict[str, Any]] = [
        {"id": "tokens", "input": "a", "constraints": {"max_tokens": 499}},
        {"id": "enough", "input": "a", "constraints": {"max_tokens": 500, "max_steps": 1, "budget_usd": 0.02}},
        {"id": "money", "input": "a", "constraints": {"budget_usd": 0.01}},
        {"id": "tool", "input": "read shell", "constraints": {"allowed_tools": ["read", "write"]}},
        {"id": "allowed", "input": "read write", "constraints": {"allowed_tools": ["read", "write"]}},
        {"id": "none", "input": "read", "constraints": {"allowed_tools": []}},
        {"id": "steps", "input": "a b c", "constraints": {"max_steps": 2}, "assertions": [HELLO]},
    ]
    ran = project.test(project.suite([custom()], tests))
    errors = {name: one["error"] for name, one in ran.results.items()}
    assert errors == {
        "tokens": "max_tokens exceeded: 500 of 499 tokens, 1 too many",
        "enough": None,
        "money": "budget_usd exceeded: $0.02 of $0.01, $0.01 too much",
        "tool": "tool `shell` is not allowed (allowed_tools: read, write)",
        "allowed": None,
        "none": "tool `read` is not allowed (allowed_tools: none)",
        "steps": "max_steps exceeded: 3 of 2 steps, 1 too many",
    }
    assert {one["status"] for one in ran.results.values() if one["error"]} == {"failed"}


def test_a_trial_that_timed_out_counts_in_the_score(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import asyncio

        async def run(context):
            if context["run"] > 1:
                await asyncio.sleep(3600)
            return "hello"
        """,
    )
    case = {"id": "a", "runs": 4, "pass_rate": 0.25, "constraints": {"timeout_seconds": 1}, "assertions": [HELLO]}
    ran = project.test(project.suite([custom()], [{**case, "min_score": 80}, {**case, "id": "b", "min_score": 20}]))
    assert [(ran.results[one]["status"], ran.results[one]["score"]) for one in "ab"] == [
        ("failed", 25.0),
        ("passed", 25.0),
    ]


def test_all_checks_are_made_when_a_limit_was_passed(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt, workspace, context):
            steps = 9 if prompt == "once" or context["run"] > 1 else 1
            return {"output": "hello", "usage": {"total_steps": steps, "cost_usd": 2.0}}
        """,
    )
    no_errors = {"type": "behavior", "check": "no_errors"}
    tests: list[dict[str, Any]] = [
        {
            "id": "once",
            "task": {"description": "once", "expected_artifacts": ["report.txt"]},
            "constraints": {"max_steps": 2, "budget_usd": 1.0},
            "assertions": [HELLO, {"type": "contains", "value": "goodbye"}],
        },
        {
            "id": "often",
            "task": {"description": "often"},
            "constraints": {"max_steps": 2},
            "assertions": [HELLO, no_errors],
            "runs": 4,
            "pass_rate": 0.25,
            "min_score": 80,
        },
    ]
    ran = project.test(project.suite([custom()], tests))
    once, often = ran.results["once"], ran.results["often"]
    assert (once["status"], once["error"]) == ("failed", "max_steps exceeded: 9 of 2 steps, 7 too many")
    assert [(one["type"], one["passed"]) for one in once["assertions"]] == [
        ("contains", True),
        ("contains", False),
        ("artifact_exists", False),
        ("limits", False),
        ("limits", False),
    ]
    assert once["score"] is not None
    # The run within the limit: 0.4 quality + 0.3 completeness + half of 0.2 efficiency, over 0.9. The three others have
    # quality 1, completeness 2 of 3 (the limit is a check that failed) and no efficiency.
    expected = [100 * 0.8 / 0.9, *[100 * (0.4 + 0.3 * 2 / 3) / 0.9] * 3]
    assert often["score"] == pytest.approx(sum(expected) / 4, abs=0.1)
    assert often["status"] == "failed"
    assert "below min_score 80" in often["error"]


def test_an_agent_that_told_of_nothing_gets_no_marks_for_its_behaviour(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt):
            return "hello" if prompt == "quiet" else {"output": "hello", "usage": {"total_steps": 0}}
        """,
    )
    checks = [{"type": "behavior", "check": check} for check in ("no_errors", "efficient_tool_use")]
    tests: list[dict[str, Any]] = [
        {"id": name, "input": name, "constraints": {"allowed_tools": ["a"]}, "assertions": [HELLO, *checks]}
        for name in ("quiet", "tells")
    ]
    ran = project.test(project.suite([custom()], tests))
    quiet, tells = ran.results["quiet"], ran.results["tells"]
    assert (quiet["status"], tells["status"]) == ("passed", "passed")
    assert quiet["dimensions"] == {"completeness": 1.0}  # by the answer alone
    assert tells["dimensions"] == {"quality": 1.0, "completeness": 1.0}
    (warning,) = quiet["warnings"]
    assert warning.startswith("unobserved: the agent reported no tool calls, events or steps")
    for name in ("allowed_tools", "no_errors", "efficient_tool_use"):
        assert name in warning
    assert not tells.get("warnings")
    only = [{**test, "assertions": checks, "min_score": 1} for test in tests]
    ran = project.test(project.suite([custom()], only))
    quiet, tells = ran.results["quiet"], ran.results["tells"]
    assert (quiet["status"], quiet.get("score"), quiet.get("dimensions", {})) == ("failed", None, {})
    assert "there is nothing to score" in quiet["error"]
    assert (tells["status"], tells["score"]) == ("passed", 100.0)


def test_what_can_never_be_seen_is_refused_what_was_not_seen_is_told(project: Project) -> None:
    project.write("text.py", "import sys\nsys.stdin.read()\nprint('hello')")
    text = cli("text.py", protocol="text")
    impossible: list[dict[str, Any]] = [
        {"constraints": {"allowed_tools": ["read"]}},
        {"constraints": {"max_steps": 3}},
        {"constraints": {"max_tokens": 3}},
        {"constraints": {"budget_usd": 1}},
        {"assertions": [{"type": "not_tool_called", "name": "x"}]},
        {"assertions": [{"type": "behavior", "check": "no_errors"}]},
        {"assertions": [{"type": "tool_called", "name": "x", "negate": True}]},
    ]
    file = project.suite([text], [{"id": f"t{number}", **one} for number, one in enumerate(impossible)])
    ran = project.test(file)
    assert ran.code == 2
    assert ran.err.count("can never report") == len(impossible)
    assert project.runs() == []
    project.write("agent.py", "def run(): return 'hello'")
    ran = project.test(project.suite([custom()], [{"id": "a", "constraints": {"max_steps": 3, "budget_usd": 1}}]))
    assert ran.code == 0
    assert ran.results["a"]["warnings"] == [
        "unobserved: max_steps is set, but the agent reported no steps or tool calls",
        "unobserved: budget_usd is set, but the agent reported no cost",
    ]


def test_runs_with_mixed_outcomes(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt, context):
            good = {"mixed": 2, "rate": 2, "short": 1, "stable": 3, "errors": 2}[prompt]
            if context["run"] <= good:
                return "hello"
            if prompt == "errors":
                raise RuntimeError("no")
            return "good-bye"
        """,
    )
    checks: dict[str, Any] = {"assertions": [HELLO]}
    tests = [
        {"id": "mixed", "input": "mixed", **checks},
        {"id": "rate", "input": "rate", **checks, "pass_rate": 0.6},
        {"id": "short", "input": "short", **checks, "pass_rate": 0.6},
        {"id": "stable", "input": "stable", **checks},
        {"id": "errors", "input": "errors", **checks},
        {"id": "score", "input": "stable", **checks, "min_score": 50},
    ]
    file = project.suite([custom()], tests)
    ran = project.atp("test", file, "--runs", "3", "-o", "report.json")
    assert ran.code == 1
    report = json.loads((project.folder / "report.json").read_text())
    results = {one["id"]: one for one in report["results"]}
    assert {name: one["status"] for name, one in results.items()} == {
        "mixed": "failed",
        "rate": "passed",
        "short": "failed",
        "stable": "passed",
        "errors": "error",
        "score": "passed",
    }
    one = results["mixed"]
    assert {key: one[key] for key in ("runs", "passed", "failed", "pass_rate", "consistency", "stable")} == {
        "runs": 3,
        "passed": 2,
        "failed": 1,
        "pass_rate": 66.7,
        "consistency": 0.67,
        "stable": False,
    }
    assert one["classification"] == "unstable"
    assert one["min_duration_ms"] <= one["avg_duration_ms"] <= one["max_duration_ms"]
    assert [(run["run"], run["status"], run["output"]) for run in one["run_details"]] == [
        (1, "passed", "hello"),
        (2, "passed", "hello"),
        (3, "failed", "good-bye"),
    ]
    assert results["short"]["classification"] == "highly_unstable"
    assert results["stable"]["classification"] == "stable"
    summary = report["summary"]
    assert (summary["total_cases"], summary["total_runs"], summary["runs_per_case"]) == (6, 18, 3)
    assert (summary["stable_cases"], summary["unstable_cases"], summary["overall_pass_rate"]) == (2, 4, 72.2)
    assert "Runs: 2/3 passed (66.7%), unstable, consistency 0.67" in ran.out


def test_min_score(project: Project) -> None:
    project.write("agent.py", "def run(): return {'output': 'hello', 'usage': {'total_steps': 9}}")
    limits = {"max_steps": 10}
    tests = [
        {"id": "high", "constraints": limits, "assertions": [HELLO], "min_score": 90},
        {"id": "low", "constraints": limits, "assertions": [HELLO], "min_score": 60},
    ]
    ran = project.test(project.suite([custom()], tests))
    assert ran.statuses == {"high": "failed", "low": "passed"}
    # completeness 1 of 0.3, efficiency 0.1 of 0.2; quality and cost have no data and are left out
    assert ran.results["low"]["score"] == 64.0
    without = {"quality": "no judged or behavioural checks", "cost": "no budget_usd or max_tokens"}
    assert ran.results["low"]["left_out"] == without
    assert (ran.results["high"]["pass_rate"], ran.results["low"]["pass_rate"]) == (0.0, 100.0)
    shown = project.atp("test", "suite.yaml", "-vv", "-o", "report.md").out
    assert "left out of the score: quality (no judged" in shown
    assert "- Score: 64 (left out: quality, `no judged" in (project.folder / "report.md").read_text()
    assert "64" in ran.results["high"]["error"]


CHAIN = """
    ---
    target: agents/any.md
    assessor: agents/any.md
    ---
    # Talks

    ## Remembers

    **Prompts:**
    - **Chain:**
      - My name is Ann
      - What is my name?
      - Thank you

    **Expectations:**
    - no errors
"""


def test_conversations_over_every_kind_of_agent(project: Project, server: Server) -> None:
    project.write("talk.test.md", CHAIN)
    project.write(
        "agent.py",
        """
        import json, sys
        def run(messages, prompt, context):
            seen = (context["state"] or []) + [prompt]
            return {"output": f"turn {context['turn']}: {len(messages)} messages, {len(seen)} seen", "state": seen}
        if __name__ == "__main__":
            request = json.load(sys.stdin)
            said = request["task"]["input_data"]["messages"]
            answer = f"turn {request['metadata']['turn']}: {len(said)} messages"
            print(json.dumps({"task_id": request["task_id"], "status": "completed", "output": answer}))
        """,
    )
    command = json.dumps([sys.executable, str(project.folder / "agent.py")])
    project.write("atp.toml", f"[agents.command]\ntype = 'cli'\nconfig.command = {command}\n")
    ran = project.test(
        "talk.test.md", "-n", "agent.py:run", "-n", "command", "-n", server.url("remembers"), "--parallel", "3"
    )
    results = {event["agent_id"]: event for event in ran.events if event["type"] == "result"}
    answers = {name: [turn["output"] for turn in one["turns"]] for name, one in results.items()}
    assert answers["agent.py:run"] == [
        "turn 1: 1 messages, 1 seen",
        "turn 2: 3 messages, 2 seen",
        "turn 3: 5 messages, 3 seen",
    ]
    assert answers["command"] == ["turn 1: 1 messages", "turn 2: 3 messages", "turn 3: 5 messages"]
    first, second, third = answers[server.url("remembers")]
    assert second.endswith(f"My name is Ann / {first} / What is my name?")
    session = first.split()[3]
    assert third.split()[3] == second.split()[3] == session


def test_message_histories(project: Project, server: Server) -> None:
    project.write("agent.py", "def run(messages, prompt): return {'said': messages, 'newest': prompt}")
    history = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "Bye"}]},
    ]
    file = project.cases({"id": "a", "messages": history})
    ran = project.test(file, "-n", "agent.py:run", "-n", server.url("whole"))
    results = {event["agent_id"]: event for event in ran.events if event["type"] == "result"}
    assert results["agent.py:run"]["output"] == {"said": history, "newest": "Bye"}
    request = results[server.url("whole")]["output"]
    assert request["task"]["description"] == "Bye"
    assert request["task"]["input_data"]["messages"] == history
    assert {one["messages_count"] for one in results.values()} == {3}


WORKS = """
    import pathlib
    def run(prompt, workspace):
        there = sorted(str(one.relative_to(workspace)) for one in workspace.rglob("*") if one.is_file())
        (workspace / "made.txt").write_text(prompt)
        if prompt == "edits":
            (workspace / "fixtures" / "data.csv").write_text("edited")
            (workspace / "seed.txt").write_text("edited")
        if prompt == "locks":
            (workspace / "locked").mkdir()
            (workspace / "locked" / "x").write_text("x")
            (workspace / "locked").chmod(0)
        return {"there": there, "where": str(workspace)}
"""


def test_workspaces_are_seeded_and_never_shared(project: Project) -> None:
    project.write("agent.py", WORKS)
    project.write("fixtures/data.csv", "data")
    project.write("seeds/seed.txt", "seed")
    seeded: dict[str, Any] = {"workspace": "seeds"}
    exists = {"type": "artifact_exists"}
    file = project.suite(
        [custom()],
        [
            {"id": "made", "input": "made", "assertions": [{**exists, "path": "made.txt", "contains": "made"}]},
            {"id": "untouched", "input": "x", **seeded, "assertions": [{**exists, "path": "seed.txt"}]},
            {"id": "fixture", "input": "x", "assertions": [{**exists, "path": "fixtures/data.csv"}]},
            {"id": "edits", "input": "edits", **seeded, "assertions": [{**exists, "path": "*seed.txt"}]},
            {"id": "expected", "task": {"description": "x", "expected_artifacts": ["made.txt", "gone.txt"]}},
            {"id": "locks", "input": "locks"},
        ],
    )
    ran = project.test(file, "--runs", "2", "--parallel", "6")
    assert ran.statuses == {
        "made": "passed",
        "untouched": "failed",
        "fixture": "failed",
        "edits": "passed",
        "expected": "failed",
        "locks": "passed",
    }
    assert "gone.txt" in ran.results["expected"]["error"]
    for name, one in ran.results.items():
        expected = ["fixtures/data.csv", *(["seed.txt"] if name in ("untouched", "edits") else [])]
        assert all(run["output"]["there"] == expected for run in one["run_details"]), name
    places = [run["output"]["where"] for one in ran.results.values() for run in one["run_details"]]
    assert len(set(places)) == 12
    assert (project.folder / "fixtures/data.csv").read_text() == "data"
    assert (project.folder / "seeds/seed.txt").read_text() == "seed"
    assert project.workspaces() == []


def test_a_workspace_that_cannot_be_made_is_not_the_agents_fault(project: Project) -> None:
    project.write("agent.py", WORKS)
    file = project.cases({"id": "a", "input": "x", "workspace": "gone"})
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.code == 2
    assert "case `a`: there is no folder gone to start with" in ran.err
    (project.folder / "gone").mkdir()
    os.mkfifo(project.folder / "gone" / "pipe")  # no file, and can't be copied
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.code == 2
    assert "gone/pipe is neither a file nor a folder" in ran.err
    assert project.workspaces() == []


def test_python_agents_of_every_kind(project: Project) -> None:
    project.write(
        "agent.py",
        """
        async def _answer(prompt): return f"hello {prompt}"
        def sync(prompt): return f"hello {prompt}"
        async def asynchronous(prompt): return await _answer(prompt)
        async def streaming(prompt):
            yield {"event_type": "message", "payload": {"role": "assistant", "content": "thinking"}}
            yield "hello "
            yield await _answer(prompt)
        def generator(prompt):
            yield "hello "
            yield prompt
        class Callable:
            def __call__(self, prompt): return f"hello {prompt}"
        instance = Callable()
        """,
    )
    entries = ["sync", "asynchronous", "streaming", "generator", "Callable", "instance"]
    agents = [custom(f"agent.py:{entry}", entry) for entry in entries]
    ran = project.test(project.suite(agents, [{"id": "a", "assertions": [HELLO]}]))
    assert [(one["agent_id"], one["status"]) for one in ran.events[1:-1]] == [(entry, "passed") for entry in entries]


def test_an_agent_that_blocks_the_loop_is_still_timed(project: Project) -> None:
    project.write("agent.py", "import time\nasync def run(prompt):\n    time.sleep(2)\n    return 'hello'\n")
    ran = project.test(
        project.cases({"id": "slow", "input": "x", "timeout": "500ms", "assert": HELLO}), "-n", "agent.py:run"
    )
    assert ran.statuses == {"slow": "timeout"}
    assert ran.code == 1


def test_time_spent_waiting_is_not_the_agents(project: Project, busy: str) -> None:
    file = project.cases({"id": "busy", "input": "x", "timeout": "1s", "assert": HELLO})
    ran = project.test(file, "-n", busy)
    (result,) = ran.results.values()
    assert (result["status"], result["blame"]) == ("error", "environment")
    assert ran.code == 3


class Own(BaseHTTPRequestHandler):
    """A server with JSON of its own."""

    def do_POST(self) -> None:
        body = b'{"reply": "hello"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Busy(Own):
    """A server that has no time for half a minute."""

    seconds = 30
    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        self.send_response(429)
        self.send_header("Retry-After", str(self.seconds))
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def own_json() -> Iterator[str]:
    with serving(Own) as url:
        yield url


@pytest.fixture
def busy() -> Iterator[str]:
    with serving(Busy) as url:
        yield url


def test_a_server_that_asks_for_a_longer_wait_than_a_trial_may_take_is_not_asked_again(project: Project) -> None:
    class Away(Busy):
        seconds = 3600
        asked = 0

    with serving(Away) as url:
        ran = project.test(project.cases("a"), "-n", url)
    (result,) = ran.results.values()
    assert (result["status"], result["blame"], Away.asked) == ("error", "environment", 1)
    assert result["warnings"][0].startswith("not tried again: the server asks to wait 1h")


def test_a_rate_limit_of_a_model_is_waited_for_in_one_place(project: Project) -> None:
    project.write("agents/desk.md", "---\nconnector: openai.any\n---\n\nBe kind.\n")
    with MockModels(fails(429, "slow down", retry_after=0)) as models:
        ran = project.test(project.cases("a"), "-n", "desk", "--retries", "2", env=models.env)
    (result,) = ran.results.values()
    assert (result["status"], result["blame"], result.get("retries", [])) == ("error", "environment", [])
    assert "HTTP 429: slow down (tried 5 times)" in result["error"]
    assert len(models.requests) == 5


def test_a_server_with_json_of_its_own(project: Project, own_json: str) -> None:
    ran = project.test(project.cases("a"), "-n", own_json)
    (result,) = ran.results.values()
    assert "write an agent with `protocol: json`" in result["error"]


def test_a_server_that_is_not_there(project: Project) -> None:
    ran = project.test(project.cases("a"), "-n", "http://127.0.0.1:9/", "--retries", "0")
    (result,) = ran.results.values()
    assert result["error"] == "the agent can't be reached: 127.0.0.1:9 refused the connection"


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
