"""Evidence: everything that a check may look at. What several checks need is computed once."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec.structs import replace

from atp.base.errors import Error
from atp.base.json.canonical import canonical
from atp.base.json.found import MISSING, SearchCutShort, find_json, read_whole, unread_json
from atp.base.numbers import counted
from atp.suite.case import Case
from atp.suite.result import Artifact, Event, ToolCall, Transcript, Turn, count_unread_calls

if TYPE_CHECKING:
    from atp.checks.golden_files import TrialGoldenFiles
    from atp.roles.judge.judges import Judges


class NotKept(Error):
    """What a check looks at is not in the journal that the trial is read from, so the check can't be decided."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not kept by that run: {what}")


@dataclass(frozen=True, slots=True)
class NotKeptFile:
    """A file that the agent made in an earlier run, which has not kept its content."""

    size: int
    """How long it was, in bytes."""
    sha256: str | None = None
    """The digest of its content, if it was read."""
    is_link: bool = False
    """True for a link or the like: what it led to is not known."""


class Subject:
    """A value to be checked: an answer, a tool's result, a file's content."""

    def __init__(self, value: Any, name: str, where: str) -> None:
        self.value = value
        """Text or any JSON value; nothing is an empty answer."""
        self.name = name
        """What the value is, for a sentence: `the output`."""
        self.where = where
        """Where the value was found, for a verdict."""

    @property
    def text(self) -> str:
        """The value as text; of a JSON value, the canonical text."""
        if isinstance(self.value, str):
            return self.value
        return "" if self.value is None else self._canonical_text

    @cached_property
    def _canonical_text(self) -> str:
        return canonical(self.value)

    @cached_property
    def json(self) -> Any:
        """The JSON value, or the JSON found in the text, or `MISSING`. Raises `SearchCutShort`."""
        if isinstance(self.value, str):
            return self._searched(find_json)
        return MISSING if self.value is None else self.value

    @cached_property
    def unread_json(self) -> str | None:
        """Says that the text has JSON in it that `json` is not, if it has: broken, or beside it.

        Raises `SearchCutShort`.
        """
        why: str | None = self._searched(unread_json) if isinstance(self.value, str) else None
        return why

    @cached_property
    def json_text(self) -> str | None:
        """The canonical text of a JSON value, or of a text that is a JSON object or list; otherwise None.

        Raises `SearchCutShort`.
        """
        if not isinstance(self.value, str):
            return None if self.value is None else self.text
        read = self._searched(read_whole) if self.value.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") else MISSING
        return None if read is MISSING else canonical(read)

    def _searched(self, search: Callable[[str], Any]) -> Any:
        try:
            return search(self.value)
        except SearchCutShort as error:
            raise SearchCutShort(f"{self.name} was not searched for JSON to its end: {error}") from error

    @property
    def is_text(self) -> bool:
        """True if the value is text, with or without JSON in it."""
        return isinstance(self.value, str)


class Workspace(Protocol):
    """What checks know of a trial's folder."""

    @property
    def exists(self) -> bool:
        """False if the trial never asked for its folder, so that none was made."""

    def path(self) -> Path:
        """The folder."""

    def files(self) -> "Mapping[str, Path | NotKeptFile]":
        """All files, by their path in the folder, with `/` between its parts."""

    def changed_files(self, *, own: bool = False) -> "Mapping[str, Path | NotKeptFile]":
        """The files that the agent made or changed, by their path in the folder, with `/` between its parts.

        With `own`, only in the case's own turns, not in its befores.
        """


