"""The objects that a test in Python gets: `t` asserts, `ctx` calls agents, `atp_judge` gives verdicts on answers."""

from pathlib import Path
from typing import Any, NoReturn

from atp.engine.scripts.agent import CalledAgent, read_call_options
from atp.engine.scripts.assertions import Assert
from atp.engine.scripts.runner import ScriptError, ScriptRunner, Skipped, calling_line
from atp.engine.scripts.verdict import (
    AssertionFailed,
    NotJudged,
    compared,
    judge,
    judge_words,
    make_assertion,
    read_assertion,
)
from atp.suite.result import Verdict


class T:
    """The running test: its assertions, its log, and how to fail or skip it."""

    def __init__(self, runner: ScriptRunner, name: str) -> None:
        self._runner = runner
        self.name = name
        """The name of the test."""
        self.assert_ = Assert(runner)
        """The assertions. One that does not hold ends the test."""

    def __repr__(self) -> str:
        return f"<t of {self.name}>"

    @property
    def failed(self) -> bool:
        """True once an assertion has failed."""
        return any(one.outcome == "failed" for one in self._runner.result.verdicts)

    def log(self, *words: Any) -> None:
        """Add a line to the log of the trial."""
        self._runner.result.transcript.logs.append(_text(words))

    def metric(self, name: str, value: float) -> None:
        """Give a named metric of the trial: a number to aggregate, to chart and to gate."""
        self._runner.give_metrics({name: value})

    def error(self, *words: Any) -> None:
        """Fail the test, and go on with it."""
        self._fail("error", _text(words) or "the test failed")

    def fail(self, reason: str = "") -> None:
        """Fail the test, and go on with it."""
        self._fail("fail", reason or "the test failed")

    def fatal(self, reason: str = "") -> NoReturn:
        """Fail the test, and end it here."""
        __tracebackhide__ = True
        raise AssertionFailed(self._fail("fatal", reason or "the test failed"))

    def skip(self, reason: str = "") -> NoReturn:
        """Skip the test, and end it here."""
        self._runner.skipped = reason or "the test asked to be left out"
        raise Skipped(self._runner.skipped)

    def _fail(self, kind: str, reason: str) -> Verdict:
        verdict = compared(kind, False, reason)
        self._runner.record(verdict, calling_line())
        return verdict


class Context:
    """The identity that the test runs with, and the agents it can call."""

    def __init__(self, runner: ScriptRunner) -> None:
        self._runner = runner
        self._called: list[CalledAgent] = []
        about = runner.trial.context
        self.user: str = about["user"]
        """The user that the test runs as."""
        self.team: str = about["team"]
        """The team that the test runs as."""
        self.locale: str = about["locale"]
        """The locale of the test."""
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
        self.run = runner.trial.run
        """The number of this repetition, from 1."""
        self.case_id = runner.trial.case.id
        """The id of the case."""

    def __repr__(self) -> str:
        return f"<ctx of {self.case_id}>"

    @property
    def workspace(self) -> Path:
        """The workspace of this trial, in which the called agents work."""
        return self._runner.workspace.path()

    def agent(
        self,
        name: str | None = None,
        *,
        options: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CalledAgent:
        """Start a conversation with an agent: any that `-n` can name, or without a name the agent under test."""
        called = CalledAgent(self._runner, name, read_call_options(options, metadata))
        self._called.append(called)
        return called

    def end(self) -> None:
        """Release what the called agents keep for their conversations. Runs in the event loop, after the test."""
        for one in self._called:
            one.end()


class Judge:
    """Gives verdicts on a response, or on any value. A coroutine awaits each method."""

    def __init__(self, runner: ScriptRunner) -> None:
        self._runner = runner

    def check(self, response: Any, assertion: dict[str, Any]) -> Verdict:
        """Return the verdict of an assertion in the form that files use: `{"type": "contains", "value": "tea"}`."""
        __tracebackhide__ = True
        made = read_assertion(assertion)
        verdict: Verdict = self._runner.run_in_loop("check", lambda: judge(self._runner, made, response))
        return verdict

    def assess(self, response: Any, *expectations: str) -> list[Verdict]:
        """Return the verdicts on expectations in words. An expectation with an exact meaning is checked exactly."""
        if not expectations:
            raise ScriptError("`assess`: nothing is expected")
        words = list(expectations)
        verdicts: list[Verdict] = self._runner.run_in_loop("assess", lambda: judge_words(self._runner, words, response))
        return verdicts

    def expect(self, response: Any, *expectations: str) -> Any:
        """Fail the test unless all expectations are met."""
        __tracebackhide__ = True
        return Assert(self._runner).expect(response, *expectations)

    def score(self, response: Any, criteria: str, *, judge_by: str | None = None, votes: int = 1) -> float:
        """Return a judge's score from 0 to 1 for a criterion. Raises `NotJudged` if the judge gives none."""
        __tracebackhide__ = True
        named = {} if judge_by is None else {"judge": judge_by}
        made = make_assertion("llm_eval", {"criteria": criteria, "threshold": 0, "votes": votes, **named})

        def read_score(verdict: Verdict) -> float:
            __tracebackhide__ = True
            if verdict.score is None:
                raise NotJudged(verdict)
            return verdict.score

        score: float = self._runner.run_in_loop("score", lambda: judge(self._runner, made, response), read_score)
        return score


def _text(words: tuple[Any, ...]) -> str:
    return " ".join(map(str, words))
