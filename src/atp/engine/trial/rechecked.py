"""Judges the trials of an earlier run again: the conversation is taken from its journal, and no agent is called."""

import asyncio
from typing import Any, NamedTuple

from msgspec.structs import replace

from atp.base.diagnostics import LoadError
from atp.base.durations import duration
from atp.checks.before_run import deciders
from atp.checks.evidence import Evidence, NotKept
from atp.checks.limits import overruns
from atp.checks.recorded_evidence import RecordedEvidence
from atp.engine.planned_trial import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.befores import Snapshot, gap_so_far, seen_so_far
from atp.engine.trial.conversation import LimitExceeded
from atp.engine.trial.deadline import Deadline
from atp.engine.trial.dialogue import Dialogue, simulated_user
from atp.engine.trial.ending import Ending
from atp.engine.trial.judging import JudgedTrial, TimeUp, is_of_checks
from atp.engine.trial.recorded import (
    NoMoreTurns,
    OtherConversation,
    RecordedConversation,
    RecordedSimulator,
    RecordedSnapshot,
    RecordedWorkspace,
    is_masked,
    recorded_input_data,
)
from atp.engine.trial.trial import Abandon, TrialRunner
from atp.journal.recorded_trials import CasePlace, RecordedTrials
from atp.suite.result import Rejudged, TrialResult, Verdict

STAY = frozenset({"timeout", "error", "blocked", "cancelled", "skipped"})
"""Statuses of trials without a whole conversation. Nothing can be judged, and they stay what they were."""


class RecheckRunner(TrialRunner):
    """Judges the trials of a plan on the conversations of an earlier run, one call each."""

    def __init__(self, context: RunContext, recorded: RecordedTrials, judgings: int) -> None:
        """`judgings` is how often each conversation is judged."""
        super().__init__(context)
        self._recorded = recorded
        self._judgings = judgings
        self._offsets: dict[str, int | None] = {}
        """By key: where the results of befores stand that are not their case's own first trial."""

    async def run(self, trial: Trial, abandon: Abandon) -> TrialResult:
        """The result of a trial, judged again."""
        return await super().run(self._with_recorded_befores(trial), abandon)

    def _place(self, trial: Trial) -> CasePlace:
        return self._recorded.place(trial.file, trial.agent, trial.case.id)

    def _offset(self, trial: Trial) -> int | None:
        if trial.key in self._offsets:
            return self._offsets[trial.key]
        return self._recorded.offset(self._place(trial), trial.variation, trial.run)

    def _with_recorded_befores(self, trial: Trial) -> Trial:
        """The trial with befores that are the recorded ones: a run that was resumed may have replayed them again."""
        if trial.before is None:
            return trial
        before = trial.before
        try:
            offset = self._offset(trial)
            result = self._recorded.read(offset) if offset is not None else None
            if result is None or _stays(result):
                return replace(trial, before=None)
            transcript = result.transcript
            found = self._recorded.before(self._place(before), transcript.messages[: transcript.inherited])
        except LoadError:  # the journal was cut or deleted: `_new_trial` says so
            return replace(trial, before=None)
        if found != self._recorded.offset(self._place(before), 0, 1):
            before = replace(before, key=f"{before.key}-{found}")
            self._offsets[before.key] = found
        return replace(trial, before=self._with_recorded_befores(before))

    def _time_limit(self, trial: Trial) -> float:
        return trial.timeout * self._judgings

    def _new_trial(self, trial: Trial, result: TrialResult, start: Snapshot | None) -> JudgedTrial:
        offset, recorded, lost = self._offset(trial), None, "its journal has no such conversation"
        try:
            recorded = self._recorded.read(offset) if offset is not None else None
        except LoadError as error:
            lost = error.diagnostics[0].message
        about = self._recorded.about(self._place(trial))
        record = Recorded(self._recorded, recorded, about.input_data if about is not None else None, lost)
        return RecheckedTrial(trial, result, self._context, start, record, judgings=self._judgings)


def _stays(result: TrialResult) -> bool:
    """True for a result without a whole conversation. A judge's failure leaves the conversation whole."""
    return result.status in STAY and not (result.status == "error" and result.blame == "judge")


