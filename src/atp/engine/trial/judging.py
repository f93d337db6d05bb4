"""Judges a trial: what the agent said and did is checked, scored, and becomes the `Ending` of the trial.

A trial that runs is judged here, and so is the recorded conversation of an earlier run.
"""

import asyncio
import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from atp.agents.adapter import AgentError
from atp.agents.running import START_LIMIT
from atp.base.durations import duration, milliseconds_since
from atp.base.secrets import Secrets
from atp.checks.case_checks import check_case
from atp.checks.evidence import Evidence, Workspace
from atp.checks.limits import (
    LARGER,
    disagreements,
    no_actions_warnings,
    passed_limits,
    unjudged_limits,
    unreported_limit_warnings,
)
from atp.engine.planned_trial import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.befores import Snapshot
from atp.engine.trial.conversation import LimitExceeded
from atp.engine.trial.deadline import Deadline
from atp.engine.trial.ending import Actor, Ending, conclude, ending_of, out_of_time
from atp.models.calls import CallLog, noting_calls
from atp.suite.metrics import collect_metrics
from atp.suite.result import NO_ASSERTIONS, Asker, Transcript, TrialResult, Verdict

if TYPE_CHECKING:
    from atp.engine.trial.dialogue import Dialogue

Record = TypeVar("Record", bound=Struct)


class TimeUp(Exception):
    """The time was up before the event loop could say so."""


class JudgedTrial(ABC):
    """A trial whose conversation is judged, wherever the conversation comes from."""

    def __init__(
        self, trial: Trial, result: TrialResult, context: RunContext, start: Snapshot | None, workspace: Workspace
    ) -> None:
        """`start` is the snapshot of befores."""
        self._trial = trial
        self._result = result
        self._context = context
        self._start = start
        self._started_at = time.perf_counter()
        self._actor: Actor = "agent"
        self._workspace = workspace
        self._calls = CallLog(self._asker)
        self._calls.start(result.model_calls, time.monotonic())
        self.snapshot: Snapshot | None = None
        """What the trial has left, if others are to go on from it and it passed."""

    @property
    def duration_ms(self) -> float:
        """How long the trial has taken since the agent could be asked."""
        return milliseconds_since(self._started_at)

    async def run(self, deadline: Deadline) -> None:
        """Run the trial to its end, whatever happens in it. Raises only our own `CancelledError`."""
        try:
            with noting_calls(self._calls):
                await self._run(deadline)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            self._end_with(error)

    @abstractmethod
    async def _run(self, deadline: Deadline) -> None:
        """Have the conversation and judge it with `_check`. What is raised ends the trial."""

    @abstractmethod
    async def clean_up(self) -> None:
        """Release what the trial has used, once its result is known."""

    def _set_actor(self, actor: Actor) -> None:
        self._actor = actor

    def _asker(self) -> tuple[Asker, int]:
        """Who asks a model at the moment, and in which turn."""
        turn = len(self._result.transcript.turns) + (self._start.turns if self._start is not None else 0)
        match self._actor:
            case "judge":
                return "judge", turn
            case "simulator" | "test" as asker:
                return asker, turn + 1
        return "agent", turn + 1

    @property
    def _acted_before(self) -> bool:
        """True if the agent reported tool calls, events or steps in a before."""
        return self._start is not None and self._start.seen.tells_of_actions

    def _evidence(self) -> Evidence:
        """All that the checks may look at, and the judges if any case of the suite needs one."""
        trial, context, start = self._trial, self._context, self._start
        folders = (trial.tested.base, trial.source.folder, context.root)
        evidence = self._new_evidence(trial.case, self._result.transcript, self._workspace, folders, trial.context)
        if trial.source.survey.deciders:
            evidence.judge = context.roles.judges(trial.source, trial.run, self._result)
        if trial.has_snapshots:
            evidence.golden_files = context.golden_files(trial)
        if start is not None:
            evidence.earlier_gap = start.gap
            if not trial.case.says_nothing:  # else its transcript has that already
                evidence.earlier = start.seen
        return evidence

    def _new_evidence(self, *parts: Any) -> Evidence:
        return Evidence(*parts)

    async def _check(self, dialogue: "Dialogue | None" = None, exceeded: LimitExceeded | None = None) -> None:
        """Check everything that the case asks for, and score it.

        The checks are made on what there is, also if a limit that was `exceeded` has stopped the agent.
        """
        self._actor = "judge"
        case, result = self._trial.case, self._result
        hide_split_secrets(result.transcript, self._context.secrets)
        if exceeded is not None:
            self._end_with(exceeded)  # that stands, also if time is up while the rest is judged
        evidence = self._evidence()
        result.verdicts = await check_case(case, evidence)
        if evidence.golden_files is not None:
            result.golden_digest = evidence.golden_files.digest()
        if dialogue is not None:
            result.verdicts = [*dialogue.verdicts(), *result.verdicts]
        if self._trial.limits:
            result.verdicts.extend(unjudged_limits(case.limits, result.transcript))
            result.warnings.extend(unreported_limit_warnings(case.limits, result.transcript))
        if self._trial.source.survey.needs or self._trial.is_before:  # the survey has no befores
            result.warnings.extend([] if self._acted_before else no_actions_warnings(case, result.transcript))
        if result.transcript.events:
            result.warnings.extend(disagreements(result.transcript))
        if not result.verdicts:
            result.warnings.append(NO_ASSERTIONS)
        if exceeded is not None:
            self._end_with(exceeded)
        else:
            reason = dialogue.error if dialogue is not None else None
            self.end(conclude(case, result, reason, self._acted_before))

    def _end_with(self, error: BaseException) -> None:
        """End the trial because of an error, and blame whoever caused it."""
        if isinstance(error, TimeUp):
            self.time_out()
            return
        if isinstance(error, LimitExceeded):
            case, result = self._trial.case, self._result
            named = passed_limits(case.limits, result.transcript)
            result.verdicts.extend(named or [Verdict(type="limits", outcome="failed", message=str(error))])
            self.end(conclude(case, result, str(error), self._acted_before))
            return
        self.end(ending_of(error))
        if isinstance(error, AgentError) and error.raw is not None:
            self._result.transcript.logs.append(error.raw)

    def end(self, ending: Ending | None) -> None:
        """Set how the trial ended; None changes nothing."""
        if ending is not None:
            self._result.status, self._result.error, self._result.blame = ending
            if ending.status == "timeout":
                self._result.score = 0.0  # a limit that was passed, and nothing that could be checked

    def time_out(self) -> None:
        """End the trial because its time is up, and blame whoever it was waiting for."""
        limit = START_LIMIT if self._actor == "start" else self._trial.timeout
        ending = out_of_time(f"timeout after {duration(limit)}", self._actor)
        if self._actor in ("hook", "judge") and self._result.status != "passed":
            self._result.warnings.append(ending.error or "")  # the trial had failed already
        else:
            self.end(ending)

    def abandoned(self) -> TrialResult:
        """The result of a trial that does not end although its time is up."""
        self.time_out()
        self._result.duration_ms = self.duration_ms
        copied = _copy(self._result)
        collect_metrics(copied)
        return copied

    def copy_result(self) -> TrialResult:
        """Go on with a copy of the result, as it is now, and return the copy."""
        self._result = _copy(self._result)
        return self._result


