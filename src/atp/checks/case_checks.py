"""Runs all checks of a case: assertions, the expected output, expected artifacts, expectations in words."""

import asyncio
from collections.abc import Iterator, Sequence

from atp.checks.before_run import compiled_expectations
from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.suite.assertion import Assertion
from atp.suite.case import Case
from atp.suite.expectation import read_expectation
from atp.suite.result import Verdict


def assertions_of(case: Case) -> list[Assertion]:
    """The exact checks: `assertions`, else `expected`; and the expected artifacts that no assertion names."""
    found: list[Assertion] = list(case.assertions)
    if not found and "expected" in case.model_fields_set:
        from atp.checks.output import Equals

        found.append(Equals.model_construct(type="equals", value=case.expected))
    if case.task is not None and case.task.expected_artifacts:
        found += _expected_artifacts(case.task.expected_artifacts, case.assertions)
    return found


def _expected_artifacts(paths: Sequence[str], assertions: Sequence[Assertion]) -> Iterator[Assertion]:
    from atp.checks.artifacts import ArtifactExists
    from atp.checks.matching.globs import normal_path

    covered = {normal_path(one.path) for one in assertions if isinstance(one, ArtifactExists) and not one.negate}
    for path in dict.fromkeys(paths):
        if normal_path(path) not in covered:
            yield ArtifactExists.model_construct(type="artifact_exists", path=path)


async def check_case(case: Case, evidence: Evidence) -> list[Verdict]:
    """The verdicts on a case, in the order in which the case has its checks. A case without checks has none.

    Exact checks come first. Judges are asked even if an exact check failed, because a report names everything that is
    wrong.
    """
    assertions = assertions_of(case)
    if not case.expectations:
        return await _checked(assertions, evidence)
    compiled, in_words = compiled_expectations(case)
    found = await _checked([*assertions, *compiled.values()], evidence)
    verdicts, exact = found[: len(assertions)], found[len(assertions) :]
    by_place = dict(zip(compiled, exact, strict=True))
    for place, verdict in by_place.items():
        verdict.type, verdict.name = "expectation", case.expectations[place]
    if in_words:
        from atp.checks.judged import judge_expectations  # the judge's modules, which only some suites need

        for own_turns, places in by_turns(case, in_words).items():
            seen = evidence.of_own_turns() if own_turns else evidence
            judged = await judge_expectations([read_expectation(case.expectations[one]).words for one in places], seen)
            for place, verdict in zip(places, judged, strict=True):
                verdict.name = case.expectations[place]
                by_place[place] = verdict
    return [*verdicts, *(by_place[place] for place in sorted(by_place))]


def by_turns(case: Case, places: Sequence[int]) -> dict[bool, list[int]]:
    """The places of expectations for which a judge is shown the whole conversation (False), or its own turns (True)."""
    found: dict[bool, list[int]] = {}
    for place in places:
        found.setdefault(read_expectation(case.expectations[place]).own_turns, []).append(place)
    return found


async def _checked(assertions: Sequence[Assertion], evidence: Evidence) -> list[Verdict]:
    """The verdicts on assertions, in their order. Exact ones are checked first, those that ask a judge together."""
    if not any(one.needs_judge for one in assertions):
        return [await run_check(assertion, evidence) for assertion in assertions]
    asking = [place for place, one in enumerate(assertions) if one.judged and any(one.deciders())]
    found: dict[int, Verdict] = {}
    for place, assertion in sorted(enumerate(assertions), key=lambda one: one[1].needs_judge):
        if place not in asking:
            found[place] = await run_check(assertion, evidence)
    if asking:
        answers = await asyncio.gather(*(run_check(assertions[place], evidence) for place in asking))
        found.update(zip(asking, answers, strict=True))
    return [found[place] for place in range(len(assertions))]
