"""The cases of a suite, and what one pass over them tells the plan: counts, needs, judges, simulators."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from atp.base.diagnostics import Place
from atp.base.project import working_directory
from atp.checks.before_run import compiled_expectations, deciders, needs, pattern_mistakes, unjudgeable
from atp.loader.source import place_of
from atp.suite.assertion import Decider, Need
from atp.suite.case import Case
from atp.suite.result import Origin
from atp.suite.suite import Suite

Narrowed = tuple[str, ...] | None
"""The agents that a case is limited to; None means all agents of the suite."""
Variations = list[tuple[list[str] | None, Origin | None]]
"""The prompts of a case, each with where it comes from; no prompt for a task and a message history."""
MOST_EXAMPLES = 20
"""The most examples that a message names."""


class AskedGate(NamedTuple):
    """What a case and its suite say about a gate, and how many trials that is decided by."""

    pass_rate: float | None
    confidence: float | None
    margin: float | None
    runs: int | None
    """The runs of the case, if it says."""
    variations: int
    """How many trials a run has."""


class Survey:
    """Counts and needs of the cases that are to run, collected in one pass."""

    def __init__(self, wants: Callable[[Case], bool]) -> None:
        self._wants = wants
        self.count = 0
        """The number of cases to run."""
        self.skipped: list[Case] = []
        """Cases that the file marks as skipped."""
        self.variations: dict[int | None, int] = {}
        """The number of variations, by the `runs` of their case."""
        self.gates: dict[AskedGate, tuple[Case, int]] = {}
        """What cases say about their gates, each with the first case that says so and how many do."""
        self.longest_timeout = 0.0
        """The longest timeout that a case gives, befores included, in seconds."""
        self.needs_timeout = False
        """True if a case gives no timeout."""
        self.needs: dict[tuple[Need, Narrowed], list[tuple[str, Place]]] = {}
        """What an agent must be able to report, with examples of cases that need it."""
        self.deciders: dict[Decider, list[tuple[str, Place]]] = {}
        """The judges that are needed beside exact checks, with examples of cases that need them."""
        self.simulators: dict[str | None, list[tuple[str, Place]]] = {}
        """The simulators that cases name (None: the run's own), with examples of cases."""
        self.leading: set[int] = set()
        """The indexes of cases that are befores of others."""
        self.varied: list[tuple[str, Place]] = []
        """Examples of cases that ask for more variations than they list."""
        self.narrowed = False
        """True if a case is limited to some agents."""
        self.hooks: set[str] = set()
        """The hooks of cases."""
        self.doubtful: dict[tuple[str, Narrowed], Case] = {}
        """Reasons why a check may be impossible (a script that is missing), each with one case."""
        self.in_words: tuple[Case, int] | None = None
        """The first expectation that a judge decides: its case, and its place among the expectations."""
        self.pattern_mistakes: list[tuple[Case, int, str]] = []
        """Examples of cases with an expectation whose regular expression can't be compiled: its place, and why."""
        self.connectors: dict[str, list[tuple[str, Place]]] = {}
        """The connectors in the `options` of cases, with examples of cases that name them."""
        self.attachments: dict[str, list[tuple[str, Place]]] = {}
        """The files that messages of cases name, with examples of cases that name them."""
        self.workspaces: dict[str, list[tuple[str, Place]]] = {}
        """The workspace folders of cases, with examples of cases that name them."""

    def add(self, case: Case) -> None:
        """Count a case and what it needs."""
        if not self._wants(case):
            return
        if case.skip:
            self.skipped.append(case)
            return
        timeout = case.limits.given().get("timeout_seconds")
        if timeout is None:
            self.needs_timeout = True
        else:
            self.longest_timeout = max(self.longest_timeout, timeout)
        if case.only_before:
            return
        self.count += 1
        runs, variations = case.runs, how_many(case)
        self.variations[runs] = self.variations.get(runs, 0) + variations
        asked = AskedGate(case.pass_rate, case.confidence, case.margin, runs, variations)
        first, number = self.gates.get(asked, (case, 0))
        self.gates[asked] = (first, number + 1)
        self.narrowed = self.narrowed or case.agents is not None
        for need in needs(case):
            _example(self.needs.setdefault((need, _narrowed(case)), []), case)
        if case.expectations or any(one.needs_judge for one in case.asserted):
            self._add_judged(case)
        if case.simulator is not None or case.checkpoints:
            named = case.simulator.use if case.simulator is not None else None
            _example(self.simulators.setdefault(named, []), case)
        self.leading.update(case.before_sequence)
        if is_varied(case):
            _example(self.varied, case)
        self._add_names(case)

    def _add_judged(self, case: Case) -> None:
        """Collect what is known of the expectations and of the assertions that a judge decides."""
        for reason in unjudgeable(case, ()):
            self.doubtful.setdefault((reason, _narrowed(case)), case)
        if len(self.pattern_mistakes) < MOST_EXAMPLES:
            self.pattern_mistakes.extend((case, *mistake) for mistake in pattern_mistakes(case))
        if self.in_words is None and (judged := compiled_expectations(case)[1]):
            self.in_words = case, judged[0]
        for decider in deciders(case):
            _example(self.deciders.setdefault(decider, []), case)

    def _add_names(self, case: Case) -> None:
        """Collect what a case names outside of its file."""
        for message in case.messages:
            for name in message.files:
                _example(self.attachments.setdefault(name, []), case)
        if case.workspace is not None:
            _example(self.workspaces.setdefault(case.workspace, []), case)
        if case.options is not None and case.options.connector is not None:
            _example(self.connectors.setdefault(case.options.connector, []), case)
        for hook in (case.before_hook, case.after_hook):
            if hook is not None:
                self.hooks.add(hook)


def _narrowed(case: Case) -> Narrowed:
    return None if case.agents is None else tuple(case.agents)


def _example(examples: list[tuple[str, Place]], case: Case) -> None:
    if len(examples) < MOST_EXAMPLES:
        examples.append((case.id, case.place))


def listed(case: Case) -> Variations:
    """Return the chains that a case lists. A task and a message history have one variation."""
    if not case.chains or case.task is not None or case.messages:
        return [(None, None)]
    return [(chain, "listed") for chain in case.chains[: case.iterations]]


def is_varied(case: Case) -> bool:
    """True if a case asks for more variations than it lists."""
    return bool(case.chains) and case.iterations is not None and case.iterations > len(case.chains)


def how_many(case: Case) -> int:
    """Return the number of variations of a case."""
    if not case.chains:
        return 1
    return case.iterations if is_varied(case) and case.iterations else len(listed(case))


class CaseSource:
    """A suite whose cases can be iterated repeatedly, without all of them being in memory."""

    def __init__(self, suite: Suite, cases: Callable[[], Iterator[Case]], survey: Survey) -> None:
        self.suite = suite
        self.cases = cases
        self.survey = survey
        self.folder = Path(suite.path).resolve().parent if suite.path else working_directory()
        """The folder that relative paths in the file start from."""
        fixtures = self.folder / "fixtures"
        self.fixtures = fixtures if suite.path and fixtures.is_dir() else None
        """The folder that is copied into each workspace as `fixtures/`."""

    @cached_property
    def golden_folder(self) -> Path | None:
        """The folder of the golden files of the suite's snapshots. The plan asks for it, before anything runs."""
        from atp.checks.golden_files import golden_folder  # not for `atp validate`

        return golden_folder(self.suite.path)

    def expectation_place(self, case: Case, number: int) -> Place:
        """Where an expectation of a case stands, found by its words; if it is not found, the place of the case.

        Places of expectations are not kept, because they are needed only for mistakes.
        """
        words = [
            f"(?:{re.escape(one)}|{re.escape(json.dumps(one)[1:-1])})" for one in case.expectations[number].split()
        ]
        with suppress(OSError, UnicodeError):
            text = Path(self.suite.path or "").read_text("utf-8-sig")
            start = sum(len(line) + 1 for line in text.split("\n")[: max(case.place.line - 1, 0)])
            if found := re.compile(r"\s+".join(words)).search(text, start):
                return place_of(text, found.start())
        return case.place
