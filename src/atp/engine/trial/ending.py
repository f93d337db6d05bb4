"""How a trial ends when it doesn't pass, and who is to blame for that."""

from typing import Literal, NamedTuple

from atp.agents.adapter import AgentError, AgentTimeout
from atp.engine.trial.hooks import HookError
from atp.engine.trial.watch import LimitPassed
from atp.engine.trial.workspace import WorkspaceError
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.ask import RoleError
from atp.suite.result import Blame, Status

AtWork = Literal["agent", "judge", "simulator", "hook", "start", "nobody"]
"""Who a trial is waiting for: whoever it is when the time is up is to blame."""


class TimeUp(Exception):
    """The time was up before anybody could say so."""


class Ending(NamedTuple):
    """How a trial ended."""

    status: Status
    error: str | None
    blame: Blame | None = None


def ending_of(error: BaseException) -> Ending:
    """What an error that came out of a trial means for it."""
    match error:
        case LimitPassed():
            return Ending("failed", str(error))
        case AgentTimeout():
            return Ending("timeout", str(error))
        case AgentError():
            return Ending("error", _said(error), error.blame)
        case RoleError():  # a judge's makes a check unjudged, so it is the simulator's
            return Ending("error", f"simulator error: {error}", "simulator")
        case HookError() | WorkspaceError() | CassetteError() | CassetteMiss():
            return Ending("error", str(error), "environment")
    # Our own bug, or something that only looks like an exit.
    return Ending("error", f"internal error: {type(error).__name__}: {error}", "internal")


def _said(error: AgentError) -> str:
    text = str(error)
    return text if error.blame != "agent" or text.startswith("agent error") else f"agent error: {text}"


def out_of_time(text: str, at: AtWork) -> Ending:
    """The deadline ran out; who was at work then is to blame."""
    match at:
        case "agent":
            return Ending("timeout", text)
        case "start":
            return Ending("error", f"{text} while the agent was started", "environment")
        case "nobody":
            return Ending("error", f"{text} while waiting until it can be asked again", "environment")
        case "judge":
            return Ending("error", f"{text} while judging", "judge")
        case "simulator":
            return Ending("error", f"{text} while simulating", "simulator")
        case "hook":
            return Ending("error", f"{text} in a hook", "environment")
