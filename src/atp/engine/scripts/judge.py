"""`atp_judge`: what an agent answered is judged, for tests in Python that decide themselves what to make of it."""

from typing import Any

from atp.engine.scripts.assertions import Assert
from atp.engine.scripts.runner import ScriptError, Stage
from atp.engine.scripts.verdict import NotJudged, given_assertion, judge, judge_words, make_assertion
from atp.suite.result import Verdict


class Judge:
    """Gives verdicts on a response, or on any value. In a coroutine, each of its calls is awaited."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def check(self, response: Any, assertion: dict[str, Any]) -> Verdict:
        """What comes of an assertion as files give it: `{"type": "contains", "value": "tea"}`."""
        __tracebackhide__ = True
        made = given_assertion(assertion)
        verdict: Verdict = self._stage.bring("check", lambda: judge(self._stage, made, response))
        return verdict

    def assess(self, response: Any, *expectations: str) -> list[Verdict]:
        """What comes of expectations in words, each decided exactly if it has an exact meaning."""
        if not expectations:
            raise ScriptError("`assess`: nothing is expected")
        words = list(expectations)
        verdicts: list[Verdict] = self._stage.bring("assess", lambda: judge_words(self._stage, words, response))
        return verdicts

    def expect(self, response: Any, *expectations: str) -> Any:
        """The test fails unless all expectations are met."""
        __tracebackhide__ = True
        return Assert(self._stage).expect(response, *expectations)

    def score(self, response: Any, criteria: str, *, judge_by: str | None = None, votes: int = 1) -> float:
        """A model's score from 0 to 1 by a criterion. Raises `NotJudged` if there is none."""
        __tracebackhide__ = True
        named = {} if judge_by is None else {"judge": judge_by}
        made = make_assertion("llm_eval", {"criteria": criteria, "threshold": 0, "votes": votes, **named})

        def read_score(verdict: Verdict) -> float:
            __tracebackhide__ = True
            if verdict.score is None:
                raise NotJudged(verdict)
            return verdict.score

        score: float = self._stage.bring("score", lambda: judge(self._stage, made, response), read_score)
        return score
