"""What an earlier run recorded of a trial, in the place of an agent, a simulator and a workspace.

A recorded conversation is shown turn by turn, as it was when the agent answered. What the journal doesn't hold raises
`NotKept` as soon as a check asks for it.
"""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from atp.base.errors import Error
from atp.base.json.canonical import canonical
from atp.base.secrets import MASK, Secrets
from atp.checks.evidence import NotKept, NotKeptFile
from atp.checks.recorded_evidence import has_mask
from atp.engine.planned_trial import Trial
from atp.engine.trial.befores import Snapshot
from atp.engine.trial.conversation import new_messages
from atp.engine.trial.workspace import WorkFolder
from atp.journal.made_files import are_all_listed, read_kept
from atp.roles.simulator import SimulatedMessage, SimulatorTurn
from atp.suite.message import content_text
from atp.suite.result import MadeFile, Transcript, TrialResult, Turn


class OtherConversation(Error):
    """The case says something else now than what was said in the recorded conversation."""


class NoMoreTurns(Exception):
    """The recorded conversation ended before this turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSnapshot(Snapshot):
    """What a sequence of befores has left in an earlier run."""

    files: list[MadeFile] = field(default_factory=list)
    """The files that the agent had made by then."""
    masked: bool = False
    """True if secrets may be masked in what was seen."""


class RecordedConversation:
    """A conversation of an earlier run, turn by turn."""

    def __init__(
        self, trial: Trial, recorded: Transcript, shown: Transcript, start: Snapshot | None, secrets: Secrets
    ) -> None:
        """`recorded` is copied to `shown` as the turns are said. `start` is the snapshot of befores."""
        self._trial = trial
        self._recorded = recorded
        self._secrets = secrets
        self.transcript = shown
        """All that was said and seen so far."""
        self.session = ""
        """No agent holds the conversation."""
        self.turns = start.turns if start is not None else 0
        """How many turns there were, those of befores included."""
        self.is_whole = False
        """True once everything is shown."""
        self._said = 0
        self._place = recorded.inherited
        shown.messages.extend(recorded.messages[: recorded.inherited])
        shown.inherited = recorded.inherited

    async def say(self, messages: list[dict[str, Any]]) -> None:
        """Show the turn that these messages begin. Raises `OtherConversation`, `NoMoreTurns`."""
        recorded, begin = self._recorded, self._place
        self._compare(messages)
        if self._said == len(recorded.turns):
            raise NoMoreTurns
        self.turns += 1
        turn = recorded.turns[self._said]
        self._said += 1
        self._place = self._begin_of_next(begin + len(messages))
        if self._said == len(recorded.turns):
            self.show_rest()
            return
        shown = self.transcript
        shown.messages.extend(recorded.messages[begin : self._place])
        shown.turns.append(turn)
        shown.tool_calls.extend(copy.copy(one) for one in recorded.tool_calls if one.turn == turn.turn)
        shown.events.extend(one for one in recorded.events if one.turn == turn.turn)
        shown.usage = copy.copy(recorded.usage)
        if recorded.usage.tool_calls == len(recorded.tool_calls):
            shown.usage.tool_calls = len(shown.tool_calls)

    def _compare(self, messages: list[dict[str, Any]]) -> None:
        """Raise `OtherConversation` unless the next turn began with these messages."""
        recorded, hidden = self._recorded, self._secrets.mask(messages, numbers=False)
        there: list[Any] = recorded.messages[self._place : self._place + len(messages)]
        if not there and self._said < len(recorded.turns):  # an agent may have replaced the messages by its own
            hidden, there = [content_text(hidden[-1].get("content"))], [recorded.turns[self._said].input]
        if there and not _is_same(hidden, there):
            raise OtherConversation(f"what is said in turn {self._said + 1} differs from what was said then")

    def _begin_of_next(self, place: int) -> int:
        """The place of the message with which the next turn begins; the end if there is none."""
        messages, turns = self._recorded.messages, self._recorded.turns
        wanted = turns[self._said].input if self._said < len(turns) else None
        for number in range(place, len(messages)):
            one = messages[number]
            if one.get("role") == "user" and (wanted is None or content_text(one.get("content")) == wanted):
                return number
        return len(messages)

    def show_rest(self) -> None:
        """Show all that was recorded."""
        shown, recorded = self.transcript, copy.deepcopy(self._recorded)
        for name in recorded.__struct_fields__:
            setattr(shown, name, getattr(recorded, name))
        self.is_whole = True

    async def run(self, *, was_stopped: bool) -> None:
        """Say all that the case says, unless the agent `was_stopped`. Raises `OtherConversation`."""
        for messages in new_messages(self._trial):
            try:
                await self.say(messages)
            except NoMoreTurns:
                if not was_stopped:
                    raise OtherConversation(f"turn {self._said + 1} was not said then") from None
                break
        if self._said < len(self._recorded.turns) and not self._trial.case.says_nothing:
            raise OtherConversation(f"turn {self._said + 1} was said then, and is no longer")
        self.show_rest()


def _is_same(now: Any, then: Any) -> bool:
    """True if a value is what was recorded, as far as secrets are not masked in it."""
    text, recorded = canonical(now), canonical(then)
    if text == recorded or MASK not in recorded:
        return text == recorded
    pattern = ".*".join(re.escape(part) for part in recorded.split(MASK))
    return re.fullmatch(pattern, text, re.DOTALL) is not None


class RecordedSimulator:
    """The user of a dialogue, with the words that a simulator had in an earlier run."""

    def __init__(self, result: TrialResult) -> None:
        self._turns: dict[int, Turn] = {one.turn: one for one in result.transcript.turns}
        known = result.simulated_user
        self._notes = {one.turn: one for one in known.turns} if known is not None else {}

    async def next(self, turn: SimulatorTurn) -> SimulatedMessage:
        """The user's next message. Raises `NotKept` if the dialogue ended before."""
        said, note = self._turns.get(turn.turn_number), self._notes.get(turn.turn_number)
        achieved = note is not None and note.goal_achieved
        reasoning = note.reasoning if note is not None else ""
        if said is not None:
            return SimulatedMessage(input=str(said.input), goal_achieved=achieved, reasoning=reasoning)
        if achieved:
            return SimulatedMessage(goal_achieved=True, reasoning=reasoning)
        raise NotKept(f"the dialogue ended with turn {turn.turn_number - 1}")


