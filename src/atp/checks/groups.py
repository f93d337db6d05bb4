"""Assertions around others: all_of, any_of, none_of, at_least. What could not be judged may leave the whole unjudged.

Exact parts are checked first. A part that a model or somebody's code has to judge is asked only while the whole is
still open, because asking costs time and money.
"""

from collections.abc import Sequence

from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.polarity import inside
from atp.checks.run_check import check, run_check
from atp.suite.assertion import AllOf, AnyOf, Assertion, AtLeast, Group, NoneOf
from atp.suite.result import Outcome, Verdict


@check("all_of")
async def all_of(group: AllOf, evidence: Evidence) -> Verdict:
    """All of them hold."""
    parts = await _parts(group, evidence, len(group.assertions))
    return _verdict(group, parts, len(group.assertions), "all")


@check("any_of")
async def any_of(group: AnyOf, evidence: Evidence) -> Verdict:
    """At least one of them holds."""
    return _verdict(group, await _parts(group, evidence, 1), 1, "at least one")


@check("at_least")
async def at_least(group: AtLeast, evidence: Evidence) -> Verdict:
    """At least `k` of them hold."""
    return _verdict(group, await _parts(group, evidence, group.k), group.k, f"at least {group.k}")


@check("none_of")
async def none_of(group: NoneOf, evidence: Evidence) -> Verdict:
    """None of them holds."""
    parts = await _parts(group, evidence, 1)
    verdict = _verdict(group, parts, 1, "none")
    verdict.critical = False
    if verdict.outcome != "unjudged":
        verdict.outcome = "passed" if verdict.outcome == "failed" else "failed"
        verdict.message = _said("none", group, [part for part in parts if part.passed], "hold")
    return verdict


def at_least_outcome(wanted: int, total: int, outcomes: Sequence[Outcome]) -> Outcome | None:
    """Whether at least `wanted` of `total` hold, as far as they are known; nothing while it is open."""
    holding, failing = outcomes.count("passed"), outcomes.count("failed")
    if holding >= wanted:
        return "passed"
    if failing > total - wanted:
        return "failed"
    return "unjudged" if len(outcomes) == total else None


async def _parts(group: Group, evidence: Evidence, wanted: int) -> list[Verdict]:
    """The verdicts of the parts, in their order; a judged one that no longer matters has none."""
    total = len(group.assertions)
    found: dict[int, Verdict] = {}
    for place, assertion in sorted(enumerate(group.assertions), key=lambda one: needs_judge(one[1])):
        outcomes = [verdict.outcome for verdict in found.values()]
        if needs_judge(assertion) and at_least_outcome(wanted, total, outcomes) in ("passed", "failed"):
            continue
        with inside(group):
            found[place] = await run_check(assertion, evidence)
    return [found[place] for place in sorted(found)]


def needs_judge(assertion: Assertion) -> bool:
    """Whether a model or somebody's code has to be asked."""
    if isinstance(assertion, Group):
        return any(needs_judge(one) for one in assertion.assertions)
    return assertion.judged


def _verdict(group: Group, parts: list[Verdict], wanted: int, words: str) -> Verdict:
    outcome = at_least_outcome(wanted, len(group.assertions), [part.outcome for part in parts])
    assert outcome is not None
    failing = [part for part in parts if part.outcome == "failed"]
    open_ones = [part for part in parts if part.outcome == "unjudged"]
    verdict = Verdict(type="", outcome=outcome, parts=parts, judged=any(part.judged for part in parts))
    if outcome == "passed":
        verdict.message = _said(words, group, [], "hold")
    elif outcome == "failed":
        verdict.message = _said(words, group, failing, "do not hold")
        verdict.critical = any(part.critical for part in failing)
    else:
        verdict.message = cut(f"{words} of {len(group.assertions)} should hold; unjudged: {open_ones[0].message}")
    return verdict


def _said(words: str, group: Group, culprits: list[Verdict], what: str) -> str:
    whole = f"{words} of {len(group.assertions)} should hold"
    if not culprits:
        return f"{whole}, and so it is"
    shown = "; ".join(f"{part.type}: {part.message}" for part in culprits[:3])
    return cut(f"{whole}, but {len(culprits)} {what}: {shown}", 600)
