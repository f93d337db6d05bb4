"""Document 4's stability fields of a case that ran more than once, for programs and for people."""

from typing import Any

from atp.stats.stability import Stability, by_variation, stability
from atp.stats.summary import percent
from atp.suite.result import CaseResult


def stability_object(case: CaseResult) -> dict[str, Any]:
    """The fields of "Stability Report Structure"; variations of the prompt are an axis of their own."""
    made = _fields(stability(case.trials, case.planned))
    variations = by_variation(case.trials, case.planned_runs)
    if len(variations) > 1:
        made["iterations"] = len(variations)
        made["variations"] = [{"variation": number, **_fields(one)} for number, one in variations.items()]
    return made


def stability_text(case: CaseResult) -> str:
    """The same in a line: `Runs: 2/3 passed (66.7%), unstable`; with variations, it says what was counted."""
    found = stability(case.trials, case.planned)
    rate = percent(found.passed, found.planned)
    variations = case.variations
    label = "Runs" if variations == 1 else "Variations" if variations == found.planned else "Trials"
    said = f"{label}: {found.passed}/{found.planned} passed ({rate:g}%)"
    if label == "Trials":
        said += f" of {trials_text(found.planned, variations, found.planned // variations)}"
    said += f", {class_text(found)}, consistency {found.consistency:.2f}"
    if case.required_rate is not None:
        said += f", {100 * case.required_rate:g}% needed"
    return said


def class_text(found: Stability) -> str:
    """`mostly stable`; of a case that was cut short, how much of it there is."""
    if found.classification is None:
        return f"only {found.runs} of {found.planned} trials ran"
    return found.classification.replace("_", " ")


def trials_text(trials: int, variations: int, runs: int) -> str:
    """`10 variations × 5 runs`: how so many trials came about; without the runs, where those differ."""
    if trials != variations * runs:
        return f"{variations} variations, not all with as many runs"
    return f"{variations} variations × {runs} runs" if runs > 1 else f"{variations} variations"


def _fields(found: Stability) -> dict[str, Any]:
    same = found.output_consistency
    made: dict[str, Any] = {
        "runs": found.runs,
        **({"planned": found.planned} if found.planned > found.runs else {}),
        "passed": found.passed,
        "failed": found.failed,
        "pass_rate": percent(found.passed, found.planned),
        "consistency": round(found.consistency, 2),
        "output_consistency": None if same is None else round(same, 2),
        "stable": found.stable,
        "classification": found.classification,
        "avg_duration_ms": round(found.avg_duration_ms),
        "min_duration_ms": round(found.min_duration_ms),
        "max_duration_ms": round(found.max_duration_ms),
        "std_deviation_ms": round(found.std_deviation_ms, 1),
    }
    if found.std_deviation_score is not None:
        made["std_deviation_score"] = round(found.std_deviation_score, 2)
    return made
