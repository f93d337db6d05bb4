"""Trials come in as they end; a case is complete when its last one has. Until then, and no longer, they are kept."""

from atp.run.plan import Trial
from atp.stats.score import below
from atp.stats.stability import case_score, case_status
from atp.suite.result import CaseResult, TrialResult


class Collector:
    """Puts the trials of each case together."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str, int], CaseResult] = {}

    def add(self, trial: Trial, result: TrialResult) -> CaseResult | None:
        """Take a result in; the case, if this was its last."""
        case = trial.case
        place = (id(trial.source), trial.tested.name, case.index)
        whole = self._open.get(place)
        if whole is None:
            whole = CaseResult(
                agent=trial.tested.name,
                case=case.id,
                name=case.name,
                index=case.index,
                file=trial.source.suite.path,
                line=case.place.line,
                tags=case.tags,
                input=case.input,
                expected=case.expected,
                required_rate=case.pass_rate,
            )
            if trial.siblings > 1:
                self._open[place] = whole
        whole.trials.append(result)
        if len(whole.trials) < trial.siblings:
            return None
        self._open.pop(place, None)
        return self._finish(whole, case.min_score)

    def rest(self) -> list[CaseResult]:
        """The cases that a stop left incomplete: what is missing of them was cancelled, whatever the rest says."""
        return [self._finish(whole, None, complete=False) for whole in self._open.values()]

    def _finish(self, whole: CaseResult, min_score: float | None, complete: bool = True) -> CaseResult:
        whole.trials.sort(key=lambda one: (one.variation, one.run))
        required = whole.required_rate if complete else None
        whole.status = case_status(whole.trials, required, min_score)
        if whole.status == "passed" and not complete:
            whole.status, whole.reason = "cancelled", "stopped before all its trials had run"
        elif whole.status == "failed" and all(trial.status == "passed" for trial in whole.trials):
            whole.reason = below(case_score(whole.trials), min_score)
        return whole
