"""Assertions around others: all_of, any_of, none_of, at_least. What could not be judged may leave the whole unjudged.

Exact parts are checked first. A part that a model or the user's code has to judge is asked only while the whole is
still open, because asking costs time and money.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.checks.verdicts import in_group
from atp.suite.assertion import Group
from atp.suite.record import Count
from atp.suite.result import Outcome, Verdict


class AllOf(Group):
    """All of them hold."""

    type: Literal["all_of"]
    """Always `all_of`."""

    async def check(self, evidence: Evidence) -> Verdict:
        parts = await _parts(self, evidence, len(self.assertions))
        return _verdict(self, parts, len(self.assertions), "all")


class AnyOf(Group):
    """At least one of them holds."""

    type: Literal["any_of"]
    """Always `any_of`."""

    async def check(self, evidence: Evidence) -> Verdict:
        return _verdict(self, await _parts(self, evidence, 1), 1, "at least one")


class AtLeast(Group):
    """At least `k` of them hold."""

    type: Literal["at_least"]
    """Always `at_least`."""
    k: Count
    """How many must hold."""

    @model_validator(mode="after")
    def _reachable(self) -> "AtLeast":
        if self.k > len(self.assertions):
            raise PydanticCustomError(
                "unreachable", "`k` is {k}, but there are only {n} assertions", {"k": self.k, "n": len(self.assertions)}
            )
        return self

    async def check(self, evidence: Evidence) -> Verdict:
        return _verdict(self, await _parts(self, evidence, self.k), self.k, f"at least {self.k}")


class NoneOf(Group):
    """None of them holds."""

    inverts: ClassVar[bool] = True

    type: Literal["none_of"]
    """Always `none_of`."""

    async def check(self, evidence: Evidence) -> Verdict:
        parts = await _parts(self, evidence, 1)
        verdict = _verdict(self, parts, 1, "none")
        verdict.critical = False
        if verdict.outcome != "unjudged":
            verdict.outcome = "passed" if verdict.outcome == "failed" else "failed"
            verdict.message = _summary("none", self, [part for part in parts if part.passed], "hold")
        return verdict


def at_least_outcome(wanted: int, total: int, outcomes: Sequence[Outcome]) -> Outcome | None:
    """The outcome of "at least `wanted` of `total` hold" by the outcomes known so far; None while it is open."""
    holding, failing = outcomes.count("passed"), outcomes.count("failed")
    if holding >= wanted:
        return "passed"
    if failing > total - wanted:
        return "failed"
    return "unjudged" if len(outcomes) == total else None


async def _parts(group: Group, evidence: Evidence, wanted: int) -> list[Verdict]:
    """The verdicts of the parts, in their order. A judge is not asked about a part that no longer matters."""
    total = len(group.assertions)
    found: dict[int, Verdict] = {}
    for place, assertion in sorted(enumerate(group.assertions), key=lambda one: one[1].needs_judge):
        outcomes = [verdict.outcome for verdict in found.values()]
        if assertion.needs_judge and at_least_outcome(wanted, total, outcomes) in ("passed", "failed"):
            continue
        with in_group(group):
            found[place] = await run_check(assertion, evidence)
    return [found[place] for place in sorted(found)]


def _verdict(group: Group, parts: list[Verdict], wanted: int, words: str) -> Verdict:
    outcome = at_least_outcome(wanted, len(group.assertions), [part.outcome for part in parts])
    assert outcome is not None
    failing = [part for part in parts if part.outcome == "failed"]
    open_ones = [part for part in parts if part.outcome == "unjudged"]
    verdict = Verdict(type="", outcome=outcome, parts=parts, judged=any(part.judged for part in parts))
    if outcome == "passed":
        verdict.message = _summary(words, group, [], "hold")
    elif outcome == "failed":
        verdict.message = _summary(words, group, failing, "do not hold")
        verdict.critical = any(part.critical for part in failing)
    else:
        verdict.message = cut(f"{words} of {len(group.assertions)} should hold; unjudged: {open_ones[0].message}")
    return verdict


def _summary(words: str, group: Group, culprits: list[Verdict], what: str) -> str:
    whole = f"{words} of {len(group.assertions)} should hold"
    if not culprits:
        return f"{whole}, and so it is"
    shown = "; ".join(f"{part.type}: {part.message}" for part in culprits[:3])
    return cut(f"{whole}, but {len(culprits)} {what}: {shown}", 600)
