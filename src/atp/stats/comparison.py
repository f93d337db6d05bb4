"""The records of a comparison of two runs, A and B, and the exit code that it comes to.

Differences are B - A, in percentage points. The JSON of `atp compare` is these records.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from atp.base.exit_codes import FAILED, INCOMPLETE, INCONCLUSIVE, PASSED, UNUSABLE

Class = Literal["regressed", "improved", "same", "inconclusive"]
Observed = Literal["worse", "better", "equal"]
CaseClass = Class | Literal["changed", "quarantined", "only in A", "only in B"]
FailOn = Literal["regression", "observed"]
SideName = Literal["A", "B"]
Limits = tuple[float, float]


class Side(Struct, kw_only=True, forbid_unknown_fields=True):
    """One of the two runs that are compared."""

    name: str
    """What the user called it: a run's id, `last~1`, a baseline."""
    run: str
    """The run's id."""
    at: float
    """Seconds since 1970: when the run started."""
    commit: str | None = None
    """The commit of git that was checked out."""
    dirty: bool = False
    """Whether files that git knows differed from the commit."""
    agent: str | None = None
    """The agent, where one agent is compared with another."""
    pass_rate: float | None = None
    """The mean of the pass rates of the cases that are compared, in percent."""


class Tally(Struct, kw_only=True, forbid_unknown_fields=True):
    """The runs of a case on one side."""

    passed: int
    """Runs that passed."""
    judged: int
    """Runs that say something of the agent."""
    errors: int = 0
    """Runs without a verdict: errors that are not the agent's, and runs that never came to an end."""
    pass_rate: float | None = None
    """The pass rate in percent, as the mean over the variations of the prompt."""


class Said(Struct, kw_only=True, forbid_unknown_fields=True):
    """What an agent answered in one run."""

    outputs: list[Any]
    """Its answers, turn by turn."""
    passed: bool
    """Whether the run passed."""
    error: str | None = None
    """Why the run did not pass."""


class CaseComparison(Struct, kw_only=True, forbid_unknown_fields=True, rename={"kind": "class"}):
    """A case in A and in B."""

    id: str
    """The case's id."""
    agent: str
    """The agent's name; that of B where one agent is compared with another."""
    kind: CaseClass
    """What is known of the case."""
    observed: Observed | None
    """What was observed, however unsure; None if the case is not compared."""
    difference: float | None
    """The difference of the pass rates."""
    p_value: float | None
    """Fisher's exact test; None if the case is not compared."""
    interval: Limits | None = None
    """The 95% interval of the difference (Newcombe)."""
    file: str = ""
    """The test file, as a path from the project's root."""
    name: str = ""
    """The case's name, if it is another than its id."""
    a: Tally | None = None
    """The runs in A."""
    b: Tally | None = None
    """The runs in B."""
    why: str | None = None
    """Why the case is not compared."""
    answers: dict[SideName, Said] | UnsetType = UNSET
    """An answer of each side, if answers were asked for."""

    @property
    def is_compared(self) -> bool:
        """True if both sides have judged runs of the same case."""
        return self.difference is not None

    @property
    def sides_in_error(self) -> list[SideName]:
        """The sides on which some run came to no verdict."""
        sides: tuple[tuple[SideName, Tally | None], ...] = (("A", self.a), ("B", self.b))
        return [side for side, tally in sides if tally is not None and tally.errors]


class OverallComparison(Struct, kw_only=True, forbid_unknown_fields=True, rename={"kind": "class"}):
    """All compared cases together."""

    kind: Class
    """The class by the overall test alone."""
    observed: Observed | None
    """What was observed; None if no case is compared."""
    difference: float | None
    """The mean difference of the cases' pass rates."""
    interval: Limits | None
    """The 95% interval of the difference; None if no case is compared."""
    p_value: float | None
    """The sign-flip test over cases; None if no case is compared."""
    cases: int = 0
    """How many cases are compared."""
    different: int = 0
    """How many of them have different rates."""
    non_inferior: bool | None = None
    """Whether B is shown to be worse than A by less than the margin; None without a margin."""


class ColumnComparison(Struct, kw_only=True, forbid_unknown_fields=True):
    """An agent of a run, compared with the first agent of the run."""

    agent: str
    """The agent's name."""
    overall: OverallComparison
    """All cases together. `p_value` and `class` are corrected for how many agents are compared with the first."""
    regressed: int
    """Cases that are worse than with the first agent."""
    improved: int
    """Cases that are better."""


class FigureComparison(Struct, kw_only=True, forbid_unknown_fields=True):
    """A figure of the runs (a duration, tokens, a cost, a score) in A and in B, over the cases that have it."""

    name: str
    """The figure's name."""
    cases: int
    """How many cases have the figure on both sides."""
    a: float
    """The median over cases in A."""
    b: float
    """The median over cases in B."""
    scale: Literal["percent", "difference"]
    """Whether `shift` is in percent of A, or in the figure's own unit: where a value is 0 or negative."""
    shift: float
    """How much higher the figure is in B, typically (Hodges and Lehmann)."""
    interval: Limits | None
    """The 95% interval of the shift; None below 6 cases."""
    p_value: float
    """Wilcoxon's signed-rank test, of this figure by itself."""


class Comparison(Struct, kw_only=True, forbid_unknown_fields=True):
    """What got better and worse from A to B."""

    overall: OverallComparison
    """All cases together."""
    regressed: int
    """Cases that regressed."""
    improved: int
    """Cases that improved."""
    cases: list[CaseComparison]
    """The cases, in the order of B's files; those that only A has come last."""
    a: Side
    """The earlier run."""
    b: Side
    """The later run."""
    margin: float | None = None
    """The margin, in percentage points, within which rates are the same."""
    figures: list[FigureComparison] = field(default_factory=list)
    """Durations, tokens, costs and scores."""
    notes: list[str] = field(default_factory=list)
    """What was not compared, and what to be careful about."""

    def of_class(self, kind: CaseClass) -> list[CaseComparison]:
        """The cases of a class."""
        return [case for case in self.cases if case.kind == kind]

    def shortened(self) -> "Comparison":
        """The comparison without the cases that are the same, for reports on a run."""
        return replace(self, cases=[case for case in self.cases if case.kind != "same" or case.sides_in_error])

    @property
    def in_error(self) -> list[CaseComparison]:
        """The cases of which some run came to no verdict, on either side."""
        return [case for case in self.cases if case.sides_in_error and case.kind != "quarantined"]

    @property
    def has_regressed(self) -> bool:
        """True if the cases together, or one of them, are shown to be worse."""
        return self.overall.kind == "regressed" or self.regressed > 0

    @property
    def is_observed_worse(self) -> bool:
        """True if the cases together, or one of them, passed less often, by chance or not."""
        return self.overall.observed == "worse" or any(case.observed == "worse" for case in self.cases)

    def exit_code(self, fail_on: FailOn = "regression") -> int:
        """The exit code of a command that is to fail on a regression, or on anything that was observed to be worse."""
        if self.is_observed_worse if fail_on == "observed" else self.has_regressed:
            return FAILED
        if not self.overall.cases:
            return UNUSABLE
        if self.in_error:
            return INCOMPLETE
        return INCONCLUSIVE if self.overall.non_inferior is False else PASSED


def combined_exit_code(own: int, comparison: int) -> int:
    """The exit code of a run and of its comparison with a baseline: that of the run, unless the other is graver."""
    if own in (PASSED, INCONCLUSIVE):
        return comparison or own
    return FAILED if own == INCOMPLETE and comparison == FAILED else own
