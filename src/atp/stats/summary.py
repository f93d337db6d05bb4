"""Counts the cases of a run as they end."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from atp.base.exit_codes import FAILED, INCOMPLETE, INCONCLUSIVE, INTERRUPTED, PASSED, UNUSABLE
from atp.stats.case_counts import case_counts
from atp.stats.run_numbers import RunNumbers
from atp.stats.stability import blames_agent
from atp.stats.suite_gates import GateResult
from atp.suite.result import CaseResult

_NOT_PASSED = ("failed", "errors", "blocked", "cancelled", "inconclusive")
"""The counts of cases that did not pass."""


class Summary:
    """The counts of a run. A case counts once per agent, however many trials it has."""

    def __init__(self) -> None:
        self.passed = 0
        """Cases that passed."""
        self.failed = 0
        """Cases that failed, timed out, or ended in an error of the agent."""
        self.errors = 0
        """Cases that ended in any other error."""
        self.blocked = 0
        """Cases whose before did not pass."""
        self.cancelled = 0
        """Cases that were stopped."""
        self.inconclusive = 0
        """Cases whose gate could be shown neither reached nor missed."""
        self.skipped = 0
        """Cases that were left out."""
        self.skipped_by_test = 0
        """Skipped cases that were planned: the test itself asked to be left out, when it ran."""
        self.quarantined = 0
        """Cases that did not pass and are in quarantine. They are in the counts above, but not in the exit code."""
        self._excused: Counter[str] = Counter()
        """By the count above that they are in: the cases in quarantine that did not pass."""
        self.repeated = 0
        """Cases with more than one trial. Only of those it can be said whether they are stable."""
        self.stable = 0
        """Repeated cases of which every trial that was planned passed."""
        self.variations = 0
        """Variations of the prompt, of all cases that ran; a case without any is one."""
        self.runs = 0
        """Trials, of all cases that ran."""
        self.passed_runs = 0
        """Trials that passed."""
        self.missing_runs = 0
        """Trials that a stop left out, of cases that ran otherwise."""
        self.expected_wrong = 0.0
        """How many decisions of gates with a confidence are to be expected to be wrong, at most."""
        self.adaptive = 0
        """Cases whose number of runs was not fixed beforehand."""
        self._rates = 0.0
        """The sum of the pass rates of cases; of a case whose number of runs was not fixed, its estimate."""
        self.numbers = RunNumbers()
        """The numbers that figures of groups of cases, and gates, are made of."""

    def add_case(self, case: CaseResult) -> None:
        """Count a case whose trials have ended."""
        if case.status == "skipped":
            self.skipped += 1
            self.skipped_by_test += 1
            return
        counts = case_counts(case)
        self.numbers.add(case, counts)
        runs, passed, missing = len(case.counted), counts.total.passed, case.missing
        self.variations += case.variations
        self.runs += runs
        self.passed_runs += passed
        self.missing_runs += missing
        self.adaptive += case.min_runs > 0
        if case.decision is not None:
            self.expected_wrong += case.gate.alpha
        if case.estimate is not None:
            self._rates += case.estimate
        elif runs + missing:
            self._rates += passed / (runs + missing)
        if case.repeated:
            self.repeated += 1
            self.stable += passed == runs + missing
        match case.status:
            case "passed" | "blocked" | "cancelled" | "inconclusive":
                name: str = case.status
            case "error" if not any(blames_agent(trial) for trial in case.trials):
                name = "errors"
            case _:
                name = "failed"
        setattr(self, name, getattr(self, name) + 1)
        if case.excused:
            self.quarantined += 1
            self._excused[name] += 1

    def add_skipped(self) -> None:
        """Count a case that its file leaves out."""
        self.skipped += 1

    @property
    def ran(self) -> int:
        """Cases that were not left out."""
        return self.passed + self.failed + self.errors + self.blocked + self.cancelled + self.inconclusive

    def counts(self) -> dict[str, Any]:
        """The summary in the words of the JSONL test package. `total` is the sum of the seven counts after it.

        `planned_runs` is there only if a stop left some trials of the cases out: they count as not passed;
        `expected_wrong_decisions` only if cases have gates with a confidence.
        """
        made = {
            "total": self.ran + self.skipped,
            "passed": self.passed,
            "failed": self.failed,
            "errors": self.errors,
            "blocked": self.blocked,
            "cancelled": self.cancelled,
            "inconclusive": self.inconclusive,
            "skipped": self.skipped,
            "skipped_by_test": self.skipped_by_test,
            "quarantined": self.quarantined,
            "total_cases": self.ran,
            "total_variations": self.variations,
            "total_runs": self.runs,
            "passed_runs": self.passed_runs,
            "overall_pass_rate": self.overall_pass_rate,
            "stable_cases": self.stable,
            "unstable_cases": self.repeated - self.stable,
        }
        if self.expected_wrong:
            made["expected_wrong_decisions"] = round(self.expected_wrong, 3)
        if self.missing_runs:
            made["planned_runs"] = self.runs + self.missing_runs
        return made

    @property
    def overall_pass_rate(self) -> float:
        """The share of trials that passed, in percent. Where the numbers of runs were not fixed, the mean over cases.

        Trials are not pooled then: a case that is hard to decide on has more of them than others.
        """
        if self.adaptive:
            return min(round(100 * self._rates / self.ran, 1), 99.9 if self.passed_runs < self.runs else 100.0)
        return percent(self.passed_runs, self.runs + self.missing_runs)

    def exit_code(
        self,
        *,
        stopped: bool = False,
        unwritten: bool = False,
        interrupted: bool = False,
        gates: Iterable[GateResult] = (),
    ) -> int:
        """The exit code of the process.

        `stopped`: a budget ran out, or a hook of the whole run failed; `unwritten`: a report could not be written.
        """
        outcomes = {gate.outcome for gate in gates}
        if interrupted:
            return INTERRUPTED
        left = {name: getattr(self, name) - self._excused[name] for name in _NOT_PASSED}
        if left["failed"] or "failed" in outcomes:
            return FAILED
        if left["errors"] or left["blocked"] or left["cancelled"] or stopped or unwritten:
            return INCOMPLETE
        if left["inconclusive"] or "inconclusive" in outcomes:
            return INCONCLUSIVE
        return PASSED if self.passed or self.quarantined else UNUSABLE


def percent(part: int, whole: int) -> float:
    """A share in percent with one decimal, but never rounded up to a whole number that was not reached."""
    if not whole:
        return 0.0
    if part == whole:
        return 100.0
    exact = 100 * part / whole
    rounded = round(exact, 1)
    return round(rounded - 0.1, 1) if rounded > exact and rounded.is_integer() else rounded
