"""Puts the trials of each case together: they are kept until the last one has ended, and no longer."""

from collections.abc import Hashable

from msgspec.structs import asdict

from atp.journal.records import Case as CaseLine
from atp.stats.score import below
from atp.stats.stability import case_score, case_status, is_judged
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
        min_runs=trial.min_runs,
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
            if case.planned > 1 or case.min_runs:
                self._open[place] = case
        case.trials.append(result)
        if case.min_runs or len(case.trials) < case.planned:
            return None
        self._open.pop(place, None)
        return finish_case(case)

    def close(self, trial: TrialRef, line: CaseLine) -> CaseResult:
        """The case of a trial, whose number of runs was not fixed beforehand, with what its gate came to."""
        return self.close_read(_place(trial), line)

    def close_read(self, place: Hashable, line: CaseLine) -> CaseResult:
        """The case whose closing line was read from a journal. Raises `KeyError` if no trial of the case was read."""
        return finish_case(self._open.pop(place), line)

    def rest(self) -> list[CaseResult]:
        """The cases that a stop left incomplete. Their missing trials count as cancelled, whatever the others say."""
        left = [finish_case(case, complete=False) for case in self._open.values()]
        self._open.clear()
        return left


def _place(trial: TrialRef) -> Hashable:
    return id(trial.suite), trial.agent, trial.case.index


def finish_case(case: CaseResult, line: CaseLine | None = None, *, complete: bool = True) -> CaseResult:
    """Set the status of a case whose trials have ended, and why it has that status.

    `line` closed a case whose number of runs was not fixed beforehand. Without one, the run was killed, or still runs.
    """
    if len(case.trials) > 1:
        case.trials.sort(key=lambda one: (one.variation, one.run))
    if case.min_runs:
        return _close(case, line or CaseLine(agent=case.agent, case=case.case, stopped_by="interrupted"))
    if case.confidence is not None and case.gate.is_tested:
        return _finish_tested(case, complete)
    required, min_score = (case.required_rate, case.min_score) if complete else (None, None)
    case.status = case_status(case.trials, required, min_score)
    if case.status == "passed" and not complete:
        ran = f"{len(case.trials)} of {case.planned} trials ran"
        case.status, case.reason = "cancelled", f"stopped before all its trials had run: {ran}"
    elif case.status == "failed" and case_status(case.trials, required) == "passed":
        case.reason = below(case_score(case.trials), min_score)
    return case


def _close(case: CaseResult, line: CaseLine) -> CaseResult:
    """Set the status of a case whose number of runs was not fixed beforehand."""
    for trial in case.trials:
        trial.surplus = trial.run > line.runs and line.is_final
    case.stopped_by, case.estimate, case.interval = line.stopped_by, line.estimate, line.interval
    variations = case.variations
    case.planned_runs = max((trial.run for trial in case.counted), default=0)
    case.planned = case.planned_runs * variations
    case.decision = line.decision if any(map(is_judged, case.counted)) else None
    return _set_tested_status(case)


def _finish_tested(case: CaseResult, complete: bool) -> CaseResult:
    """Set the status of a case whose gate has a confidence: what the gate comes to, if any trial was judged."""
    from atp.stats.case_gate import decide_case  # only cases with a confidence need the tests

    case.decision = decide_case(case, complete=complete)
    return _set_tested_status(case)


def _set_tested_status(case: CaseResult) -> CaseResult:
    from atp.stats.rate_text import case_rate_text

    case.status = case_status(case.counted, None, case.min_score, case.decision)
    if case.status == "inconclusive":
        case.reason = case_rate_text(case)
    elif case.status == "failed" and case.decision == "passed":
        case.reason = below(case_score(case.counted), case.min_score)
    return case
