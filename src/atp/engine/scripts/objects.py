"""What a test in Python is called with: `t`, to say what must hold, and `ctx`, to call agents."""

from pathlib import Path
from typing import Any, NoReturn

from atp.engine.scripts.agent import CalledAgent, check_about
from atp.engine.scripts.assertions import Assert
from atp.engine.scripts.runner import Skipped, Stage, caller
from atp.engine.scripts.verdict import AssertionFailed, compared
from atp.suite.result import Verdict


class T:
    """The test itself."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self.name = name
        """What the test is called."""
        self.assert_ = Assert(stage)
        """What must hold."""

    def __repr__(self) -> str:
        return f"<t of {self.name}>"

    @property
    def failed(self) -> bool:
        """Whether something did not hold."""
        return any(one.outcome == "failed" for one in self._stage.result.verdicts)

    def log(self, *words: Any) -> None:
        """Write a line to the test's log."""
        self._stage.result.transcript.logs.append(_text(words))

    def error(self, *words: Any) -> None:
        """The test has failed, but goes on."""
        self._fail("error", _text(words) or "the test failed")

    def fail(self, reason: str = "") -> None:
        """The test has failed, but goes on."""
        self._fail("fail", reason or "the test failed")

    def fatal(self, reason: str = "") -> NoReturn:
        """The test has failed, and ends here."""
        __tracebackhide__ = True
        raise AssertionFailed(self._fail("fatal", reason or "the test failed"))

    def skip(self, reason: str = "") -> NoReturn:
        """The test is left out, and ends here."""
        self._stage.skipped = reason or "the test asked to be left out"
        raise Skipped(self._stage.skipped)

    def _fail(self, kind: str, reason: str) -> Verdict:
        verdict = compared(kind, False, reason)
        self._stage.record(verdict, caller())
        return verdict


class Context:
    """Who the test runs as, and the agents it can call."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._called: list[CalledAgent] = []
        about = stage.trial.context
        self.user: str = about["user"]
        """The user that it runs as."""
        self.team: str = about["team"]
        """The team that it runs as."""
        self.locale: str = about["locale"]
        """The locale that it runs in."""
        self.client_type: str = about["client_type"]
        """The kind of client."""
        self.client_ip: str = about["client_ip"]
        """The client's address."""
        self.referer: str = about["referer"]
        """Where requests come from."""
        self.accept: str = about["accept"]
        """The format of answers."""
        self.metadata: dict[str, Any] = dict(about["metadata"])
        """Free data of the test environment."""
        self.run = stage.trial.run
        """Which repeat it is, from 1."""
        self.case_id = stage.trial.case.id
        """The id of the case."""

    def __repr__(self) -> str:
        return f"<ctx of {self.case_id}>"

    @property
    def workspace(self) -> Path:
        """The folder that agents work in, the test's own."""
        return self._stage.workspace.path()

    def agent(
        self,
        name: str | None = None,
        *,
        options: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CalledAgent:
        """Begin a conversation with an agent: any that `-n` could name, or without a name the one under test."""
        called = CalledAgent(self._stage, name, check_about(options, metadata))
        self._called.append(called)
        return called

    def end(self) -> None:
        """The test is over: its agents let go of what they kept for it. Called in the loop."""
        for one in self._called:
            one.end()


def _text(words: tuple[Any, ...]) -> str:
    return " ".join(map(str, words))
