"""What the tests of a pytest session share: an event loop, agents and judges of each project, runs under way."""

import itertools
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from atp.base.project import find_root
from atp.base.secrets import hider
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.background_loop import BackgroundLoop
from atp.engine.piecemeal import Piecemeal
from atp.engine.prepare.agents import NamedAgent
from atp.engine.prepare.identity import Identities
from atp.engine.prepare.plan import Trial
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.setting import Setting
from atp.engine.prepare.settings import environment, resolve_options
from atp.engine.prepare.sources import Input, in_memory
from atp.engine.prepare.survey import Filter
from atp.engine.role_clients import RoleClients
from atp.engine.run import Session
from atp.engine.scripts.file import placeholder_agent
from atp.engine.scripts.runner import ScriptRunner
from atp.engine.scripts.verdict import verdict_text
from atp.engine.trial.workspace import Workspace
from atp.report.console.case_text import conversation_lines
from atp.suite.case import Case
from atp.suite.result import CaseResult, TrialResult
from atp.suite.suite import Suite

Result = TypeVar("Result")
NAME_FLAG = "--atp-name"
"""The flag that names the agent under test: here `-n` is another plugin's."""


class PytestSession:
    """All that outlives a single test."""

    def __init__(self, flags: dict[str, Any]) -> None:
        """`flags` are those of the command line, as the options call them."""
        self.flags = flags
        self._backstage: BackgroundLoop | None = None
        self._settings: dict[Path, tuple[Setting, RoleClients]] = {}
        self._runs: list[Piecemeal] = []
        self._count = itertools.count(1)
        self.marks: set[str] = set()
        """Tags that pytest knows as marks by now."""

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What a coroutine gives."""
        __tracebackhide__ = True
        return self._loop.wait(work)

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the loop."""

        async def called() -> None:
            function()

        self.wait(called())

    @property
    def _loop(self) -> BackgroundLoop:
        if self._backstage is None:
            self._backstage = BackgroundLoop()
        return self._backstage

    def prepare(self, path: Path) -> tuple[Session, Piecemeal]:
        """A test file, loaded and planned, and its run. Raises `LoadError`."""
        session = prepare(Input((), (str(path),)), {**self.flags, "dry_run": True})  # dry until an item is run
        run = Piecemeal(session, "pytest")
        self._runs.append(run)
        return session, run

    def runner(self, name: str, path: Path, folder: Path) -> ScriptRunner:
        """What a test in Python acts on. Raises `LoadError`, `ConfigurationError`."""
        setting, roles = self._setting(find_root(path.parent))
        case = Case(id=name, name=name)
        source = in_memory(Suite(name=path.stem, dialect="script", path=str(path), cases=[case]), lambda _: True)
        named = setting.options.name
        if named:
            tested = roles.called(named[0], source)
        else:
            agent = placeholder_agent()
            tested = AgentUnderTest(
                agent, roles.reach(NamedAgent(agent, source.folder)), source.folder, "", ad_hoc=True
            )
        trial = Trial(
            agent=tested.name,
            ad_hoc=tested.ad_hoc,
            suite=source.suite,
            tested=tested,
            case=case,
            source=source,
            chain=None,
            variation=0,
            run=1,
            runs=1,
            key=name,
            timeout=setting.options.timeout,
            context=Identities(setting.options).of(case),
            connector=setting.options.connector,
            siblings=1,
        )
        number = next(self._count)
        return ScriptRunner(
            trial=trial,
            roles=roles,
            result=TrialResult(key=name, agent=tested.name, case=name),
            workspace=Workspace(folder, str(number)),
            root=setting.root,
            new_session=partial(_session_name, number, itertools.count(1)),
            loop=self._loop.loop,
            limit=setting.options.timeout,
            name_flag=NAME_FLAG,
        )

    def _setting(self, root: Path) -> tuple[Setting, RoleClients]:
        if root not in self._settings:
            env = environment(root, None)
            options = resolve_options(self.flags, root, env)
            setting = Setting(options, Filter(options), root, env)
            self._settings[root] = setting, setting.roles()
        return self._settings[root]

    def close(self) -> None:
        """Leave nothing behind."""
        if self._backstage is None:
            return
        for run in self._runs:
            self.wait(run.close())
        for _, roles in self._settings.values():
            self.wait(roles.close())
        self._backstage.close()


def _session_name(test: int, numbers: "itertools.count[int]") -> str:
    return f"test-{test}-{next(numbers)}"


def left_unsaid(runner: ScriptRunner) -> str | None:
    """What a test has said without raising it, or has forgotten."""
    forgotten = runner.never_awaited()
    return failures(runner) or (str(forgotten) if forgotten is not None else None)


def failures(runner: ScriptRunner) -> str:
    """What did not hold in a test in Python, each with its line."""
    bad = [one for one in runner.result.verdicts if one.outcome == "failed"]
    return "\n".join(f"{verdict_text(one)} ({one.where})" for one in bad)


def conversation(runner: ScriptRunner) -> str:
    """What was said in a test in Python."""
    result = runner.result
    if not result.transcript.messages and not result.transcript.logs:
        return ""
    hide = hider(runner.roles.secrets)
    lines = conversation_lines(CaseResult(agent=result.agent, case=result.case, trials=[result]), result, hide)
    return "\n".join(text for text, _ in lines)
