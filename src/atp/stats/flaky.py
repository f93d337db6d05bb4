"""Whose fault it is that runs of a case differ: the agent's, the judge's, or the simulated user's.

- The judge is to blame only if it came to another verdict on the same conversation, which `atp recheck --runs` tells.
- The simulator is to blame if the first message in which a passing and a failing run differ is the user's.
- Else the agent is to blame. Where a judge's verdict decided and was never asked for twice, it may be the judge.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Literal

from msgspec import Struct

from atp.stats.self_consistency import judge_changed
from atp.stats.stability import is_judged
from atp.suite.result import CaseResult, TrialResult, Verdict

FlakyBlame = Literal["agent", "judge", "simulator", "agent or judge"]


class Flaky(Struct, kw_only=True):
    """A case whose runs differ, though they say the same to the same agent."""

    blame: FlakyBlame
    """Whose fault that is, as far as the results tell."""


def flakiness(case: CaseResult) -> Flaky | None:
    """Whose fault it is that runs of a case differ; None if they don't.

    Variations of the prompt are compared each by itself: another prompt may well have another result.
    """
    groups: dict[int, list[TrialResult]] = {}
    for trial in case.counted:
        if is_judged(trial):
            groups.setdefault(trial.variation, []).append(trial)
    blames: list[FlakyBlame] = []
    for trials in groups.values():
        passing = [trial for trial in trials if trial.status == "passed"]
        failing = [trial for trial in trials if trial.status != "passed"]
        if passing and failing:
            blames.append(_blame(passing, failing))
    return Flaky(blame=min(blames, key=_SUREST_FIRST.index)) if blames else None


_SUREST_FIRST: tuple[FlakyBlame, ...] = ("judge", "simulator", "agent", "agent or judge")
"""Where variations differ in whom to blame, the first of these counts: a judge that was seen to change its mind."""


def _blame(passing: Sequence[TrialResult], failing: Sequence[TrialResult]) -> FlakyBlame:
    if any(judge_changed(trial) for trial in (*passing, *failing)):
        return "judge"
    if all(_user_differs_first(passing, trial) for trial in failing):
        return "simulator"
    in_doubt = [trial for trial in failing if _failed_by_judge_alone(trial)]
    if not in_doubt:
        return "agent"
    judged_twice = all(judge_changed(trial) is not None for trial in (*passing, *in_doubt))
    return "agent" if judged_twice else "agent or judge"


def _user_differs_first(passing: Sequence[TrialResult], failing: TrialResult) -> bool:
    """Whether a failing run parts from the passing run that it has most in common with in a message of the user's."""
    found = [_first_difference(one.transcript.messages, failing.transcript.messages) for one in passing]
    _, roles = max(found, key=lambda one: one[0])
    return bool(roles) and roles <= {"user"}


def _first_difference(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> tuple[int, set[Any]]:
    """How many messages two conversations have in common, and who says the next; nobody if they are the same."""
    for number, (left, right) in enumerate(zip_longest(one, other)):
        if left != right:
            return number, {message.get("role") for message in (left, right) if message is not None}
    return len(one), set()


def _failed_by_judge_alone(trial: TrialResult) -> bool:
    """Whether a trial would have passed if judges had said otherwise: no exact check failed, and one of theirs did."""
    failed = [verdict for verdict in _leaves(trial.verdicts) if verdict.outcome == "failed"]
    return trial.status == "failed" and bool(failed) and all(map(_is_of_judge, failed))


def _leaves(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """The verdicts, and of groups that did not pass, the verdicts of their parts."""
    for verdict in verdicts:
        if verdict.parts and not verdict.passed:
            yield from _leaves(verdict.parts)
        else:
            yield verdict


def _is_of_judge(verdict: Verdict) -> bool:
    """Whether a model or an agent decided. A function of the user's says the same of the same answer."""
    return verdict.judged and verdict.type != "script"
