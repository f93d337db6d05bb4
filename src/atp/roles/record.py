"""The record of a trial: the texts that a judge is shown, each with a label.

Tools, files, roles and events are named by agents, too, so labels contain only words of ATP's and numbers. A text that
is too long is cut in the middle, and its label says so. Each tool call is shown once, even if the agent's messages
repeat what the transcript says of it.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from atp.base.json.found import MISSING, SearchCutShort, read_whole
from atp.base.json.text import readable
from atp.base.secrets import secrets_of
from atp.models.parts import decode_arguments
from atp.suite.message import answer_text
from atp.suite.result import Event, ToolCall, Transcript

LONGEST = 20_000
"""Characters of one text that are shown."""
SHORTEST = 400
"""Characters of each text that are shown, however many texts there are."""
MOST = 90_000
"""Characters of all texts together, with labels and marks. The wire protocol carries 100,000 in all."""
_AROUND = 130
"""Characters of a label and marks."""

EARLIER = "Before this test"
"""How the labels of what befores did begin."""
GIVEN = "Given with the test"
"""How the labels of messages begin that the case says the agent has sent before."""
_SPEAKERS = {
    "user": "The user said",
    "assistant": "The agent said",
    "system": "The agent's system message",
    "developer": "The agent's developer message",
    "tool": "A tool's message",
}
_BY_AGENT = ("assistant", "tool")
"""Roles of messages that show what the agent did."""
_SHOWN_ELSEWHERE = ("tool_call", "llm_request")
_CALL_FRAME = ('{"tool": ', ', "arguments": ')
_EVENT_FRAME = ('{"event": ',)
_TIMES = ("duration_ms", "timestamp", "at_ms", "elapsed_ms")
_MEDIA = ("image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file")
"""Types of parts of the user's messages that have no words in them; all others are shown as they are."""


class Piece(Struct, kw_only=True):
    """A text that a judge is shown."""

    label: str
    """What the text is, in words of ATP's."""
    text: str = ""
    """The text as the judge sees it."""
    quotable: list[str] = field(default_factory=list)
    """What may be quoted: the whole text, or its parts before and after a cut."""
    judged: bool = False
    """True if the question is about this text; other texts are context."""
    by_agent: bool = False
    """True if the text shows what the agent did: its words, its tool calls and their results, its files."""
    own: bool = False
    """True if the agent itself wrote the text. The result of a tool is by the agent, but not its own."""
    frame: tuple[str, ...] = ()
    """What of the text ATP wrote, in order: the keys around what the agent wrote."""

    def agents_words(self) -> Iterator[str]:
        """What may be quoted, without the words of ATP's."""
        for words in self.quotable:
            text = words
            for ours in self.frame:
                text = text.replace(ours, "\n", 1)
            yield text


class Record(Struct, kw_only=True):
    """What a judge is shown of a trial."""

    pieces: list[Piece]
    """The texts in order."""
    notes: list[str] = field(default_factory=list)
    """What was left out, for the report."""
    is_whole: bool = True
    """False if something that the agent itself wrote is cut or left out: it may be anything."""


class Unshown(NamedTuple):
    """Why a file of the agent's is not shown."""

    why: str
    """The reason, in words of ATP's."""
    is_too_large: bool = False
    """True if only the file's size is the reason, so that any text may be in it."""


class Given(NamedTuple):
    """What is known of the conversation beside the transcript."""

    data: Any = None
    """Data that comes with the task."""
    messages: int = 0
    """How many messages the case has: the first ones after those of befores."""
    unknown_calls: str | None = None
    """That the agent made tool calls which it did not describe, in words of ATP's."""


_NOTHING_GIVEN = Given()


