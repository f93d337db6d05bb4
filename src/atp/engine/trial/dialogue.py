"""A dialogue with a simulated user, and the checkpoints it must reach: the dynamic mode of the JSONL format."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.engine.planned_trial import Trial
from atp.roles.simulator import SimulatedMessage, SimulatorTurn
from atp.suite.case import MOST_TURNS, Case, Checkpoint
from atp.suite.result import (
    CheckpointResult,
    SimulatedTurn,
    SimulatedUser,
    Transcript,
    TrialResult,
    Usage,
    Verdict,
)


class SaysNext(Protocol):
    """Who speaks to the agent: a simulator, or the recorded messages of a simulator in an earlier run."""

    async def next(self, turn: SimulatorTurn) -> SimulatedMessage:
        """The user's next message."""


class TurnByTurn(Protocol):
    """A conversation that is led turn by turn: with an agent, or one that an earlier run recorded."""

    transcript: Transcript
    """All that was said and seen so far."""
    session: str
    """The id of the conversation."""
    turns: int
    """How many turns there were, those of befores included."""

    async def say(self, messages: list[dict[str, Any]]) -> None:
        """Add messages, and the agent's answer."""


class Dialogue:
    """A dialogue: the simulator speaks, the agent answers, the checkpoints are checked."""

    def __init__(self, trial: Trial, conversation: TurnByTurn, simulator: SaysNext, result: TrialResult) -> None:
        self._trial = trial
        self._conversation = conversation
        self._simulator = simulator
        self._result = result
        self._most = trial.case.max_turns or MOST_TURNS
        self._reached: dict[str, Verdict] = {}
        self._early: set[str] = set()
        """Checkpoints that held when what must come before them was still missing."""
        self._nearest: dict[str, Verdict] = {}
        """The verdict that came nearest, on each checkpoint that was not reached."""
        self._unjudged: dict[str, str] = {}
        """Why checkpoints could not be judged on some turn."""
        self.error: str | None = None
        """Why the dialogue did not pass, in the words of the JSONL format."""
        self._simulator_usage = result.role_usage = Usage()
        self._user = result.simulated_user = simulated_user(trial.case)
        result.checkpoints = [_not_reached(one) for one in trial.case.checkpoints]

    async def run(
        self, evidence: Evidence, set_actor: Callable[[Literal["agent", "judge", "simulator"]], None]
    ) -> None:
        """Lead the dialogue to its end. `set_actor` is called with whoever has to act next."""
        case = self._trial.case
        while True:
            achieved = False
            if self._conversation.turns or not case.messages:
                set_actor("simulator")
                says = await self._ask_simulator()
                achieved = says.goal_achieved
                if not says.input:
                    self._ended(achieved=True)
                    return
                messages: list[dict[str, Any]] = [{"role": "user", "content": says.input}]
            else:
                messages = [message.wire() for message in case.messages]
            set_actor("agent")
            await self._conversation.say(messages)
            set_actor("judge")
            await self._check_checkpoints(evidence.of_turn(self._conversation.turns))
            if self._is_over(achieved):
                self._ended(achieved)
                return

    async def _ask_simulator(self) -> SimulatedMessage:
        options, metadata = _simulator_options(self._trial.case)
        says = await self._simulator.next(
            SimulatorTurn(
                persona=self._user.persona,
                goal=self._user.goal,
                metadata=metadata,
                conversation=list(self._conversation.transcript.messages),
                turn_number=self._conversation.turns + 1,
                max_turns=self._most,
                options=options,
                session=self._conversation.session,
                run=self._trial.run,
            )
        )
        self._simulator_usage.add(says.usage)
        turn = self._conversation.turns + 1
        self._user.turns.append(SimulatedTurn(turn=turn, reasoning=says.reasoning, goal_achieved=says.goal_achieved))
        return says

    async def _check_checkpoints(self, turn: Evidence) -> None:
        """Find the checkpoints that this turn reaches."""
        held: dict[str, tuple[Checkpoint, Verdict]] = {}
        for point in self._trial.case.checkpoints:
            if point.id in self._reached:
                continue
            verdict = await run_check(point.assertion, turn)
            if verdict.outcome == "unjudged":
                self._unjudged[point.id] = verdict.message
            elif verdict.passed:
                held[point.id] = point, verdict
            elif point.id not in self._nearest or _nearness(verdict) >= _nearness(self._nearest[point.id]):
                verdict.where = f"turn {turn.turn}"
                self._nearest[point.id] = verdict
        # One may be reached in the same turn as those that must come before it, in whatever order they are listed.
        while found := [name for name, (point, _) in held.items() if self._reached.keys() >= set(point.after)]:
            for name in found:
                self._reached[name] = held.pop(name)[1]
        self._early.update(held)
        for result in self._result.checkpoints:
            if result.id in self._reached and result.reached_at_turn is None:
                result.reached_at_turn = turn.turn

    def _is_over(self, achieved: bool) -> bool:
        points = self._trial.case.checkpoints
        wanted = [one.id for one in points if one.required] or [one.id for one in points]
        all_reached = bool(wanted) and self._reached.keys() >= set(wanted)
        return all_reached or achieved or self._conversation.turns >= self._most

    def _missing(self) -> list[Checkpoint]:
        return [one for one in self._trial.case.checkpoints if one.required and one.id not in self._reached]

    def _came_early(self, point: Checkpoint) -> bool:
        """True if the checkpoint held only before those that must come first were reached."""
        return point.id in self._early and self._reached.keys() >= set(point.after)

    def _ended(self, achieved: bool) -> None:
        missing = [one.id for one in self._missing()]
        early = next((one.id for one in self._missing() if self._came_early(one)), None)
        if early is not None:
            self.error = f"checkpoint {early} failed"
        elif missing and achieved:
            self.error = f"missing checkpoints: {', '.join(missing)}"
        elif missing or not (achieved or self._reached):
            # Where none had to be reached, one that was is all that shows that anything came of the dialogue.
            self.error = f"max turns ({self._most}) exceeded"

    def cut_short(self, why: str) -> None:
        """Leave unjudged what further turns would have decided: for this reason, there are none."""
        self.error = why
        left = [one.id for one in self._trial.case.checkpoints if one.id not in self._reached]
        self._unjudged.update(dict.fromkeys(left or [""], why))

    def verdicts(self) -> list[Verdict]:
        """A verdict on each checkpoint that was reached or had to be, and on the dialogue if it has none."""
        found = [self._verdict(one) for one in self._trial.case.checkpoints if one.required or one.id in self._reached]
        if self.error is not None and all(one.outcome == "passed" for one in found):
            verdict = Verdict(type="dialogue", outcome="failed", message=self.error)
            if self._unjudged:  # one of them may have been reached
                why = next(iter(self._unjudged.values()))
                verdict.outcome, verdict.message = "unjudged", f"{self.error}, but not every turn was judged: {why}"
            found.append(verdict)
        return found

    def _verdict(self, point: Checkpoint) -> Verdict:
        verdict = self._reached.get(point.id)
        if verdict is None and point.id in self._unjudged:
            verdict = Verdict(type="", outcome="unjudged", message=self._unjudged[point.id])
        elif verdict is None and point.id in self._early and (open_ := self._unjudged_before(point)) is not None:
            why = f"checkpoint `{point.id}` held, but whether `{open_}` was reached before is unjudged"
            verdict = Verdict(type="", outcome="unjudged", message=f"{why}: {self._unjudged[open_]}")
        elif verdict is None:
            verdict = Verdict(type="", outcome="failed", message=self._why_missing(point))
            if point.id in self._nearest and point.id not in self._early:
                verdict.parts = [self._nearest[point.id]]
        verdict.type, verdict.name = "checkpoint", point.id
        verdict.weight, verdict.critical = point.assertion.weight, point.assertion.critical
        return verdict

    def _unjudged_before(self, point: Checkpoint) -> str | None:
        """A checkpoint that must come before this one and could not be judged on some turn, if there is one."""
        points = {one.id: one for one in self._trial.case.checkpoints}
        waiting = list(point.after)
        for name in waiting:  # grows; the loader refuses circles
            if name in self._unjudged:
                return name
            waiting += points[name].after
        return None

    def _why_missing(self, point: Checkpoint) -> str:
        if self._came_early(point):
            return f"checkpoint `{point.id}` held only before {', '.join(point.after)} was reached"
        if point.id in self._early:
            missing = [name for name in point.after if name not in self._reached]
            return f"checkpoint `{point.id}` held, but {', '.join(missing)}, which must come first, was not reached"
        return f"checkpoint `{point.id}` was not reached: {point.description or 'its assertion never held'}"


def _not_reached(point: Checkpoint) -> CheckpointResult:
    """The result of a checkpoint before the dialogue begins."""
    return CheckpointResult(
        id=point.id,
        required=point.required,
        description=point.description,
        after=list(point.after),
        assertion=point.assertion.model_dump(mode="json", exclude_unset=True),
    )


def _simulator_options(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options for the simulator, and the metadata among them, which say who the user is."""
    simulator = case.simulator
    options = simulator.options.model_dump(exclude_defaults=True) if simulator and simulator.options else {}
    return options, options.pop("metadata", {})


def simulated_user(case: Case) -> SimulatedUser:
    """Who the agent talks to in the dialogue of a case; nothing is said yet."""
    _, metadata = _simulator_options(case)
    return SimulatedUser(persona=str(metadata.get("persona", "")), goal=str(metadata.get("goal", "")))


def _nearness(verdict: Verdict) -> float:
    """How near an assertion came to holding, from 0 to 1, as far as its verdict tells."""
    if verdict.score is not None:
        return verdict.score
    return sum(part.passed for part in verdict.parts) / len(verdict.parts) if verdict.parts else 0.0
