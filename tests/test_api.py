"""ATP from Python: `load`, `run`, `run_sync`, `Report`, `Options`."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.waiting import WAIT_LIMIT, until

from atp.api import Options, Report, load, run, run_sync
from atp.base.diagnostics import LoadError
from atp.suite import Suite

AGENT = """
    import asyncio, os
    def run(prompt):
        if prompt == "raises":
            raise ValueError("no")
        return f"hello {prompt}"
    async def slow(prompt):
        open("at-it", "w").close()
        await asyncio.sleep(600)
"""


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.chdir(project.folder)
    project.write("agent.py", AGENT)
    agents = [{"name": "custom", "type": "custom", "config": {"entry": "agent.py:run"}}]
    tests: list[dict[str, Any]] = [
        {"id": "a", "assertions": [{"type": "contains", "value": "hello"}]},
        {"id": "b", "input": "raises"},
        {"id": "c", "tags": ["slow"]},
    ]
    return load(project.folder / project.suite(agents, tests))


def statuses(report: Report) -> dict[str, str]:
    return {one.case: one.status for one in report.results}


def test_run_sync_gives_a_report(project: Project, suite: Suite) -> None:
    report = run_sync(suite, Options(runs=2, parallel=3))
    assert statuses(report) == {"a": "passed", "b": "error", "c": "passed"}
    assert not report.passed
    assert report.exit_code == 1
    assert (report.counts["total"], report.counts["passed"], report.counts["failed"]) == (3, 2, 1)
    first = next(one for one in report.results if one.case == "a")
    assert [trial.transcript.output for trial in first.trials] == ["hello a", "hello a"]
    assert [trial.run for trial in first.trials] == [1, 2]
    assert Path(report.folder) == project.runs()[0]
    assert report.run == project.runs()[0].name
    assert len(project.trials()) == 6


def test_a_run_is_compared_with_a_baseline(project: Project, suite: Suite) -> None:
    assert run_sync(suite).comparison is None
    assert project.atp("baseline", "save", "main").code == 0
    options = Options(baseline="main", fail_on_regression=True)
    found = run_sync(suite, options).comparison
    assert found is not None
    assert (found.overall.kind, found.b.name) == ("same", "this run")
    with pytest.raises(LoadError, match="there is no baseline `other`"):
        run_sync(suite, Options(baseline="other"))


def test_run_in_a_loop_of_the_callers(suite: Suite, project: Project) -> None:
    async def both() -> list[Report]:
        """Two runs at once, in the same process and project: neither takes the other for a dead one."""
        return list(await asyncio.gather(run(suite, Options(tags="!slow")), run([suite, suite], Options(run="c"))))

    one, other = asyncio.run(both())
    assert statuses(one) == {"a": "passed", "b": "error"}
    assert [result.case for result in other.results] == ["c", "c"]
    assert other.passed
    assert one.run != other.run
    assert project.workspaces() == []
    assert list(project.folder.glob(".atp/runs/*/lock")) == []


def test_an_agent_by_name_and_a_resumed_run(suite: Suite, project: Project) -> None:
    project.write("other.py", "def run(prompt): return f'other hello {prompt}'")
    first = run_sync(suite, Options(fail_fast=True))
    assert statuses(first) == {"a": "passed", "b": "error"}
    second = run_sync(suite, Options(resume=True))
    assert second.run == first.run
    assert statuses(second) == {"a": "passed", "b": "error", "c": "passed"}
    assert len(project.trials()) == 4
    assert statuses(run_sync(suite, Options(only_failed=True))) == {"b": "error"}
    third = run_sync(suite, Options(name=["other.py:run"]))
    assert third.passed
    assert {one.agent for one in third.results} == {"other.py:run"}


def test_what_cannot_run_is_raised(suite: Suite, project: Project) -> None:
    with pytest.raises(LoadError) as caught:
        run_sync(suite, Options(name=["nobody"]))
    assert "nobody" in caught.value.diagnostics[0].message
    with pytest.raises(LoadError):
        run_sync(suite, Options(run="nothing"))
    with pytest.raises(LoadError):
        run_sync(suite, Options(resume=True))
    with pytest.raises(LoadError):
        load(project.write("bad.yaml", "test_suite: x\ntest: []\n"))
    with pytest.raises(ValueError, match="runs"):
        Options(runs=0)
    with pytest.raises(ValueError, match="paralel"):
        Options.model_validate({"paralel": 2})


def test_a_cancelled_run_is_cleaned_up_and_can_be_gone_on_with(suite: Suite, project: Project) -> None:
    slow = Options(name=["agent.py:slow"])

    async def give_up() -> None:
        running = asyncio.ensure_future(run(suite, slow))
        while not (project.folder / "at-it").exists():  # noqa: ASYNC110  (the agent knows nothing of our events)
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()

    asyncio.run(give_up())
    assert project.workspaces() == []
    assert list(project.folder.glob(".atp/runs/*/lock")) == []
    assert [one["status"] for one in project.trials()] == ["cancelled"]
    assert statuses(run_sync(suite, Options(resume=True))) == {"a": "passed", "b": "error", "c": "passed"}


def test_ctrl_c_in_run_sync(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.cases("a", "b")
    project.write(
        "program.py",
        """
        import atp.api as atp
        try:
            atp.run_sync(atp.load("cases.jsonl"), atp.Options(name=["agent.py:slow"]))
        except KeyboardInterrupt:
            print("interrupted, in good order")
        """,
    )
    command = [sys.executable, "program.py"]
    env = clean_environment()
    with subprocess.Popen(command, cwd=project.folder, env=env, stdout=subprocess.PIPE, text=True) as running:
        until((project.folder / "at-it").exists)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=WAIT_LIMIT)
    assert out == "interrupted, in good order\n"
    assert project.journal()[-1]["reason"] == "interrupted"


REPLACED = ["get_running_loop", "current_task", "wait", "Event.set"]
"""Functions of asyncio that ATP's own tasks call while trials run."""