def make_record(
    transcript: Transcript,
    *,
    earlier: Transcript | None = None,
    given: Given = _NOTHING_GIVEN,
    files: Mapping[str, str | Unshown] | None = None,
    about: Mapping[str, str] | None = None,
    turn: int | None = None,
    secrets: Collection[str] = (),
) -> Record:
    """The record of a trial, or of its first `turn` turns.

    `earlier` has the tool calls and events of befores, whose messages the transcript begins with. `files` are texts
    that the agent made, by name, or why one is not shown. The question is about the last answer, or, with `about`,
    about these of the agent's files. `secrets` are masked.
    """
    data = given.data
    pieces = [Piece(label="The data that came with the task", text=readable(data))] if data is not None else []
    # Of a case that says nothing itself, everything is from befores.
    says_nothing = 0 < transcript.inherited == len(transcript.messages)
    seen = ((earlier, True), (transcript, says_nothing)) if earlier is not None else ((transcript, says_nothing),)
    numbers = itertools.count(1)
    calls = [
        _Call(next(numbers), call, is_earlier)
        for source, is_earlier in seen
        for call in source.tool_calls
        if turn is None or call.turn <= turn
    ]
    conversation = _Conversation(transcript, calls, turn, given.messages).pieces()
    answers = [one for one in conversation if one.by_agent and one.label.endswith(_SPEAKERS["assistant"])]
    if answers:
        answers[-1].label += ", as its last answer"
        answers[-1].judged = about is None
    pieces += conversation
    if given.unknown_calls is not None:
        pieces.append(Piece(label="What is not known of the tool calls", text=given.unknown_calls))
    pieces += [
        _event(event, is_earlier)
        for source, is_earlier in seen
        for event in source.events
        if event.type not in _SHOWN_ELSEWHERE and (turn is None or event.turn <= turn)
    ]
    shown = {**(files or {}), **(about or {})}
    pieces += [_file(name, one, is_judged=about is not None and name in about) for name, one in shown.items()]
    for one in pieces:
        one.text = secrets_of(secrets).mask_text(one.text)
    record = fitted(pieces)
    if any(isinstance(one, Unshown) and one.is_too_large for one in shown.values()):
        record.is_whole = False
    return record


