"""All checks of a case: its assertions, its expected output, the artifacts it expects, its expectations in words."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from atp.agents.adapter import ConfigurationError
from atp.checks.evidence import Evidence
from atp.checks.globs import normal_path
from atp.checks.registry import run_check, unsupported
from atp.checks.scripts import find_script
from atp.checks.verdicts import cut_text, unjudged
from atp.suite.assertion import ArtifactExists, Assertion, Equals, Group, ScriptAssertion
from atp.suite.case import Case
from atp.suite.result import Verdict

NO_ASSESSOR = "expectations in words need a model to judge, and there is none"


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
    """Why checks of a case can't be judged at all, for whoever plans a run: no judge, no such script."""
    checkpoints = [checkpoint.assertion for checkpoint in case.checkpoints]
    for assertion in (*case.assertions, *checkpoints):
        if reason := unsupported(assertion):
            yield reason
        for script in _scripts(assertion):
            try:
                find_script(script, folders)
            except ConfigurationError as error:
                yield f"{error} ({error.hint})" if error.hint else str(error)
    if case.expectations:
        yield NO_ASSESSOR


def _scripts(assertion: Assertion) -> Iterator[str]:
    if isinstance(assertion, ScriptAssertion):
        yield assertion.script
    elif isinstance(assertion, Group):
        for one in assertion.assertions:
            yield from _scripts(one)


async def check_case(case: Case, evidence: Evidence) -> list[Verdict]:
    """The verdicts on a case, in the order of what it says. None means that it says nothing to be checked."""
    verdicts = [await run_check(assertion, evidence) for assertion in assertions_of(case)]
    verdicts += [_expectation(words) for words in case.expectations]
    return verdicts


def _expectation(words: str) -> Verdict:
    verdict = unjudged(NO_ASSESSOR)
    verdict.type, verdict.name, verdict.judged = "expectation", cut_text(words), True
    return verdict
