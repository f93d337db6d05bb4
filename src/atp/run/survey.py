"""What a pass over the cases finds out for the plan, so that they need not be gone through again."""

from collections.abc import Callable

from atp.checks.observable import Need, needs
from atp.suite.case import Case
from atp.suite.record import Place

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
        self.needs: dict[Need, list[tuple[str, Place]]] = {}
        """What cases need to see of an agent, with examples of who needs it."""
        self.dialogues: list[tuple[str, Place]] = []
        """Cases with a simulated user."""
        self.befores: list[tuple[str, Place]] = []
        """Cases that others come before."""
        self.generated: list[tuple[str, Place]] = []
        """Cases that ask for more variations of their prompt than they list."""
        self.narrowed = False
        """Some case names its agents."""
        self.hooks: set[str] = set()
        """The hooks that cases name."""
        self.workspaces: dict[str, list[tuple[str, Place]]] = {}
        """The folders that trials start with, with examples of cases that name them."""

    def see(self, case: Case) -> None:
        """Take a case into account."""
        if not self._wants(case):
            return
        if case.skip:
            self.skipped.append(case)
            return
        self.count += 1
        self.variations[case.runs] = self.variations.get(case.runs, 0) + len(variations(case))
        self.narrowed = self.narrowed or case.agents is not None
        for need in needs(case):
            _example(self.needs.setdefault(need, []), case)
        if case.simulator is not None or case.checkpoints:
            _example(self.dialogues, case)
        if case.before_sequence:
            _example(self.befores, case)
        if case.iterations is not None and case.iterations > len(case.chains):
            _example(self.generated, case)
        if case.workspace is not None:
            _example(self.workspaces.setdefault(case.workspace, []), case)
        for hook in (case.before_hook, case.after_hook):
            if hook is not None:
                self.hooks.add(hook)


def _example(examples: list[tuple[str, Place]], case: Case) -> None:
    if len(examples) < MOST_EXAMPLES:
        examples.append((case.id, case.place))


def variations(case: Case) -> list[list[str] | None]:
    """The chains that a case runs with; a task and a message history have one variation."""
    if not case.chains or case.task is not None or case.messages:
        return [None]
    listed: list[list[str] | None] = list(case.chains)
    return listed[: case.iterations] if case.iterations else listed
