"""The start record of a run: what is planned, what that depends on, where it runs, and what runs again after a stop."""

import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp import __version__
from atp.base.git import find_checkout
from atp.base.numbers import counted
from atp.engine.prepare.resume import FinishedTrials
from atp.journal.folder import RunFolder, host
from atp.journal.records import FORMAT, AgentInputs, RunInfo
from atp.suite.agent import PromptConfig
from atp.suite.case import Case
from atp.suite.gates import RunGate

if TYPE_CHECKING:
    from atp.engine.agent_under_test import AgentUnderTest
    from atp.engine.prepare.options import Options
    from atp.engine.run import Run

_CI_JOBS = (
    "CI_JOB_URL",  # GitLab
    "CIRCLE_BUILD_URL",
    "BUILDKITE_BUILD_URL",
    "TRAVIS_JOB_WEB_URL",
    "BUILD_URL",  # Jenkins
    "BITBUCKET_BUILD_NUMBER",
    "BUILD_BUILDID",  # Azure Pipelines
    "CODEBUILD_BUILD_ID",
)
"""The variables in which CI services name the job that runs, by its address where they know one."""


def make_info(run: "Run", folder: RunFolder, done: FinishedTrials, *, counted: bool) -> RunInfo:
    """The start record. A run that is not `counted` does not know how many of the plan's cases it will run."""
    options, plan, context = run.options, run.plan, run.context
    cases, trials = plan.counts() if counted else (0, 0)
    settings = options.model_dump(mode="json", exclude_unset=True, exclude={"dry_run", "history"})
    agents, run_counts = plan.agents(), plan.run_counts()
    return RunInfo(
        format=FORMAT,
        id=folder.id,
        at=time.time(),
        version=__version__,
        **_facts(context.root, context.env),
        identity=run.identity,
        input=[*run.given_input.texts, *run.given_input.paths],
        files=list(dict.fromkeys(unit.source.suite.path or "" for unit in plan.units)),
        agents=list(dict.fromkeys(tested.name for tested in agents)),
        agent_inputs={tested.name: tested.inputs for tested in agents},
        models=context.services.used_models,
        options=settings,
        flags=[name for name in settings if options.given(name)],
        cases=cases,
        trials=trials,
        runs=max(run_counts),
        runs_differ=len(run_counts) > 1,
        environment=plan.identities.of(Case(id="-")),
        connector=_connector(agents, options),
        parallel=options.parallel,
        gates=gates_of(run),
        varied=plan.varied,
        continues=run.resumes is not None,
        resumed=sum(done.runs_of(one) if one.min_runs else one.key in done for one in plan.trials()) if done else 0,
        adaptive=plan.adaptive,
        first_started_at=done.times.first_started_at,
        duration_before_resume_ms=done.times.duration_ms,
    )


def gates_of(run: "Run") -> list[RunGate]:
    """The gates of the options, about all cases, and those of suites, each about the cases of its own."""
    found = [RunGate(gate=one.text) for one in run.options.gates]
    for unit in run.plan.units:
        suite = unit.source.suite
        of_suite = [RunGate(gate=one.text, of_suite=True, file=suite.path) for one in suite.gates]
        found += [one for one in of_suite if one not in found]  # a suite with several agents has several units
    return found


def _connector(agents: "list[AgentUnderTest]", options: "Options") -> str | None:
    """The connector that all agents use: a prompt has one of its own, others get the one that the options name."""
    used: set[str | None] = set()
    for tested in agents:
        own = getattr(tested.adapter, "connector", None) if isinstance(tested.agent.config, PromptConfig) else None
        used.add(own or tested.connector or options.one_connector)
    return used.pop() if len(used) == 1 else None


def _facts(root: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Where the run is: the process, the machine, the job of a CI service, the commit."""
    checkout = find_checkout(root)
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "host": host(),
        "pid": os.getpid(),
        "ci_job": _ci_job(env),
        "command": _command(sys.argv),
        "directory": os.path.relpath(os.getcwd(), root),
        "commit": checkout.commit if checkout else None,
        "branch": checkout.branch if checkout else None,
        "dirty": checkout.dirty if checkout else None,
    }


def _command(argv: list[str]) -> list[str]:
    """The command line as people write it: `atp` or `pytest`, also where `python -m` was called."""
    program = Path(argv[0] if argv else "")
    return [program.parent.name if program.name == "__main__.py" else program.name, *argv[1:]]


def _ci_job(env: Mapping[str, str]) -> str | None:
    if "GITHUB_RUN_ID" in env:
        server, repository = env.get("GITHUB_SERVER_URL", ""), env.get("GITHUB_REPOSITORY", "")
        return f"{server}/{repository}/actions/runs/{env['GITHUB_RUN_ID']}"
    return next((env[name] for name in _CI_JOBS if env.get(name)), None)


def why_again(info: RunInfo, done: FinishedTrials) -> list[str]:
    """Say why trials that are done run again: which file, or which part of an agent, has changed since."""
    left = len(done) - info.resumed
    if left <= 0 or done.start is None:
        return []
    notes = [
        f"agent `{name}`: {change}, so that its trials run again"
        for name, inputs in info.agent_inputs.items()
        if (before := done.start.agent_inputs.get(name)) is not None and before.digest != inputs.digest
        for change in _changes(before, inputs)
    ]
    what = "the cases, the files that these name, or the run's settings have changed"
    return notes or [f"{counted(left, 'finished trial')} will run again: {what}"]


def _changes(before: AgentInputs, now: AgentInputs) -> list[str]:
    """What is different in an agent since the run was started."""
    found = []
    for place in sorted({*before.files, *now.files}):
        old, new = before.files.get(place), now.files.get(place)
        if old is None or new is None or old.digest != new.digest:
            key = (new or old or now.files[place]).key
            what = "is new" if old is None else "is gone" if new is None else "has changed"
            named = f", which `{key}` names," if key else ""
            found.append(f"the file {place}{named} {what}")
    if before.config != now.config:
        found.append("its configuration has changed")
    if before.variables != now.variables:
        found.append("the environment variables that its files use have changed")
    if before.model != now.model:
        found.append("its model, or the model's settings, have changed")
    return found or ["one of its files has changed"]