def is_of_checks(warning: str) -> bool:
    """True for a warning that the checks, limits or judge of a trial gave: judged again, they give their own."""
    return warning == NO_ASSERTIONS or warning.startswith(("unobserved: ", "the judge ")) or warning.endswith(LARGER)


def _copy(result: TrialResult) -> TrialResult:
    """A copy that code which was left to itself can't add to. Of what it has, only calls of tools are changed later.

    Not a deep copy: an agent may have told of very many events, and other trials' deadlines would wait for it.
    """
    copied = _with_own_lists(result)
    copied.transcript = _with_own_lists(result.transcript)
    copied.transcript.tool_calls = [copy.copy(call) for call in result.transcript.tool_calls]
    copied.transcript.usage = copy.copy(result.transcript.usage)
    copied.role_usage = copy.copy(result.role_usage)
    return copied


def _with_own_lists(record: Record) -> Record:
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    return replace(record, **{name: copy.copy(one) for name, one in values.items() if isinstance(one, list | dict)})


def _is_cancelled() -> bool:
    """True if the current task is being cancelled: agents and hooks may raise `CancelledError` themselves."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def hide_split_secrets(transcript: Transcript, secrets: Secrets) -> None:
    """Mask secrets that an agent has sent piece by piece, in lines or in events that follow each other."""
    if not secrets:
        return
    if len(transcript.logs) > 1 and secrets.may_be_in("".join(transcript.logs)):
        transcript.logs[:] = secrets.blot_out_pieces(transcript.logs)
    if len(transcript.events) < 2:
        return
    places: dict[tuple[Any, ...], list[tuple[dict[Any, Any] | list[Any], Any]]] = {}
    for event in transcript.events:
        for path, holder, key in _texts(event.payload):
            places.setdefault((event.turn, event.type, *path), []).append((holder, key))
    for found in places.values():
        pieces = [holder[key] for holder, key in found]
        if len(pieces) > 1 and secrets.may_be_in("".join(pieces)):
            for (holder, key), text in zip(found, secrets.blot_out_pieces(pieces), strict=True):
                holder[key] = text


def _texts(value: dict[Any, Any] | list[Any], *above: Any) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """The texts in a value: the keys that lead to each, the object that holds it, and its key in that object."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, str):
            yield (*above, key), value, key
        elif isinstance(item, dict | list):
            yield from _texts(item, *above, key)
