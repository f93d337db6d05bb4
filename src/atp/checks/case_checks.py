"""All checks of a case: its assertions, its expected output, the artifacts it expects, its expectations in words."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from atp.base.errors import ConfigurationError
from atp.checks.evidence import Evidence
from atp.checks.globs import normal_path
from atp.checks.groups import needs_judge
from atp.checks.run_check import run_check, unsupported
from atp.suite.assertion import AgentAssertion, ArtifactExists, Assertion, Equals, LlmEval
from atp.suite.case import Case
from atp.suite.result import Verdict
from atp.usercode.code_path import find_script, named_scripts


def assertions_of(case: Case) -> list[Assertion]:
    """What is checked exactly: `assertions`, else `expected`; and the expected artifacts that no assertion is about."""
    found: list[Assertion] = list(case.assertions)
    if not found and "expected" in case.model_fields_set:
        found.append(Equals.model_construct(type="equals", value=case.expected))
    expected = case.task.expected_artifacts if case.task is not None else None
    if expected:
        covered = {
            normal_path(one.path) for one in case.assertions if isinstance(one, ArtifactExists) and not one.negate
        }
        found += [
            ArtifactExists.model_construct(type="artifact_exists", path=path)
            for path in dict.fromkeys(expected)
            if normal_path(path) not in covered
        ]
    return found


def unjudgeable(case: Case, folders: Sequence[Path]) -> Iterator[str]:
    """Why checks of a case can't be judged at all, whoever judges: no such kind of check, no such script."""
    for assertion in case.asserted:
        if reason := unsupported(assertion):
            yield reason
    for script in named_scripts(case.asserted):
        try:
            find_script(script, folders)
        except ConfigurationError as error:
            yield f"{error} ({error.hint})" if error.hint else str(error)


async def check_case(case: Case, evidence: Evidence) -> list[Verdict]:
    """The verdicts on a case, in the order of what it says. None means that it says nothing to be checked.

    Exact checks come first. The judged ones are asked for even if one of those failed: whoever reads the report wants
    to know all that is wrong.
    """
    assertions = assertions_of(case)
    if not case.expectations:
        return await _checked(assertions, evidence)
    compiled = _compiled(case.expectations)
    found = await _checked([*assertions, *compiled.values()], evidence)
    verdicts, exact = found[: len(assertions)], found[len(assertions) :]
    by_place = dict(zip(compiled, exact, strict=True))
    for place, verdict in by_place.items():
        verdict.type, verdict.name = "expectation", case.expectations[place]
    in_words = [place for place in range(len(case.expectations)) if place not in compiled]
    if in_words:
        from atp.checks.judged import judge_expectations  # no model is needed without them

        judged = await judge_expectations([case.expectations[place] for place in in_words], evidence)
        by_place.update(zip(in_words, judged, strict=True))
    return [*verdicts, *(by_place[place] for place in sorted(by_place))]


def _compiled(expectations: Sequence[str]) -> dict[int, Assertion]:
    """The expectations that have an exact meaning, by their place."""
    from atp.checks.expectations.compile import compile_expectation  # a grammar, which only some suites need

    found = ((place, compile_expectation(words)) for place, words in enumerate(expectations))
    return {place: assertion for place, assertion in found if assertion is not None}


async def _checked(assertions: Sequence[Assertion], evidence: Evidence) -> list[Verdict]:
    """The verdicts on assertions, in their order. Exact ones first; those that ask a model are asked together."""
    if not any(map(needs_judge, assertions)):
        return [await run_check(assertion, evidence) for assertion in assertions]
    asking = [place for place, one in enumerate(assertions) if isinstance(one, LlmEval | AgentAssertion)]
    found: dict[int, Verdict] = {}
    for place, assertion in sorted(enumerate(assertions), key=lambda one: needs_judge(one[1])):
        if place not in asking:
            found[place] = await run_check(assertion, evidence)
    if asking:
        answers = await asyncio.gather(*(run_check(assertions[place], evidence) for place in asking))
        found.update(zip(asking, answers, strict=True))
    return [found[place] for place in range(len(assertions))]