def content_text(content: Any, *, in_full: bool = False) -> str:
    """The text of a message's content: the content itself, or the text of its parts.

    Attachments are named, or, `in_full`, shown as data: what an agent or a tool gives may only look like an attachment.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content):
        return "\n".join(_part_text(part, in_full) for part in content)
    return readable(content)


def _part_text(part: dict[str, Any], in_full: bool) -> str:
    """A part of a content in words. A JSON answer may be a list of objects with a `type`, too, so nothing gets lost."""
    if part["type"] in _MEDIA and not in_full:
        return f"[{part['type']}]"
    text = part.get("text")
    return text if part["type"] == "text" and isinstance(text, str) and len(part) == 2 else readable(part)


class _Call(NamedTuple):
    number: int
    call: ToolCall
    is_earlier: bool
    """True if a before made the call."""

    def pieces(self) -> Iterator[Piece]:
        call, about = self.call, f"Turn {self.call.turn}, tool call {self.number}"
        if self.is_earlier:
            about = f"{EARLIER}: {about}"
        asked = readable({"tool": call.name, "arguments": call.arguments})
        label = f"{about}, its name and arguments"
        yield Piece(label=label, text=asked, by_agent=True, own=True, frame=_CALL_FRAME)
        if call.result is not None:
            yield Piece(label=f"{about}, its result", text=content_text(call.result, in_full=True), by_agent=True)
        if call.error is not None:
            yield Piece(label=f"{about}, its error", text=call.error, by_agent=True)


class _Conversation:
    """Arranges messages and tool calls: each call once, where a message asks for it, else behind the messages."""

    def __init__(self, transcript: Transcript, calls: list[_Call], turn: int | None, given: int) -> None:
        self._transcript = transcript
        self._inherited = transcript.inherited
        self._authored = transcript.inherited + given
        self._turns = [one for one in transcript.turns if turn is None or one.turn <= turn]
        self._calls = calls
        self._shown: dict[str, ToolCall] = {}
        """Calls that were shown already, by the id that their result's message refers to."""

    def pieces(self) -> list[Piece]:
        messages, found = self._transcript.messages, list[Piece]()
        is_whole = bool(messages) and len(self._turns) == len(self._transcript.turns)
        for place, message in enumerate(messages if is_whole else messages[: self._inherited]):
            found += self._labelled(self._message(message, place), place)
        if is_whole and self._turns:
            found += _answer_beside_messages(self._turns[-1].output, found)
        if not is_whole:
            for one in self._turns:
                found.append(Piece(label=_SPEAKERS["user"], text=content_text(one.input)))
                text = content_text(one.output, in_full=True)
                found.append(Piece(label=_SPEAKERS["assistant"], text=text, by_agent=True, own=True))
        for call in self._calls:
            found += call.pieces()
        return found

    def _labelled(self, pieces: Iterable[Piece], place: int) -> Iterator[Piece]:
        """The pieces of a message, labelled by where the message comes from."""
        for one in pieces:
            if place < self._inherited and not one.label.startswith(EARLIER):
                one.label = f"{EARLIER}: {one.label}"
            elif self._inherited <= place < self._authored and one.by_agent:
                one.label, one.by_agent, one.own = f"{GIVEN}: {one.label}", False, False
            yield one

    def _message(self, message: dict[str, Any], place: int) -> Iterator[Piece]:
        role, requested = str(message.get("role")), message.get("tool_calls")
        label, text = _SPEAKERS.get(role), content_text(message.get("content"), in_full=role in _BY_AGENT)
        if label is None:
            yield Piece(label="A message", text=readable(message), by_agent=True, own=True)
            return
        call = self._shown.get(str(message.get("tool_call_id"))) if role == "tool" else None
        if call is not None and _is_result(text, call):
            return
        if text or not requested:
            yield Piece(label=label, text=text, by_agent=role in _BY_AGENT, own=role == "assistant")
        unknown = []
        for request in requested if isinstance(requested, list) else [requested] if requested else []:
            made = self._take_call(request, place)
            if made is None:
                unknown.append(_without_id(request))
                continue
            if isinstance(request, dict) and request.get("id"):
                self._shown[str(request["id"])] = made.call
            yield from made.pieces()
        if unknown:
            label = "The agent asked for tools to be called"
            yield Piece(label=label, text=readable(unknown), by_agent=True, own=True)

    def _take_call(self, request: Any, place: int) -> _Call | None:
        """The first tool call of the transcript that the message at `place` asks for and that is not shown yet."""
        function = request.get("function", request) if isinstance(request, dict) else None
        is_earlier = place < self._inherited
        if not isinstance(function, dict) or (not is_earlier and place < self._authored):
            return None
        for at, (_, call, was_earlier) in enumerate(self._calls):
            if (
                was_earlier == is_earlier
                and call.name == function.get("name")
                and _same_arguments(call.arguments, function.get("arguments"))
            ):
                return self._calls.pop(at)
        return None


def _answer_beside_messages(output: Any, found: list[Piece]) -> Iterator[Piece]:
    """The answer that is checked, if the agent's messages end with another: an adapter makes both, each by itself."""
    newest = itertools.takewhile(lambda one: not one.label.endswith(_SPEAKERS["user"]), reversed(found))
    said = next((one.text for one in newest if one.own and one.label.endswith(_SPEAKERS["assistant"])), "")
    is_same = said.strip() == answer_text(output).strip() or (not isinstance(output, str) and _read(said) == output)
    if not is_same:
        yield Piece(label=_SPEAKERS["assistant"], text=content_text(output, in_full=True), by_agent=True, own=True)


def _same_arguments(called: Any, asked: Any) -> bool:
    try:
        return bool(decode_arguments(called) == decode_arguments(asked))
    except SearchCutShort:
        return bool(called == asked)


