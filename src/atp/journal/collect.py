"""Puts the trials of each case together: they are kept until the last one has ended, and no longer."""

from collections.abc import Hashable

from msgspec.structs import asdict

from atp.stats.score import below
from atp.stats.stability import case_score, case_status
from atp.suite.result import CaseInfo, CaseResult, TrialRef, TrialResult


def case_info(trial: TrialRef) -> CaseInfo:
    """What reports say of a trial's case."""
    case = trial.case
    return CaseInfo(
        name=case.name,
        line=case.place.line,
        tags=case.tags,
        input=case.input,
        input_data=case.task.input_data if case.task is not None else None,
        expected=case.expected,
        required_rate=trial.gate.rate,
        confidence=trial.gate.confidence if trial.gate.rate is not None else None,
        margin=trial.gate.margin,
        other_runs=trial.other_runs,
        min_score=case.min_score,
        user=case.user,
        team=case.team,
        metadata=case.metadata,
        quarantine=trial.quarantine,
        planned=trial.siblings,
        planned_runs=trial.runs,
    )


class Collector:
    """Puts the trials of each case together."""

    def __init__(self) -> None:
        self._open: dict[Hashable, CaseResult] = {}

    def about(self, trial: TrialRef) -> CaseInfo | None:
        """What reports say of a trial's case, if this is the first of its trials."""
        return None if trial.siblings > 1 and _place(trial) in self._open else case_info(trial)

    def add(self, trial: TrialRef, result: TrialResult, about: CaseInfo | None) -> CaseResult | None:
        """Add a result, with what `about` returned. Returns the case if this was its last trial."""
        return self.add_read(_place(trial), trial.suite.path, trial.case.index, result, about)

    def add_read(
        self, place: Hashable, file: str | None, index: int, result: TrialResult, about: CaseInfo | None
    ) -> CaseResult | None:
        """Add a result that was read from a journal; `place` is the same for all trials of a case."""
        case = self._open.get(place)
        if case is None:
            case = CaseResult(
                agent=result.agent, case=result.case, index=index, file=file, **asdict(about or CaseInfo())
            )
            if case.planned > 1:
                self._open[place] = case
        case.trials.append(result)
        if len(case.trials) < case.planned:
            return None
        self._open.pop(place, None)
        return _finish(case)

    def rest(self) -> list[CaseResult]:
        """The cases that a stop left incomplete. Their missing trials count as cancelled, whatever the others say."""
        left = [_finish(case, complete=False) for case in self._open.values()]
        self._open.clear()
        return left


def _place(trial: TrialRef) -> Hashable:
    return id(trial.suite), trial.agent, trial.case.index


def _finish(case: CaseResult, complete: bool = True) -> CaseResult:
    if len(case.trials) > 1:
        case.trials.sort(key=lambda one: (one.variation, one.run))
    if case.gate.is_tested:
        return _finish_tested(case, complete)
    required, min_score = (case.required_rate, case.min_score) if complete else (None, None)
    case.status = case_status(case.trials, required, min_score)
    if case.status == "passed" and not complete:
        ran = f"{len(case.trials)} of {case.planned} trials ran"
        case.status, case.reason = "cancelled", f"stopped before all its trials had run: {ran}"
    elif case.status == "failed" and case_status(case.trials, required) == "passed":
        case.reason = below(case_score(case.trials), min_score)
    return case


def _finish_tested(case: CaseResult, complete: bool) -> CaseResult:
    """Set the status of a case whose gate has a confidence: what the gate comes to, if any trial was judged."""
    from atp.stats.case_gate import case_text, decide_case  # only cases with a confidence need the tests

    case.decision = decide_case(case, complete=complete)
    case.status = case_status(case.counted, None, case.min_score, case.decision)
    if case.status == "inconclusive":
        case.reason = case_text(case)
    elif case.status == "failed" and case.decision == "passed":
        case.reason = below(case_score(case.counted), case.min_score)
    return case
