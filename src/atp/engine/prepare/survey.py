"""What a pass over the cases finds out for the plan, so that they need not be gone through again."""

from collections.abc import Callable

from atp.base.diagnostics import Place
from atp.checks.case_checks import unjudgeable
from atp.checks.deciders import Decider, deciders
from atp.checks.observable import Need, needs
from atp.suite.case import Case
from atp.suite.result import Origin

Narrowed = tuple[str, ...] | None
"""The agents that a case is only for; none means all of the suite's."""
MOST_EXAMPLES = 20
"""How many cases with the same problem are worth naming."""


class Survey:
    """Counts and needs of the cases that are to run."""

    def __init__(self, wants: Callable[[Case], bool]) -> None:
        self._wants = wants
        self.count = 0
        """Cases to run."""
        self.skipped: list[Case] = []
        """Cases that their file leaves out."""
        self.variations: dict[int | None, int] = {}
        """How many variations there are in all, by the `runs` their case asks for."""
        self.needs: dict[tuple[Need, Narrowed], list[tuple[str, Place]]] = {}
        """What cases need to see of an agent, with examples of who needs it."""
        self.deciders: dict[Decider, list[tuple[str, Place]]] = {}
        """Who must decide beside exact rules, with examples of cases that need them."""
        self.simulators: dict[str | None, list[tuple[str, Place]]] = {}
        """Who plays the user, none being the run's own, with examples of their cases."""
        self.leading: set[int] = set()
        """Cases, by index, that others go on from."""
        self.varied = 0
        """Cases that ask for more variations of their prompt than they list."""
        self.narrowed = False
        """Some case names its agents."""
        self.hooks: set[str] = set()
        """The hooks that cases name."""
        self.doubtful: dict[tuple[str, Narrowed], Case] = {}
        """Cases with checks that can only be judged if something is found, a script for example; one for each."""
        self.workspaces: dict[str, list[tuple[str, Place]]] = {}
        """The folders that trials start with, with examples of cases that name them."""

    def see(self, case: Case) -> None:
        """Take a case into account."""
        if not self._wants(case):
            return
        if case.skip:
            self.skipped.append(case)
            return
        if case.only_before:
            return
        self.count += 1
        self.variations[case.runs] = self.variations.get(case.runs, 0) + how_many(case)
        self.narrowed = self.narrowed or case.agents is not None
        for reason in unjudgeable(case, ()):
            self.doubtful.setdefault((reason, _narrowed(case)), case)
        for need in needs(case):
            _example(self.needs.setdefault((need, _narrowed(case)), []), case)
        for decider in deciders(case):
            _example(self.deciders.setdefault(decider, []), case)
        if case.simulator is not None or case.checkpoints:
            named = case.simulator.use if case.simulator is not None else None
            _example(self.simulators.setdefault(named, []), case)
        self.leading.update(case.before_sequence)
        self.varied += is_varied(case)
        if case.workspace is not None:
            _example(self.workspaces.setdefault(case.workspace, []), case)
        for hook in (case.before_hook, case.after_hook):
            if hook is not None:
                self.hooks.add(hook)


def _narrowed(case: Case) -> Narrowed:
    return None if case.agents is None else tuple(case.agents)


def _example(examples: list[tuple[str, Place]], case: Case) -> None:
    if len(examples) < MOST_EXAMPLES:
        examples.append((case.id, case.place))


def listed(case: Case) -> list[tuple[list[str] | None, Origin | None]]:
    """The chains that a case runs with, as far as it lists them; a task and a message history have one variation."""
    if not case.chains or case.task is not None or case.messages:
        return [(None, None)]
    return [(chain, "listed") for chain in case.chains[: case.iterations]]


def is_varied(case: Case) -> bool:
    """Whether a case asks for more variations of its prompt than it lists."""
    return bool(case.chains) and case.iterations is not None and case.iterations > len(case.chains)


def how_many(case: Case) -> int:
    """The number of variations a case runs with."""
    if not case.chains:
        return 1
    return case.iterations if is_varied(case) and case.iterations else len(listed(case))
