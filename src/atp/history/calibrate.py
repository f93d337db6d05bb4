"""Measures the judges of a run by the labels of people, for a calibration.

Labels come from a sample that was filled in, and from those that are stored beside the run. Rates are measured only if
the labelled checks were drawn at random; of labels that people gave as they liked, only the agreement.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from atp.base.diagnostics import Diagnostics, LoadError, Place, has_errors, load_error
from atp.base.numbers import counted
from atp.base.project import runs_folder
from atp.history.calibrations import FORMAT, Calibration, Calibrations, JudgeCalibration, Measured
from atp.history.samples import NAME as SAMPLE
from atp.history.samples import Sample, fits, read_sample
from atp.journal.folder import all_runs
from atp.journal.labels import CheckPlace, read_labels
from atp.journal.listeners import Listener
from atp.journal.read import bounds
from atp.journal.recorded_run import RecordedRun
from atp.stats.calibration import Accuracy, LabelledVerdict, measure, reweighted
from atp.stats.judges import JudgeCounts, JudgedVerdicts, judged_verdicts
from atp.stats.self_consistency import Flips
from atp.suite.result import CaseResult, JudgedBy

Check = tuple[str, CheckPlace]
"""A check of a run: the key of its trial, and its place."""
Said = Literal["passed", "failed"]
IN_FILE = ""
"""The person who filled in a sample's file, which names nobody."""


class _Judged(NamedTuple):
    """A verdict of a judge that people labelled."""

    case: tuple[str | None, str]
    """The file and the id of the case."""
    judge: JudgedBy
    passed: bool


_Labelled = tuple[_Judged, bool, float]
"""A verdict, whether people pass the answer, and how many verdicts of the run it stands for."""


class _Verdicts(Listener):
    """Collects the verdicts of judges on the checks that were labelled."""

    def __init__(self, wanted: Iterable[Check]) -> None:
        self._wanted = {key for key, _ in wanted}
        self.found: dict[Check, _Judged] = {}
        self.trials: set[str] = set()
        """The labelled trials that the run has."""

    def case(self, result: CaseResult) -> None:
        """Collect the verdicts of a case."""
        for trial in result.trials:
            if trial.key in self._wanted:
                self.trials.add(trial.key)
                for place, verdict in judged_verdicts(trial.verdicts):
                    if verdict.outcome != "unjudged" and verdict.judge is not None:
                        one = _Judged((result.file, result.case), verdict.judge, verdict.passed)
                        self.found[trial.key, place] = one


class Measurement(NamedTuple):
    """A calibration, and what a person should know of it."""

    calibration: Calibration
    """What was measured."""
    judged: JudgedVerdicts
    """The verdicts of the run's judges."""
    default_name: str
    """What the calibration is called, if nobody says: as the run's first test file."""
    at_random: bool
    """The labelled checks were drawn at random."""
    notes: list[str]
    """How the labels were used, where that is not obvious."""

    def calibrations(self, name: str) -> Calibrations:
        """The calibration alone, under a name."""
        return Calibrations([(name, self.calibration)])


def measure_run(run: Path, root: Path, file: Path | None = None) -> Measurement:
    """Measure the judges of a run. `file` is a sample that was filled in; None means that of the run, if there is one.

    Raises `LoadError` if there are no labels, or some are about checks that the run doesn't have.
    """
    recorded = RecordedRun(run, relocate=False)
    path = file if file is not None else run / SAMPLE
    sample = read_sample(path) if file is not None or path.exists() else None
    people = _labels_of(run, sample)
    truth, notes = _truth(people)
    if not truth:
        raise _no_labels(run, sample, path)
    verdicts = _Verdicts([*truth, *((one.identity for one in sample.items) if sample is not None else ())])
    judged = recorded.repeat(verdicts).numbers.judged
    if sample is not None:
        _check_fits(sample, verdicts, path)
    labelled, at_random, more = _weighted(truth, verdicts, sample)
    wanted = sample.head.criterion if sample is not None else None
    judges = _judges(labelled, judged, at_random, wanted, _further_flips(recorded, judged, root))
    if not judges:
        raise load_error(
            "no-labels",
            f"no label of the run {recorded.info.id} is about a check that a judge decided",
            "label checks that judges decide: atp calibrate sample draws some",
        )
    return Measurement(
        Calibration(
            type="atp calibration",
            format=FORMAT,
            run=recorded.info.id,
            at=round(time.time(), 3),
            agents={name: sorted(digests) for name, digests in judged.agents.items()},
            people=sorted({person for said in people.values() for person in said} - {IN_FILE}),
            judges=judges,
        ),
        judged,
        _name(recorded.info.files),
        at_random,
        [*notes, *more],
    )


def _name(files: Sequence[str]) -> str:
    """The first part of the first test file's name, as far as it can be in the name of a calibration."""
    first = next((Path(file).name.split(".")[0] for file in files if file), "")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", first).strip("-_")[:80] or "judges"


def _labels_of(run: Path, sample: Sample | None) -> dict[Check, dict[str, Said]]:
    """What each person says of each check."""
    found: dict[Check, dict[str, Said]] = {}
    for label in read_labels(run):
        if label.verdict is not None and label.check:
            found.setdefault((label.trial, label.check), {})[label.by] = label.verdict
    for item in sample.items if sample is not None else ():
        if item.label is not None:
            found.setdefault(item.identity, {})[IN_FILE] = item.label
    return found


