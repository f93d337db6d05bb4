"""Trials come in as they end; a case is complete when its last one has. Until then, and no longer, they are kept."""

from collections.abc import Hashable

from atp.engine.prepare.plan import Trial
from atp.journal.journal import About
from atp.stats.score import below
from atp.stats.stability import case_score, case_status
from atp.suite.result import CaseResult, TrialResult


def about_case(trial: Trial) -> About:
    """What reports say of a trial's case."""
    case = trial.case
    return About(
        name=case.name,
        line=case.place.line,
        tags=case.tags,
        input=case.input,
        input_data=case.task.input_data if case.task is not None else None,
        expected=case.expected,
        pass_rate=case.pass_rate,
        min_score=case.min_score,
        trials=trial.siblings,
        runs=trial.runs,
    )


class Collector:
    """Puts the trials of each case together."""

    def __init__(self) -> None:
        self._open: dict[Hashable, tuple[CaseResult, About]] = {}

    def about(self, trial: Trial) -> About | None:
        """What is to be said of a trial's case, if this is the first of its trials."""
        return None if trial.siblings > 1 and _place(trial) in self._open else about_case(trial)

    def add(self, trial: Trial, result: TrialResult, about: About | None) -> CaseResult | None:
        """Take a result in, with what `about` gave; the case, if this was its last."""
        return self.take(_place(trial), trial.source.suite.path, trial.case.index, result, about)

    def take(
        self, place: Hashable, file: str | None, index: int, result: TrialResult, about: About | None
    ) -> CaseResult | None:
        """The same for a result of which only the journal tells; `place` is where all trials of a case belong."""
        known = self._open.get(place)
        if known is None:
            known = _opened(file, index, result, about or About())
            if known[1].trials > 1:
                self._open[place] = known
        whole, about = known
        whole.trials.append(result)
        if len(whole.trials) < about.trials:
            return None
        self._open.pop(place, None)
        return _finish(whole, about.min_score)

    def rest(self) -> list[CaseResult]:
        """The cases that a stop left incomplete: what is missing of them was cancelled, whatever the rest says."""
        return [_finish(whole, None, complete=False) for whole, _ in self._open.values()]


def _place(trial: Trial) -> Hashable:
    return id(trial.source), trial.tested.name, trial.case.index


def _opened(file: str | None, index: int, result: TrialResult, about: About) -> tuple[CaseResult, About]:
    whole = CaseResult(
        agent=result.agent,
        case=result.case,
        name=about.name,
        index=index,
        file=file,
        line=about.line,
        tags=about.tags,
        input=about.input,
        input_data=about.input_data,
        expected=about.expected,
        required_rate=about.pass_rate,
        planned=about.trials,
        planned_runs=about.runs,
    )
    return whole, about


def _finish(whole: CaseResult, min_score: float | None, complete: bool = True) -> CaseResult:
    if len(whole.trials) > 1:
        whole.trials.sort(key=lambda one: (one.variation, one.run))
    required = whole.required_rate if complete else None
    whole.status = case_status(whole.trials, required, min_score)
    if whole.status == "passed" and not complete:
        ran = f"{len(whole.trials)} of {whole.planned} trials ran"
        whole.status, whole.reason = "cancelled", f"stopped before all its trials had run: {ran}"
    elif whole.status == "failed" and all(trial.status == "passed" for trial in whole.trials):
        whole.reason = below(case_score(whole.trials), min_score)
    return whole
