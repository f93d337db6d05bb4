"""Checks that a model or an agent of the user decides: `llm_eval`, `agent`, and expectations in words."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from atp.base.errors import ConfigurationError
from atp.base.json.text import readable
from atp.base.text import cut
from atp.checks.agent_files import NotShown
from atp.checks.artifacts import Versions, files_at, files_of
from atp.checks.before_run import IN_WORDS, compiled_expectations
from atp.checks.evidence import Evidence, NotKept
from atp.checks.run_check import last_line, name_of
from atp.checks.verdicts import failed, favourable_outcome, passed, unjudged
from atp.roles.judge.judges import HOW_TO_SET, Assessment, Judgement, Judges
from atp.roles.judge.prompt import Wanted
from atp.roles.judge.prompt import rubric as rubric_text
from atp.roles.judge.rubric import Rubric, make_rubric
from atp.roles.judge.validator import Validation
from atp.roles.record import Given, Record, make_record
from atp.stats.judges import VOTE
from atp.suite.assertion import Assertion, Decider, each_assertion
from atp.suite.case import Case
from atp.suite.expectation import read_expectation
from atp.suite.options import Options
from atp.suite.record import Count, Fraction, Json, Text
from atp.suite.reference import PrefixedAgent
from atp.suite.result import Outcome, Verdict
from atp.usercode.threads import in_thread

if TYPE_CHECKING:
    from atp.roles.judge.assessor import Assessor

LONGEST_REASON = 600
MOST_FILES = 100
"""Files that a judge is asked about in one question."""


class _NoJudge(Exception):
    """Why there is no judge."""


class LlmEval(Assertion):
    """A model scores the output from 0 to 1."""

    judged: ClassVar[bool] = True

    type: Literal["llm_eval"]
    """Always `llm_eval`."""
    criteria: Text
    """`factual_accuracy`, `completeness`, `coherence`, `relevance`, or free text."""
    threshold: Fraction = 0.7
    """The least score that passes."""
    judge: Text | None = None
    """The agent or connector that judges."""
    votes: Count = 1
    """How many times to ask; the majority decides."""
    path: Text | None = None
    """Judge this artifact instead of the output."""

    def deciders(self) -> Iterator[Decider]:
        yield Decider("assessor", self.judge, "`llm_eval`")

    @property
    def rubric(self) -> Rubric:
        """What the judge is asked of every answer."""
        about = ("score", self.threshold, self.path)
        return make_rubric(
            rubric_text(self.criteria), *about, votes=self.votes, negated=self.negate, name=name_of(self)
        )

    async def check(self, evidence: Evidence) -> Verdict:
        evidence = evidence.for_judges()
        try:
            judges, assessor = _assessor(evidence, self.judge, "`llm_eval` needs")
        except _NoJudge as error:
            return unjudged(str(error))
        is_negated = favourable_outcome(self) == "failed"
        about: dict[str, str] | None = None
        if self.path is not None:
            try:
                about = await in_thread(_artifacts, self.path, evidence)
            except NotShown as error:
                return unjudged(str(error), where=f"artifact {self.path}")
            if not about:
                missing = f"there is no `{self.path}` to be judged"
                # Turned round, that something isn't there would pass for its quality.
                return unjudged(missing) if is_negated else failed(missing, where=f"artifact {self.path}")
        record = await _record(evidence, about)
        found = await assessor.score(
            record,
            self.criteria,
            threshold=self.threshold,
            intent=evidence.case.intent or "",
            run=judges.run,
            votes=self.votes,
            negated=is_negated,
        )
        _count(found, judges, assessor, evidence)
        (judgement,) = found.judgements
        where = evidence.answer.where if self.path is None else f"artifact {self.path}"
        verdict = _scored(judgement, self.threshold, where)
        verdict.judge = assessor.judged_by(self.rubric, "score")
        return verdict


class AgentAssertion(Assertion):
    """An agent of the user's decides."""

    judged: ClassVar[bool] = True

    type: Literal["agent"]
    """Always `agent`."""
    use: PrefixedAgent
    """The validator agent, as `agents:` and its id."""
    options: Options | None = None
    """Handed to the validator; `metadata.criteria` says what to look for."""
    value: Json = None
    """The expected value; left out: the case's `expected`. Without `metadata.criteria`, also what to look for."""

    @property
    def rubric(self) -> Rubric:
        """What the validator is asked of every answer."""
        options = self.options.model_dump(exclude_defaults=True) if self.options is not None else {}
        criteria = options.get("metadata", {}).get("criteria", self.value)
        text = criteria if isinstance(criteria, str) else readable(criteria) if criteria is not None else self.use
        return make_rubric(text, "agent", options, self.value, negated=self.negate, name=name_of(self))

    def deciders(self) -> Iterator[Decider]:
        yield Decider("validator", self.use.removeprefix("agents:"), "`agent`")

    async def check(self, evidence: Evidence) -> Verdict:
        evidence = evidence.for_judges()
        judges = evidence.judge
        if judges is None:
            return unjudged(f"`agent` needs {self.use}, and this trial has no judges")
        try:
            validator = judges.validator(self.use)
        except ConfigurationError as error:
            return unjudged(error.with_hint)
        options = self.options.model_dump(exclude_defaults=True) if self.options is not None else {}
        found = await validator.validate(
            Validation(
                output=evidence.output,
                input=evidence.input,
                conversation=evidence.transcript.messages,
                metadata=options.pop("metadata", {}),
                criteria=self.value,
                expected=_expected(self, evidence),
                options=options,
            ),
            run=judges.run,
        )
        judges.usage.add(found.usage)
        judgement = found.judgement
        if judgement.met is None:
            verdict = unjudged(judgement.reason, where=self.use)
        else:
            decided = passed if judgement.met else failed
            verdict = decided(cut(judgement.reason, LONGEST_REASON), where=self.use, score=judgement.score)
        verdict.judge = validator.judged_by(self.rubric)
        return verdict


