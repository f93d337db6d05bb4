"""How a trial ends that does not pass: the status, the reason, and who is to blame."""

from typing import Literal, NamedTuple

from atp.agents.adapter import AgentError, AgentTimeout
from atp.engine.trial.hooks import HookError
from atp.engine.trial.workspace import WorkspaceError
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.ask import RoleError
from atp.stats.score import score
from atp.suite.case import Case
from atp.suite.result import Blame, Outcome, Status, TrialResult, Verdict

Actor = Literal["agent", "judge", "simulator", "hook", "test", "start", "nobody"]
"""Who a trial is waiting for. Whoever it is when the time is up is to blame."""


class Ending(NamedTuple):
    """How a trial ended that did not pass."""

    status: Status
    error: str | None
    blame: Blame | None = None


def conclude(case: Case, result: TrialResult, reason: str | None = None, acted_before: bool = False) -> Ending | None:
    """Score the verdicts. A failed check makes the trial failed, also beside an unjudged one, which is an error.

    `reason` says why the trial failed, if it did, better than its first failed check. `acted_before`: the agent
    reported tool calls, events or steps in a before.
    """
    failed, unjudged = _first("failed", result.verdicts), _first("unjudged", result.verdicts)
    if unjudged is None or failed is not None:
        scored = score(result, case, acted_before)
        result.score, result.dimensions = scored.value, scored.dimensions
        result.left_out = scored.left_out
    if failed is not None:
        return Ending("failed", reason or failed.message)
    return Ending("error", unjudged.message, "judge") if unjudged is not None else None


def _first(outcome: Outcome, verdicts: list[Verdict]) -> Verdict | None:
    for verdict in verdicts:
        if verdict.outcome == outcome:
            return verdict
    return None


def ending_of(error: BaseException) -> Ending:
    """What an error means for the trial that raised it."""
    match error:
        case AgentTimeout():
            return Ending("timeout", str(error))
        case AgentError():
            text = str(error)
            needs_prefix = error.blame == "agent" and not text.startswith("agent error")
            return Ending("error", f"agent error: {text}" if needs_prefix else text, error.blame)
        case RoleError():  # a judge's error makes a check unjudged, so this one is the simulator's
            return Ending("error", f"simulator error: {error}", "simulator")
        case HookError() | WorkspaceError() | CassetteError() | CassetteMiss():
            return Ending("error", str(error), "environment")
    # A bug of ATP, or something that only looks like an exit.
    return Ending("error", f"internal error: {type(error).__name__}: {error}", "internal")


def out_of_time(text: str, actor: Actor) -> Ending:
    """How a trial ends whose time is up while it is waiting for someone."""
    match actor:
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
        case "test":
            return Ending("error", f"{text} in the test itself", "environment")
