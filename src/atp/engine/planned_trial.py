"""A trial of a plan, as it is handed to who runs it."""

from typing import Any

from msgspec.structs import replace

from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.case_source import CaseSource
from atp.suite.case import Mode
from atp.suite.result import StoppedBy, TrialRef


class Trial(TrialRef, kw_only=True):
    """A trial that is to be run: which one it is, and what running it takes."""

    tested: AgentUnderTest
    source: CaseSource
    limits: dict[str, Any]
    """The limits that the case sets, its suite's included."""
    mode: Mode
    """How the conversation with the agent is led."""
    has_snapshots: bool
    """True if the case compares with golden files."""
    timeout: float
    """Seconds that it may take."""
    context: dict[str, Any]
    """The identity and test environment of the trial."""
    before: "Trial | None" = None
    """The last case that is replayed before this trial; it has the earlier ones in its own `before`."""
    is_before: bool = False
    """True if other cases continue from the snapshot of this trial."""

    recorded_runs: int = 0
    """With `--runs auto`, of a trial that is judged again: how many runs were recorded. There are no further ones."""
    recorded_stop: StoppedBy | None = None
    """What stopped the recorded run before the case was decided, if anything did."""

    def of_run(self, run: int) -> "Trial":
        """The trial of another run; this one is of the first."""
        if run == 1:
            return self
        return replace(self, key=f"{self.key.rpartition('-')[0]}-{run}", run=run, is_before=False)