async def judge_expectations(expectations: Sequence[str], evidence: Evidence) -> list[Verdict]:
    """The verdicts of the assessor on expectations in words. Raises nothing but a cancellation."""
    evidence = evidence.for_judges()
    try:
        judges, assessor = _assessor(evidence, None, "expectations in words need")
        found = await assessor.assess(
            await _record(evidence), expectations, intent=evidence.case.intent or "", run=judges.run
        )
        _count(found, judges, assessor, evidence)
        verdicts = [_expectation(words, one) for words, one in zip(expectations, found.judgements, strict=True)]
        for words, verdict in zip(expectations, verdicts, strict=True):
            verdict.judge = assessor.judged_by(make_rubric(words, "met", name=words), "met")
        return verdicts
    except (_NoJudge, NotKept) as error:
        reason = str(error)
    except Exception as error:
        reason = f"the check broke: {last_line(error)}"
    return [_expectation(words, Judgement(reason=reason)) for words in expectations]


def rubrics(case: Case) -> Iterator[tuple[Decider, Wanted, Rubric]]:
    """What judges are asked of each answer to a case, before any is asked."""
    for place in compiled_expectations(case)[1]:
        words = read_expectation(case.expectations[place]).words
        yield Decider("assessor", None, IN_WORDS), "met", make_rubric(words, "met")
    for assertion in each_assertion(case.asserted):
        if isinstance(assertion, LlmEval | AgentAssertion):
            for decider in assertion.deciders():
                yield decider, "score", assertion.rubric


def _assessor(evidence: Evidence, name: str | None, who_needs: str) -> tuple[Judges, "Assessor"]:
    """The judges of the trial, and the assessor of this name. Raises `_NoJudge`."""
    if evidence.judge is None:
        raise _NoJudge(f"{who_needs} a model to judge, and there is none: {HOW_TO_SET}")
    try:
        return evidence.judge, evidence.judge.assessor(name)
    except ConfigurationError as error:
        raise _NoJudge(f"{who_needs} a model to judge: {error.with_hint}") from error


async def _record(evidence: Evidence, about: dict[str, str] | None = None) -> Record:
    """What a judge reads of the trial."""
    task = evidence.case.task
    data = task.input_data if task is not None else None
    given = Given(data, len(evidence.case.messages), evidence.unreported_calls)
    files = await in_thread(files_of, evidence)
    hidden = evidence.judge.secrets if evidence.judge is not None else frozenset()
    return make_record(
        evidence.transcript,
        earlier=evidence.earlier,
        given=given,
        files=files,
        about=about,
        turn=evidence.turn,
        secrets=hidden,
    )


def _artifacts(path: str, evidence: Evidence) -> dict[str, str]:
    """The texts of the files that a judge is asked about. Raises `NotShown` if it can't be shown all of them."""
    shown = Versions[str]()
    for file in files_at(path, evidence):
        try:
            shown.add(file.name, file.text_to_show())
        except NotShown as error:
            raise NotShown(f"`{file.name}` can't be judged: {error}") from error
        if len(shown.files) > MOST_FILES:
            raise NotShown(f"more than {MOST_FILES} files fit `{path}`, too many for a judge")
    return shown.files


def _count(found: Assessment, judges: Judges, assessor: "Assessor", evidence: Evidence) -> None:
    """Add the usage and the warnings of an assessment to those of the trial."""
    judges.usage.add(found.usage)
    models = {str(one.payload.get("model")) for one in evidence.transcript.events if one.type == "llm_request"}
    for warning in (*found.notes, assessor.same_model(models)):
        if warning is not None:
            judges.warn(warning)


def _scored(judgement: Judgement, threshold: float, where: str) -> Verdict:
    if judgement.score is None:
        verdict = unjudged(judgement.reason, where=where)
    else:
        holds = judgement.score >= threshold
        message = f"scored {judgement.score:.3g}, at least {threshold:g} is wanted: {judgement.reason}"
        verdict = (passed if holds else failed)(
            cut(message, LONGEST_REASON),
            expected=threshold,
            found=judgement.score,
            where=where,
            score=judgement.score,
        )
    return _filled(verdict, judgement, threshold)


def _expectation(words: str, judgement: Judgement) -> Verdict:
    outcome: Outcome = "unjudged" if judgement.met is None else "passed" if judgement.met else "failed"
    verdict = Verdict(type="expectation", outcome=outcome, message=cut(judgement.reason, LONGEST_REASON))
    verdict.name, verdict.judged = words, True
    return _filled(verdict, judgement, None)


def _filled(verdict: Verdict, judgement: Judgement, threshold: float | None) -> Verdict:
    """Add the evidence, and the single votes."""
    verdict.evidence = [cut(one) for one in judgement.evidence]
    for vote in judgement.votes:
        outcome: Outcome = "unjudged"
        if vote.judged:
            holds = vote.met if vote.score is None or threshold is None else vote.score >= threshold
            outcome = "passed" if holds else "failed"
        part = Verdict(type=VOTE, outcome=outcome, message=cut(vote.reason), score=vote.score, judged=True)
        part.evidence = [cut(one) for one in vote.evidence]
        verdict.parts.append(part)
    return verdict


def _expected(assertion: AgentAssertion, evidence: Evidence) -> dict[str, Any]:
    if "value" in assertion.model_fields_set:
        return {"expected": assertion.value}
    if "expected" in evidence.case.model_fields_set:
        return {"expected": evidence.case.expected}
    return {}