def _truth(people: Mapping[Check, Mapping[str, Said]]) -> tuple[dict[Check, bool], list[str]]:
    """What most people say of each check. Checks on which they are divided are left out."""
    found: dict[Check, bool] = {}
    several = agreed = divided = 0
    for check, said in people.items():
        votes = Counter(said.values())
        several += len(said) > 1
        agreed += len(said) > 1 and len(votes) == 1
        if votes["passed"] == votes["failed"]:
            divided += 1
        else:
            found[check] = votes["passed"] > votes["failed"]
    notes = []
    if several:
        notes.append(f"several people labelled {counted(several, 'check')}, and agree on {agreed}")
    if divided:
        verb = "is" if divided == 1 else "are"
        notes.append(f"{counted(divided, 'check')} on which as many say passed as failed {verb} left out")
    return found, notes


def _no_labels(run: Path, sample: Sample | None, path: Path) -> LoadError:
    if sample is not None:
        message = f"nothing is labelled in {path}"
        return load_error("no-labels", message, 'fill in `label` with "passed" or "failed", or label in atp view')
    hint = f"draw a sample to label: atp calibrate sample {run.name}"
    return load_error("no-labels", f"the run {run.name} has no labels on checks", hint)


def _check_fits(sample: Sample, verdicts: _Verdicts, path: Path) -> None:
    """Raise `LoadError` with every item of a sample that the run doesn't have."""
    notes = Diagnostics(str(path))
    for number, item in enumerate(sample.items, 2):
        if item.trial not in verdicts.trials:
            message = f"the run has no trial `{item.trial}`: the sample is of the run {sample.head.run}"
            notes.error("label-unknown", message, Place(number, 1), "measure the run that the sample was drawn from")
    if has_errors(notes):
        raise LoadError(notes.in_order())


def _weighted(
    truth: Mapping[Check, bool], verdicts: _Verdicts, sample: Sample | None
) -> tuple[list[_Labelled], bool, list[str]]:
    """The labelled verdicts with their weights, whether they are a random sample, and notes."""
    notes: list[str] = []
    if sample is None:
        notes.append("the labelled checks were not drawn at random: only agreement and κ are measured")
        picked = [(verdicts.found[one], holds, 1.0) for one, holds in truth.items() if one in verdicts.found]
        return picked, False, notes
    weights = reweighted((item.stratum, item.weight, item.identity in truth) for item in sample.items)
    at_random = weights.keys() == {item.stratum for item in sample.items}
    left = sum(item.identity not in truth for item in sample.items)
    if not at_random:
        notes.append("a whole part of the sample has no labels: only agreement and κ are measured; label some more")
    elif left:
        notes.append(
            f"{left} of {len(sample.items)} checks of the sample have no label; the others are taken to be like them"
        )
    drawn = {item.identity: item for item in sample.items}
    if beside := sum(check in verdicts.found for check in truth.keys() - drawn.keys()):
        notes.append(f"{counted(beside, 'label')} on checks outside of the sample are left out")
    found = [
        (verdicts.found[check], truth[check], weights[item.stratum])
        for check, item in drawn.items()
        if check in truth and check in verdicts.found
    ]
    return found, at_random, notes


def _judges(
    labelled: Sequence[_Labelled],
    judged: JudgedVerdicts,
    at_random: bool,
    wanted: str | None,
    further: JudgedVerdicts | None,
) -> list[JudgeCalibration]:
    """What the labels say of each judge."""
    by_judge: dict[str, list[tuple[str, LabelledVerdict]]] = {}
    for verdict, truth, weight in labelled:
        one = LabelledVerdict(verdict.case, verdict.passed, truth, weight)
        by_judge.setdefault(verdict.judge.digest, []).append((verdict.judge.criterion, one))
    found = []
    for digest, verdicts in by_judge.items():
        whole = judged.judges[digest]
        others = further.judges.get(digest) if further is not None else None
        criteria = []
        for criterion, counts in judged.by_criterion(digest):
            if fits(wanted, counts.criterion or ""):
                own = [one for by, one in verdicts if by == criterion]
                again = further.criteria.get((digest, criterion)) if further is not None else None
                measured = _measured(counts, measure(own, at_random=at_random), again)
                measured.criterion = criterion
                criteria.append(measured)
        accuracy = measure([one for _, one in verdicts], at_random=at_random)
        in_all = _measured(whole, accuracy, others)
        if wanted is not None:
            in_all.passed, in_all.failed = sum(one.passed for one in criteria), sum(one.failed for one in criteria)
        found.append(JudgeCalibration(judge=whole.judge, whole=in_all, criteria=criteria))
    return found


def _measured(counts: JudgeCounts, accuracy: Accuracy, further: JudgeCounts | None) -> Measured:
    flips: Flips | None = counts.flips if counts.flips.pairs else further.flips if further is not None else None
    passed, judged = counts.verdicts.passed, counts.verdicts.judged
    return Measured(
        text=counts.criterion,
        passed=passed,
        failed=judged - passed,
        accuracy=accuracy,
        flips=flips if flips is not None and flips.pairs else None,
    )


def _further_flips(recorded: RecordedRun, judged: JudgedVerdicts, root: Path) -> JudgedVerdicts | None:
    """The verdicts of the newest run in which the conversations of this one were judged several times, if any."""
    if any(one.flips.pairs for one in judged.judges.values()):
        return None
    for run in all_runs(root) if runs_folder(root).exists() else ():
        start, _ = bounds(run)
        if start is not None and start.rechecks == recorded.info.id:
            again = RecordedRun(run, relocate=False).repeat(Listener()).numbers.judged
            if any(one.flips.pairs for one in again.judges.values()):
                return again
    return None