def _is_result(text: str, call: ToolCall) -> bool:
    """True if a tool's message says no more than the call's result or error."""
    if call.error is not None:
        return text in (call.error, f"error: {call.error}")
    return bool(text == call.result or _read(text) == call.result)


def _read(text: str) -> Any:
    try:
        return read_whole(text)
    except SearchCutShort:
        return MISSING


def _without_id(request: Any) -> Any:
    """A tool call without its id, which is new in every run and would make every record unique."""
    return (
        {key: value for key, value in request.items() if key not in ("id", "index")}
        if isinstance(request, dict)
        else request
    )


def _event(event: Event, is_earlier: bool) -> Piece:
    payload = {name: value for name, value in event.payload.items() if name not in _TIMES}
    text = readable({"event": event.type, **payload})
    label = f"Turn {event.turn}, told by the agent"
    label = f"{EARLIER}: {label}" if is_earlier else label
    return Piece(label=label, text=text, by_agent=True, own=True, frame=_EVENT_FRAME)


def _file(name: str, content: str | Unshown, is_judged: bool) -> Piece:
    if isinstance(content, Unshown):
        label, text = f"The path of a file that the agent made; {content.why}", _one_line(name)
    else:
        label = "A file that the agent made, with its path on the first line"
        text = f"{_one_line(name)}\n{content}"
    return Piece(label=label, text=text, judged=is_judged, by_agent=True, own=True)


def _one_line(name: str) -> str:
    """The name of a file. One with line breaks would put words of its own below its first line."""
    return name if name.isprintable() else json.dumps(name)


def fitted(pieces: list[Piece]) -> Record:
    """A record of these texts: long ones are cut, and if there are still too many, those in the middle are left out."""
    longest = LONGEST
    while longest > SHORTEST and sum(min(len(one.text), longest) + _AROUND for one in pieces) > MOST:
        longest = max(longest // 2, SHORTEST)
    notes = []
    if cut := sum(len(one.text) > longest for one in pieces):
        notes.append(f"the judge was shown {cut} of {len(pieces)} texts cut to {longest} characters")
    is_whole = not any(one.own and len(one.text) > longest for one in pieces)
    for one in pieces:
        _cut(one, longest)
    kept = _kept(pieces)
    is_whole = is_whole and not any(one.own for place, one in enumerate(pieces) if place not in kept)
    if gone := len(pieces) - len(kept):
        notes.append(f"the judge was not shown {gone} of {len(pieces)} texts: there were too many")
        gap = next(place for place in range(len(pieces)) if place not in kept)
        left_out = Piece(label=f"Here {gone} texts are left out, because there are too many")
        before, after = [place for place in kept if place < gap], [place for place in kept if place > gap]
        pieces = [*(pieces[place] for place in before), left_out, *(pieces[place] for place in after)]
    return Record(pieces=pieces, notes=notes, is_whole=is_whole)


def _cut(piece: Piece, longest: int) -> None:
    text = piece.text
    if len(text) <= longest:
        piece.quotable = [text]
        return
    half = longest // 2
    piece.quotable = [text[:half], text[-half:]]
    left_out = len(text) - 2 * half
    piece.label += f" ({left_out} of its {len(text)} characters are left out in the middle)"
    piece.text = f"{text[:half]}\n[… {left_out} characters left out …]\n{text[-half:]}"


def _kept(pieces: Sequence[Piece]) -> dict[int, None]:
    """The indexes of as many texts as fit, in order: those that the question is about, then from both ends."""
    kept = {place for place, one in enumerate(pieces) if one.judged}
    room = MOST - sum(len(pieces[place].text) + _AROUND for place in kept)
    left, right = 0, len(pieces) - 1
    while left <= right:
        place = left if left <= len(pieces) - 1 - right else right
        left, right = (left + 1, right) if place == left else (left, right - 1)
        if place in kept:
            continue
        room -= len(pieces[place].text) + _AROUND
        if room < 0:
            break
        kept.add(place)
    return dict.fromkeys(sorted(kept))