class Recorded(NamedTuple):
    """What the journal of an earlier run says of a trial."""

    run: RecordedTrials
    result: TrialResult | None
    """Nothing if the run has no such trial."""
    input_data: dict[str, Any] | None
    """What the agent was given beside the messages."""
    lost: str
    """Why there is no result, if there is none."""


class RecheckedTrial(JudgedTrial):
    """A trial of an earlier run that is judged again."""

    _workspace: RecordedWorkspace

    def __init__(
        self,
        trial: Trial,
        result: TrialResult,
        context: RunContext,
        start: Snapshot | None,
        record: Recorded,
        *,
        judgings: int = 1,
    ) -> None:
        """`judgings` is how often the conversation is judged."""
        recorded = record.result
        super().__init__(trial, result, context, start, RecordedWorkspace(trial, recorded, record.run.folder, start))
        self._workspace.restore_to(*context.restored_folder())
        self._workspace.is_final = self._is_final
        self._record = record
        self._recorded = recorded
        self._judgings = judgings
        self._conversation: RecordedConversation | None = None
        if recorded is not None:
            result.agent_digest = recorded.agent_digest
            result.started_at, result.attempt = recorded.started_at, recorded.attempt
            result.retries = list(recorded.retries)
            result.model_calls.extend(one for one in recorded.model_calls if one.role != "judge")
            result.masked, result.links = is_masked(recorded), recorded.links

    @property
    def duration_ms(self) -> float:
        """How long the trial took when the agent was asked."""
        return self._recorded.duration_ms if self._recorded is not None else 0.0

    async def _run(self, deadline: Deadline) -> None:
        recorded, run = self._recorded, self._record.run.info.id
        if recorded is None:
            self.end(Ending("error", f"not in the run {run}: {self._record.lost}", "environment"))
        elif recorded.status == "timeout" and (limit := self._timeout_then(recorded)) is not None:
            self._leave_unjudged(f"not kept by that run: the agent was stopped after {limit}, and has longer now")
        elif _stays(recorded):
            self._take_over(recorded)
        elif self._trial.mode == "script":
            self._leave_unjudged("not kept by that run: a test in Python leads its conversations itself; run it again")
        else:
            try:
                await self._recheck(recorded)
            except OtherConversation as error:
                self._take_transcript(recorded)
                self._leave_unjudged(f"the case says something else now, so it has to be run: {error}")

    def _timeout_then(self, recorded: TrialResult) -> str | None:
        """After which time a trial was stopped, if it had less time than it has now."""
        limits = [duration(self._trial.timeout)]
        if (own := getattr(self._trial.tested.agent.config, "timeout", None)) is not None:
            limits.append(f"{own:g}s" if isinstance(own, int | float) else str(own))
        known = (recorded.error or "").removeprefix("timeout after ")
        is_longer = recorded.duration_ms < self._trial.timeout * 1000
        return known if is_longer and known not in limits else None

    def _take_transcript(self, recorded: TrialResult) -> None:
        RecordedConversation(
            self._trial, recorded.transcript, self._result.transcript, self._start, self._context.secrets
        ).show_rest()

    def _take_over(self, recorded: TrialResult) -> None:
        """Take over a result that can't be judged, because the agent never came to its end."""
        result = self._result
        self._take_transcript(recorded)
        result.verdicts, result.checkpoints = recorded.verdicts, recorded.checkpoints
        result.model_calls.extend(one for one in recorded.model_calls if one.role == "judge")
        result.simulated_user, result.warnings = recorded.simulated_user, list(recorded.warnings)
        result.score, result.dimensions, result.left_out = recorded.score, recorded.dimensions, recorded.left_out
        self.end(Ending(recorded.status, recorded.error, recorded.blame))

    def _leave_unjudged(self, why: str) -> None:
        self._result.verdicts = [Verdict(type="recheck", outcome="unjudged", message=why)]
        self.end(Ending("error", why, "environment"))

    async def _recheck(self, recorded: TrialResult) -> None:
        """Go through the recorded conversation, and judge it. Raises `OtherConversation`."""
        trial, result = self._trial, self._result
        recorded_input_data(trial, self._record.input_data, self._context.secrets)
        conversation = self._conversation = RecordedConversation(
            trial, recorded.transcript, result.transcript, self._start, self._context.secrets
        )
        stopped = next((one for one in recorded.verdicts if one.type == "limits" and one.outcome == "failed"), None)
        dialogue: Dialogue | None = None
        if trial.mode == "dialogue":
            dialogue = await self._lead_dialogue(conversation, recorded, was_stopped=stopped is not None)
        else:
            await conversation.run(was_stopped=stopped is not None)
        if sum(turn.duration_ms for turn in recorded.transcript.turns) > trial.timeout * 1000:
            self._actor = "agent"
            raise TimeUp
        passed = overruns(trial.case.limits, result.transcript)
        if stopped is not None and not passed:
            self._leave_unjudged(f"not kept by that run: a limit stopped the agent then ({stopped.message})")
            return
        await self._check(dialogue, LimitExceeded(passed[0].message) if passed else None)
        result.warnings.extend(one for one in recorded.warnings if not is_of_checks(one) and one not in result.warnings)
        if trial.is_before and result.status == "passed":
            self.snapshot = RecordedSnapshot(
                messages=list(result.transcript.messages),
                turns=conversation.turns,
                state=None,
                workspace=None,
                seen=seen_so_far(self._start, result.transcript, says_nothing=trial.case.says_nothing),
                gap=gap_so_far(self._start, result.transcript),
                files=recorded.files,
                masked=bool(result.masked) or (isinstance(self._start, RecordedSnapshot) and self._start.masked),
            )
        if self._judgings > 1 and any(deciders(trial.case)):
            await self._judge_again(recorded)

    async def _lead_dialogue(
        self, conversation: RecordedConversation, recorded: TrialResult, *, was_stopped: bool
    ) -> Dialogue:
        """Go through a recorded dialogue turn by turn. Raises `OtherConversation`."""
        now, then = simulated_user(self._trial.case), recorded.simulated_user
        if then is not None and (now.persona, now.goal) != (then.persona, then.goal):
            raise OtherConversation("its simulated user has another persona or goal")
        dialogue = Dialogue(self._trial, conversation, RecordedSimulator(recorded), self._result)
        try:
            await dialogue.run(self._evidence(), self._set_actor)
        except (NotKept, NoMoreTurns) as error:
            if not was_stopped:
                dialogue.cut_short(str(error) or "not kept by that run: a turn of the dialogue")
        conversation.show_rest()
        return dialogue

    def _new_evidence(self, *parts: Any) -> Evidence:
        masked = self._result.masked or (isinstance(self._start, RecordedSnapshot) and self._start.masked)
        return RecordedEvidence(*parts, masked=bool(masked), artifacts_open=self._may_have_artifacts)

    def _may_have_artifacts(self) -> bool:
        """True while a dialogue is not at its end, and artifacts were handed over in a turn that is not known."""
        return not self._is_final() and self._recorded is not None and bool(self._recorded.transcript.artifacts)

    def _is_final(self) -> bool:
        """False while turns of a dialogue are to come."""
        return self._conversation is None or self._conversation.is_whole

    async def _judge_again(self, recorded: TrialResult) -> None:
        """Judge the same conversation further times, and note what came of it beside the result."""
        for _ in range(1, self._judgings):
            result = TrialResult(key="", agent=self._result.agent, case=self._result.case)
            again = RecheckedTrial(self._trial, result, self._context, self._start, self._record)
            try:
                await again._recheck(recorded)
            finally:
                await again.clean_up()
            outcomes = [one.outcome for one in result.verdicts]
            self._result.rejudged.append(Rejudged(status=result.status, score=result.score, outcomes=outcomes))
            if result.role_usage is not None and self._result.role_usage is not None:
                self._result.role_usage.add(result.role_usage)

    async def clean_up(self) -> None:
        """Keep the files of the trial in this run, too, and remove those that were restored for checks."""
        if self._recorded is not None and self._recorded.files and self._result.key:
            keep, files = self._context.made_files.take_over, self._recorded.files
            self._result.files = await asyncio.to_thread(keep, self._record.run.folder, files)
        self._workspace.remove()
