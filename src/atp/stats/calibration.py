"""How right a judge is, measured by labels of people; and the pass rate that a judge so measured stands for.

A judge is to answers what a test is to patients: it passes good answers with one probability (the true-positive rate)
and fails bad ones with another (the true-negative rate). From both, and from the share of answers that it passed,
follows the share that is good (Rogan and Gladen). `docs/design/calibration.md` says which formula each figure has.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import fsum, inf, sqrt
from random import Random
from typing import Annotated, NamedTuple, TypeVar

from msgspec import Meta, Struct

from atp.stats.distributions import normal_quantile
from atp.stats.intervals import Interval, clopper_pearson

Item = TypeVar("Item")
Stratum = TypeVar("Stratum", bound=Hashable)
_Part = Annotated[float, Meta(ge=0, le=1)]
CONFIDENCE = 0.95
"""Of all intervals."""


class LabelledVerdict(NamedTuple):
    """A verdict of a judge on an answer, and what people say of the same answer."""

    case: Hashable
    """The case it belongs to. Verdicts of a case are not independent of each other."""
    judged: bool
    """The judge passed it."""
    truth: bool
    """People pass it."""
    weight: float = 1.0
    """How many verdicts of the run it stands for."""


class Share(Struct, kw_only=True, omit_defaults=True):
    """A measured share, from 0 to 1."""

    value: _Part
    """The share that was observed."""
    low: _Part
    """The lower limit of its interval."""
    high: _Part
    """The upper limit."""
    labels: Annotated[int, Meta(ge=0)]
    """How many labels it is made of."""
    effective: Annotated[float, Meta(ge=0)]
    """How many independent labels of equal weight would say as much."""

    @property
    def interval(self) -> Interval:
        """Where the share lies in the long run, 95%."""
        return Interval(self.low, self.high)


class Kappa(Struct, kw_only=True):
    """Cohen's κ: how much of the agreement that chance leaves room for is there. 1 is all, 0 is what chance gives."""

    value: float
    """The κ that was observed."""
    low: float
    """The lower limit of its interval, 95%."""
    high: float
    """The upper limit."""


class Accuracy(Struct, kw_only=True, omit_defaults=True):
    """What labels say of a judge."""

    labels: int
    """Verdicts that people labelled."""
    cases: int
    """Cases that they are of."""
    at_random: bool
    """The labelled verdicts were drawn at random. Of those that somebody picked, nothing follows for others."""
    both_passed: int = 0
    """Labelled verdicts that judge and people pass."""
    both_failed: int = 0
    """Those that both fail."""
    only_judge: int = 0
    """Those that only the judge passes: false positives."""
    only_people: int = 0
    """Those that only people pass: false negatives."""
    agreement: Share | None = None
    """How often judge and people say the same."""
    kappa: Kappa | None = None
    """Agreement beyond chance; None if judge and people always say the same one thing."""
    tpr: Share | None = None
    """How often the judge passes what people pass. None without such labels, or if they were not drawn at random."""
    tnr: Share | None = None
    """How often the judge fails what people fail. None without such labels, or if they were not drawn at random."""

    @property
    def is_informative(self) -> bool:
        """True if the labels show the judge to be better than chance, so that a pass rate can be corrected.

        The lower limit of TPR + TNR - 1 is above 0, each with its own lower limit: both hold at once with at least 95%.
        """
        return self.tpr is not None and self.tnr is not None and self.tpr.low + self.tnr.low > 1

    @property
    def is_possible(self) -> bool:
        """False for a record that no labels give: every share lies between its limits."""
        shares = (self.agreement, self.tpr, self.tnr, self.kappa)
        return all(one is None or one.low <= one.value <= one.high for one in shares)


class Corrected(Struct, kw_only=True):
    """The share of good answers that follows from the share that the judge passed."""

    rate: float
    """The corrected rate, from 0 to 1 (Rogan and Gladen)."""
    low: float
    """The lower limit of its interval, 95% (Lang and Reiczigel)."""
    high: float
    """The upper limit."""