@pytest.mark.parametrize("way", ["run", "run_sync"])
@pytest.mark.parametrize("name", REPLACED)
def test_no_exit_leaves_the_run_by_a_replaced_function_of_asyncio(project: Project, name: str, way: str) -> None:
    """In a loop of the caller's, too: asyncio lets a SystemExit of any task out, which would end with exit code 0."""
    agent = f"""
        import asyncio

        def leave(*_args, **_more):
            raise SystemExit(0)

        def run(prompt):
            asyncio.{name} = leave
            return "wrong"
    """
    project.write("agent.py", agent)
    project.cases(*({"id": one, "input": "hi", "assert": {"type": "equals", "value": "right"}} for one in "ab"))
    program = f"""
        import asyncio, os, sys
        import atp

        def call():
            suite, options = atp.load("cases.jsonl"), atp.Options(name=["agent.py:run"], parallel=2)
            if "{way}" == "run_sync":
                return atp.run_sync(suite, options)
            async def main():
                return await atp.run(suite, options)
            return asyncio.run(main())

        try:
            code = call().exit_code
        except atp.Error as error:
            print(error, file=sys.stderr)
            code = 3
        sys.stderr.flush()
        sys.exit(10 + code)
    """
    project.write("program.py", program)
    command = [sys.executable, "program.py"]
    ran = subprocess.run(
        command,
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_LIMIT,
    )
    assert ran.returncode in (11, 13), ran.stderr
    if ran.returncode == 13:
        assert "the code under test has tried to end the tests: SystemExit: 0" in ran.stderr


def test_the_process_is_as_it_was(suite: Suite) -> None:
    before = dict(os.environ), sys.stdout, sys.stderr, signal.getsignal(signal.SIGINT)
    run_sync(suite)
    assert (dict(os.environ), sys.stdout, sys.stderr, signal.getsignal(signal.SIGINT)) == before


def test_the_package_has_them_too(project: Project) -> None:
    """`atp.load`, `await atp.run`, `atp.run_sync`, `atp.Report`, `atp.Options`: also after `atp.run` was imported."""
    project.write("agent.py", AGENT)
    project.cases("a")
    project.write(
        "program.py",
        """
        import asyncio, json, sys
        import atp
        if len(sys.argv) > 1:
            import atp.engine.prepare.options
        suite = atp.load("cases.jsonl")
        report = asyncio.run(atp.run(suite, atp.Options(name=["agent.py:run"])))
        same = atp.run_sync(suite, atp.Options(name=["agent.py:run"]))
        print(json.dumps([isinstance(report, atp.Report), report.passed, same.passed, type(suite).__name__]))
        """,
    )
    for more in ([], ["first"]):
        done = subprocess.run(
            [sys.executable, "program.py", *more],
            cwd=project.folder,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == [True, True, True, "Suite"]


def test_options_write_reports(project: Project, suite: Suite) -> None:
    report = run_sync(suite, Options(output=["out.json", "out.jsonl"]))
    assert json.loads((project.folder / "out.json").read_text())["summary"]["total"] == report.counts["total"] == 3
    assert len((project.folder / "out.jsonl").read_text().splitlines()) == 5
    with pytest.raises(LoadError, match="unknown-report-format"):
        run_sync(suite, Options(output=["out.nope"]))


def test_a_dry_run_runs_nothing(project: Project, suite: Suite) -> None:
    report = run_sync(suite, Options(dry_run=True, runs=2))
    assert report.results == []
    assert report.counts == {"total": 3, "total_runs": 6}
    assert project.runs() == []
