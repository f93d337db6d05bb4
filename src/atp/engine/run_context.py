"""What all trials of a run share: where they work, what they are called, who helps them."""

import copy
import itertools
import secrets
from pathlib import Path

from atp.agents.adapter import AgentError
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Trial
from atp.engine.role_clients import RoleClients
from atp.engine.trial.conversation import Conversation
from atp.engine.trial.hooks import Hooks
from atp.engine.trial.snapshot import Snapshot, joined
from atp.engine.trial.workspace import Workspace
from atp.suite.result import TrialResult


class RunContext:
    """The grounds that trials are held on."""

    def __init__(self, work: Path, root: Path, hooks: Hooks, options: Options, roles: RoleClients) -> None:
        """`work` is the folder for their workspaces."""
        self.root = root
        """The project's root."""
        self.hooks = hooks
        """Python functions to be called before and after."""
        self.roles = roles
        """Those who judge and simulate."""
        self.retries = options.retries
        """How often to try again when the infrastructure fails."""
        self._work = work
        self._options = options
        self._count = _highest(work)
        self._run = secrets.token_hex(8)
        self._attempts = itertools.count(1)

    def new_task_id(self) -> str:
        """Fresh for each attempt, here and in every other run."""
        return f"trial-{self._run}-{next(self._attempts)}"

    def workspace(self, trial: Trial, start: Snapshot | None) -> Workspace:
        """A folder for one attempt, which goes on from what befores have left."""
        self._count += 1
        folder = trial.source.folder
        seed = folder / trial.case.workspace if trial.case.workspace else None
        kept = start.workspace if start is not None else None
        return Workspace(self._work, str(self._count), seed, trial.source.fixtures, kept)

    def keep(self, trial: Trial, start: Snapshot | None, conversation: Conversation, workspace: Workspace) -> Snapshot:
        """What a trial has left, for others to go on from."""
        self._count += 1
        transcript = conversation.transcript
        try:
            state = copy.deepcopy(conversation.state)
        except Exception as error:
            raise AgentError(f"the agent's state can't be copied: {type(error).__name__}: {error}") from error
        return Snapshot(
            messages=list(transcript.messages),
            turns=conversation.turns,
            state=state,
            workspace=workspace.keep(self._work / str(self._count)),
            seen=start.seen if trial.case.says_nothing and start else joined(start, transcript),
        )

    def keeps(self, result: TrialResult) -> bool:
        """Whether a trial's folder is to stay."""
        return self._options.keep_workspaces or (self._options.keep_failed and result.status != "passed")


def _highest(work: Path) -> int:
    """The highest number of a folder that an earlier part of the run has kept."""
    return max((int(one.name) for one in work.glob("*") if one.name.isdecimal()), default=0)