def measure(labelled: Sequence[LabelledVerdict], *, at_random: bool) -> Accuracy:
    """What labels say of a judge. The weights are used only if the verdicts were drawn `at_random`."""
    if not at_random:
        labelled = [one._replace(weight=1.0) for one in labelled]
    found = Accuracy(labels=len(labelled), cases=len({one.case for one in labelled}), at_random=at_random)
    for one in labelled:
        if one.truth == one.judged:
            found.both_passed += one.truth
            found.both_failed += not one.truth
        else:
            found.only_judge += one.judged
            found.only_people += one.truth
    heaviest = max((one.weight for one in labelled), default=1.0)
    found.agreement = _share([(one.case, one.truth == one.judged, one.weight) for one in labelled], heaviest)
    if found.agreement is not None:
        found.kappa = _kappa(labelled, found.agreement)
    if at_random:
        found.tpr = _share([(one.case, one.judged, one.weight) for one in labelled if one.truth], heaviest)
        found.tnr = _share([(one.case, not one.judged, one.weight) for one in labelled if not one.truth], heaviest)
    return found


def _share(values: Sequence[tuple[Hashable, bool, float]], heaviest: float) -> Share | None:
    """A weighted share with Clopper and Pearson's interval for the effective number; None without values.

    `heaviest` is the largest weight of any label. Where all values are the same, one of the other kind may weigh that
    much: it would be a verdict of the other stratum.
    """
    if not values:
        return None
    total = fsum(weight for _, _, weight in values)
    share = fsum(weight for _, holds, weight in values if holds) / total
    differences: dict[Hashable, list[float]] = {}
    for case, holds, weight in values:
        differences.setdefault(case, []).append(weight * (holds - share))
    squares = fsum(fsum(one) ** 2 for one in differences.values())
    of_equal_weight = total**2 / fsum(weight**2 for _, _, weight in values)
    number = effective_number(share, squares / total**2, len(values), len(differences))
    number = min(number, of_equal_weight, total / heaviest if squares == 0 else inf)
    low, high = clopper_pearson(share * number, number, CONFIDENCE)
    return Share(value=share, low=low, high=high, labels=len(values), effective=number)


def effective_number(share: float, squared_error: float, values: int, cases: int) -> float:
    """How many independent values say as much of a share as `values` of `cases`.

    `squared_error` is that of the share, by the spread of the cases' sums and without a correction for their number.
    Values that are each a case by themselves, of equal weight, count as what they are. If all are the same, their
    spread is not known, and each case counts as one.
    """
    if values < 2 or cases < 2:
        return float(min(values, cases))
    if squared_error == 0:
        return float(cases)
    # Small-sample corrections of both: of the spread between the cases, and of that between independent values.
    return share * (1 - share) / squared_error * (cases - 1) / cases * values / (values - 1)


def _kappa(labelled: Sequence[LabelledVerdict], agreement: Share) -> Kappa | None:
    """Cohen's κ. Its limits are those of the agreement, with chance agreement as it was observed."""
    total = fsum(one.weight for one in labelled)
    passed = fsum(one.weight for one in labelled if one.judged) / total
    true = fsum(one.weight for one in labelled if one.truth) / total
    chance = passed * true + (1 - passed) * (1 - true)
    if 1 - chance < 1e-12:
        return None
    value, low, high = ((one - chance) / (1 - chance) for one in (agreement.value, agreement.low, agreement.high))
    return Kappa(value=value, low=max(low, -1.0), high=high)


class VerdictCounts(Struct, kw_only=True):
    """The verdicts of a judge in a run, counted case by case."""

    passed: int = 0
    """Verdicts that passed."""
    judged: int = 0
    """Verdicts that passed or failed."""
    unjudged: int = 0
    """Checks that the judge could not decide."""
    cases: int = 0
    """Cases that they are of."""
    _passed_passed: int = 0
    _passed_judged: int = 0
    _judged_judged: int = 0

    def add(self, passed: int, judged: int, unjudged: int = 0) -> None:
        """Count the verdicts of a case."""
        self.passed += passed
        self.judged += judged
        self.unjudged += unjudged
        self.cases += judged > 0
        self._passed_passed += passed * passed
        self._passed_judged += passed * judged
        self._judged_judged += judged * judged

    @property
    def rate(self) -> float | None:
        """The share of verdicts that passed: the raw rate."""
        return self.passed / self.judged if self.judged else None

    @property
    def effective(self) -> float:
        """How many independent verdicts would say as much: between the number of cases and that of verdicts."""
        if not self.judged:
            return 0.0
        share = Fraction(
            self.passed, self.judged
        )  # the squares are of whole numbers, and their difference may be small
        squares = self._passed_passed - 2 * share * self._passed_judged + share**2 * self._judged_judged
        number = effective_number(float(share), float(squares) / self.judged**2, self.judged, self.cases)
        return min(max(number, self.cases), self.judged)


