"""What comes of a trial whose conversation is over: its verdicts, its score, and how it ends by them."""

from typing import TYPE_CHECKING

from atp.checks import check_case
from atp.checks.evidence import Evidence
from atp.checks.limits import disagreements, unobserved, unshown
from atp.engine.prepare.plan import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.ending import Ending
from atp.engine.trial.workspace import Workspace
from atp.stats.score import score
from atp.suite.case import Case
from atp.suite.result import Outcome, TrialResult, Verdict

if TYPE_CHECKING:
    from atp.engine.trial.dialogue import Dialogue


def gather_evidence(trial: Trial, result: TrialResult, workspace: Workspace, context: RunContext) -> Evidence:
    """All that the checks of a trial may look at, and its judges if any case of the suite needs one."""
    judges = context.roles.judges(trial.source, trial.run, result) if trial.source.survey.deciders else None
    return Evidence(
        case=trial.case,
        transcript=result.transcript,
        workspace=workspace,
        folders=(trial.tested.base, trial.source.folder, context.root),
        context=trial.context,
        judge=judges,
    )


async def judge(case: Case, result: TrialResult, evidence: Evidence, dialogue: "Dialogue | None") -> Ending | None:
    """Check all that the case asks for; how the trial ends, if it doesn't pass."""
    result.verdicts = await check_case(case, evidence)
    if dialogue is not None:
        result.verdicts = [*dialogue.verdicts(), *result.verdicts]
    if case.limits.given():
        result.verdicts.extend(unshown(case.limits, result.transcript))
        result.warnings.extend(unobserved(case.limits, result.transcript))
    if result.transcript.events:
        result.warnings.extend(disagreements(result.transcript))
    if not result.verdicts:
        result.warnings.append("no assertions")
    return conclude(case, result, dialogue.error if dialogue is not None else None)


def conclude(case: Case, result: TrialResult, ended_with: str | None = None) -> Ending | None:
    """A failed check makes the trial failed, also beside an unjudged one; unjudged alone is the judge's error."""
    failed, unjudged = _first("failed", result.verdicts), _first("unjudged", result.verdicts)
    if unjudged is None or failed is not None:
        scored = score(result, case)
        result.score, result.dimensions = scored.value, scored.dimensions
        result.left_out = scored.left_out
    if failed is not None:
        return Ending("failed", ended_with or failed.message)
    return Ending("error", unjudged.message, "judge") if unjudged is not None else None


def _first(outcome: Outcome, verdicts: list[Verdict]) -> Verdict | None:
    for verdict in verdicts:
        if verdict.outcome == outcome:
            return verdict
    return None