class Evidence:
    """The result of a trial, or of one turn of a trial."""

    def __init__(
        self,
        case: Case,
        transcript: Transcript,
        workspace: Workspace | None = None,
        folders: Sequence[Path] = (),
        context: Mapping[str, Any] | None = None,
        *,
        turn: int | None = None,
        judge: "Judges | None" = None,
    ) -> None:
        self.case = case
        """What was asked for: input, expected output, limits."""
        self.transcript = transcript
        """The conversation, the tool calls, events and artifacts."""
        self.workspace = workspace
        """The trial's folder."""
        self.folders = tuple(folders)
        """Where `scripts/` is looked for, in this order: the agent's folder, the suite's, the project's root."""
        self.context = context or {}
        """The user, team and other context of the trial, for scripts."""
        self.turn = turn
        """The turn to check, from 1. If None, the whole conversation is checked, and the last answer is the output."""
        self.judge = judge
        """The judges of the trial; none if no check of the suite needs a judge."""
        self.golden_files: TrialGoldenFiles | None = None
        """The golden files that snapshots are compared with; none if no snapshot of the case can have one."""
        self.earlier: Transcript | None = None
        """The turns, tool calls, events and artifacts of the befores, if there are any."""
        self.earlier_gap: str | None = None
        """Says that a before made tool calls that the agent did not describe, if one did."""
        self._answer: Subject | None = None
        self.own = False
        """True if only the case's own turns count."""

    def of_turn(self, turn: int) -> "Evidence":
        """The evidence of one turn of the same trial."""
        narrowed = copy(self)
        narrowed.turn = turn
        return forget_computed(narrowed)

    def for_judges(self) -> "Evidence":
        """The same evidence for judges, who are shown no secrets and so lack nothing where these are masked."""
        return self

    def of_own_turns(self) -> "Evidence":
        """The evidence of the same trial without its befores."""
        narrowed = copy(self)
        narrowed.own, narrowed.earlier, narrowed.earlier_gap = True, None, None
        seen = self.transcript
        if self.case.says_nothing:  # what its transcript has is all from befores
            narrowed.transcript = Transcript()
        elif seen.inherited:
            narrowed.transcript = replace(seen, messages=seen.messages[seen.inherited :], inherited=0)
        return forget_computed(narrowed)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, as role/content objects."""
        return self.transcript.messages

    @cached_property
    def turns(self) -> list[Turn]:
        """The exchanges, those of befores included."""
        return self._all("turns")

    @cached_property
    def artifacts(self) -> list[Artifact]:
        """The artifacts that the agent handed over, in befores, too."""
        return self._all("artifacts")

    def _all(self, what: Literal["turns", "tool_calls", "events", "artifacts"]) -> list[Any]:
        own: list[Any] = getattr(self.transcript, what)
        return own if self.earlier is None else [*getattr(self.earlier, what), *own]

    @property
    def answer(self) -> Subject:
        """The answer of the agent."""
        # Not a cached_property, which takes a lock each time in Python 3.11: nearly every check reads the answer.
        if self._answer is None:
            self._answer = self._find_answer()
        return self._answer

    def _find_answer(self) -> Subject:
        turns = self.transcript.turns
        if self.turn is not None:
            output = next((one.output for one in turns if one.turn == self.turn), None)
            return Subject(output, "the output", f"turn {self.turn}")
        where = f"turn {turns[-1].turn}" if len(turns) > 1 else "output"
        return Subject(self.transcript.output, "the output", where)

    @property
    def output(self) -> Any:
        """The answer as it is: text or any JSON value; nothing is an empty answer."""
        return self.answer.value

    @cached_property
    def input(self) -> Any:
        """The input of the agent: the case's, or that of this turn or variation."""
        turns = self.transcript.turns
        if self.turn is not None:
            return next((one.input for one in turns if one.turn == self.turn), None)
        if self.case.mode in ("chains", "dialogue") and turns:
            return turns[0].input if len(turns) == 1 else [one.input for one in turns]
        return self.case.input

    @cached_property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls, in order."""
        calls: list[ToolCall] = self._all("tool_calls")
        return calls if self.turn is None else [call for call in calls if call.turn == self.turn]

    @cached_property
    def events(self) -> list[Event]:
        """All other events, in order."""
        events: list[Event] = self._all("events")
        return events if self.turn is None else [event for event in events if event.turn == self.turn]

    @cached_property
    def changed_files(self) -> Mapping[str, Path | NotKeptFile]:
        """The files that the agent made or changed in its workspace."""
        if self.workspace is None:
            return {}
        return self.workspace.changed_files(own=True) if self.own else self.workspace.changed_files()

    @cached_property
    def unreported_calls(self) -> str | None:
        """Says that the agent made tool calls that it did not describe, in the trial or in a before."""
        return unreported_calls(self.transcript) or self.earlier_gap

    @cached_property
    def has_unread_calls(self) -> bool:
        """True if the calls that the agent did not describe are in its answers, where they were not read."""
        return self.unreported_calls is not None and any(count_unread_calls(one.output) for one in self.turns)


_COMPUTED = tuple(name for name, one in vars(Evidence).items() if isinstance(one, cached_property))


def forget_computed(evidence: Evidence) -> Evidence:
    """Remove what was computed of a copy's original, and return the copy."""
    evidence._answer = None
    for name in _COMPUTED:
        evidence.__dict__.pop(name, None)
    return evidence


def unreported_calls(transcript: Transcript) -> str | None:
    """Say that an agent counts more tool calls than it described; which ones, and in which turn, is not known then."""
    claimed, described = transcript.usage.tool_calls or 0, len(transcript.tool_calls)
    if claimed <= described:
        return None
    return f"the agent says it made {counted(claimed, 'tool call')} but told of {described or 'none'}"