class RecordedWorkspace:
    """The files that an agent made in an earlier run, as far as that run has kept them."""

    exists = True

    def __init__(self, trial: Trial, result: TrialResult | None, run: Path, start: Snapshot | None) -> None:
        self._files = result.files if result is not None else []
        self._links = result.links if result is not None else []
        self._run = run
        self._had_files = trial.case.workspace is not None or trial.source.fixtures is not None
        self._of_befores = start.files if isinstance(start, RecordedSnapshot) else []
        self._is_listed = result is None or are_all_listed(result)
        self.is_final: Callable[[], bool] = lambda: True
        """False while turns of a dialogue are to come: in which of them files were made is not known."""
        self._folder: Path | None = None
        self._work: WorkFolder | None = None

    def restore_to(self, work: WorkFolder, folder: Path) -> None:
        """Say where files are written to when a check asks for them: `folder`, which is in `work`."""
        self._work, self._folder = work, folder

    def path(self) -> Path:
        """A folder with the files that the agent made. Raises `NotKept` if that is not all there was."""
        files = self.changed_files()
        if self._had_files or any(isinstance(one, NotKeptFile) for one in files.values()):
            raise NotKept("the whole workspace")
        return self._restored_folder()

    def files(self) -> Mapping[str, Path | NotKeptFile]:
        """All files. Raises `NotKept` if there were some from the beginning: the agent may have deleted them."""
        if self._had_files or self._of_befores:
            raise NotKept("the files that were there from the beginning")
        return self.changed_files()

    def changed_files(self, *, own: bool = False) -> Mapping[str, Path | NotKeptFile]:
        """The files that the agent made or changed. With `own`, those that a before has left are not among them."""
        if not self._is_listed:
            raise NotKept("which files the agent made")
        if not self.is_final() and (self._files or self._links):
            raise NotKept("in which turn the agent made its files")
        left = {(one.name, one.sha256) for one in self._of_befores} if own else set()
        files = {one.name: self._restored(one) for one in self._files if (one.name, one.sha256) not in left}
        return {**files, **{name: NotKeptFile(0, is_link=True) for name in self._links}}

    def _restored(self, made: MadeFile) -> Path | NotKeptFile:
        """The file, written to the folder; the little that is known of the file, if it was not kept."""
        content, parts = read_kept(self._run, made), PurePosixPath(made.name).parts
        if content is None or made.name.startswith("/") or ".." in parts:  # journals can be edited
            return NotKeptFile(made.size, made.sha256)
        path = self._restored_folder().joinpath(*parts)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return path

    def _restored_folder(self) -> Path:
        assert self._folder is not None
        assert self._work is not None
        if not self._folder.exists():
            self._work.make()
            self._folder.mkdir()
        return self._folder

    def remove(self) -> None:
        """Remove the folder if it was made."""
        if self._folder is not None and self._work is not None and self._folder.exists():
            self._work.remove(self._folder)


def recorded_input_data(trial: Trial, data: Mapping[str, Any] | None, secrets: Secrets) -> None:
    """Compare what the task of a case hands to the agent with what was recorded. Raises `OtherConversation`."""
    task = trial.case.task
    now = secrets.mask(task.input_data, numbers=False) if task is not None else None
    if not _is_same(now or {}, data or {}):
        raise OtherConversation("its `input_data` differs from what the agent was given then")


def is_masked(result: TrialResult) -> bool | None:
    """Whether secrets are masked in a recorded result. Earlier versions did not say: where `***` stands, one may be."""
    if result.masked is not None:
        return result.masked
    return True if has_mask(result) else None