def corrected_rate(counts: VerdictCounts, accuracy: Accuracy) -> Corrected | None:
    """The share of good answers; None if the labels don't show the judge to be better than chance.

    Checks that the judge could not decide are not dropped: the lower limit takes them as failed, the upper as passed.
    """
    rate, tpr, tnr = counts.rate, accuracy.tpr, accuracy.tnr
    if rate is None or tpr is None or tnr is None or not accuracy.is_informative:
        return None
    asked = counts.judged + counts.unjudged
    number = counts.effective * asked / counts.judged
    low = _corrected_interval(counts.passed / asked, number, tpr, tnr).low
    high = _corrected_interval((counts.passed + counts.unjudged) / asked, number, tpr, tnr).high
    estimate = _clipped(_rogan_gladen(rate, tpr.value, tnr.value))
    return Corrected(rate=estimate, low=min(low, estimate), high=max(high, estimate))


def _rogan_gladen(rate: float, tpr: float, tnr: float) -> float:
    return (rate + tnr - 1) / (tpr + tnr - 1)


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _corrected_interval(rate: float, number: float, tpr: Share, tnr: Share) -> Interval:
    """The interval of Lang and Reiczigel: that of the formula's variance, around shares moved towards the middle."""
    z = normal_quantile((1 + CONFIDENCE) / 2)
    n, positives, negatives = number + z * z, tpr.effective + 2, tnr.effective + 2
    moved = (number * rate + z * z / 2) / n
    found = (tpr.effective * tpr.value + 1) / positives
    refused = (tnr.effective * tnr.value + 1) / negatives
    better_than_chance = found + refused - 1
    middle = _rogan_gladen(moved, found, refused)
    of_found, of_refused = found * (1 - found) / positives, refused * (1 - refused) / negatives
    shift = 2 * z * z * (middle * of_found - (1 - middle) * of_refused)
    variance = moved * (1 - moved) / n + middle**2 * of_found + (1 - middle) ** 2 * of_refused
    width = z * sqrt(variance) / better_than_chance
    return Interval(_clipped(middle + shift - width), _clipped(middle + shift + width))


def allocate(sizes: Mapping[Stratum, int], wanted: int) -> dict[Stratum, int]:
    """How many items to draw of each stratum: in proportion to its size, but some of each.

    Of two strata, each gets at least a tenth of the sample: both kinds of a judge's mistakes are to be seen.
    """
    sizes = {name: size for name, size in sizes.items() if size}
    wanted = min(wanted, sum(sizes.values()))
    least = wanted // (5 * len(sizes)) if sizes else 0
    given = {name: min(size, least) for name, size in sizes.items()}
    while sum(given.values()) < wanted:
        # The stratum that is furthest behind its due gets the next item.
        open_ones = [name for name in given if given[name] < sizes[name]]
        given[min(open_ones, key=lambda name: (given[name] + 0.5) / sizes[name])] += 1
    return {name: count for name, count in given.items() if count}


def draw(strata: Mapping[Stratum, Sequence[Item]], wanted: int, dice: Random) -> list[tuple[Stratum, float, Item]]:
    """A random sample of `wanted` items, in random order: the stratum of each, its weight and the item itself.

    An item's weight is how many of its stratum it stands for.
    """
    shares = allocate({name: len(items) for name, items in strata.items()}, wanted)
    drawn = [
        (name, len(strata[name]) / share, item)
        for name, share in shares.items()
        for item in dice.sample(strata[name], share)
    ]
    dice.shuffle(drawn)
    return drawn


def reweighted(drawn: Iterable[tuple[Stratum, float, bool]]) -> dict[Stratum, float]:
    """The weight of the labelled items of each stratum, from all that were drawn: (stratum, weight, was labelled).

    Labelled items stand for those of their stratum that nobody labelled. A stratum without labels is left out.
    """
    totals: dict[Stratum, float] = {}
    labelled: dict[Stratum, int] = {}
    for stratum, weight, was_labelled in drawn:
        totals[stratum] = totals.get(stratum, 0.0) + weight
        labelled[stratum] = labelled.get(stratum, 0) + was_labelled
    return {stratum: totals[stratum] / count for stratum, count in labelled.items() if count}
