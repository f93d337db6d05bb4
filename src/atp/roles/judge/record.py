"""The record of a trial: the texts that a judge is shown, each with a label.

Tools, files, roles and events are named by agents, too, so labels contain only words of ATP's and numbers. A text that
is too long is cut in the middle, and its label says so.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from atp.base.secrets import mask
from atp.suite.result import Event, ToolCall, Transcript

LONGEST = 20_000
"""Characters of one text that are shown."""
SHORTEST = 400
"""Characters of each text that are shown, however many texts there are."""
MOST = 90_000
"""Characters of all texts together, with labels and marks. The wire protocol carries 100,000 in all."""
_AROUND = 130
"""Characters of a label and marks."""

_SPEAKERS = {
    "user": "The user said",
    "assistant": "The agent said",
    "system": "The agent's system message",
    "developer": "The agent's developer message",
    "tool": "A tool's message",
}
_SHOWN_ELSEWHERE = ("tool_call", "llm_request")
_TIMES = ("duration_ms", "timestamp", "at_ms", "elapsed_ms")


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


class Record(Struct, kw_only=True):
    """What a judge is shown of a trial."""

    pieces: list[Piece]
    """The texts in order."""
    notes: list[str] = field(default_factory=list)
    """What was left out, for the report."""


def make_record(
    transcript: Transcript,
    *,
    files: Mapping[str, str] | None = None,
    given: Any = None,
    turn: int | None = None,
    about: Mapping[str, str] | None = None,
    secrets: Collection[str] = (),
) -> Record:
    """The record of a trial, or of its first `turn` turns.

    `files` are texts that the agent made, by name; `given` is data that came with the task. The question is about the
    last answer, or, with `about`, about these of the agent's files. `secrets` are masked.
    """
    pieces = [Piece(label="The data that came with the task", text=_json(given))] if given is not None else []
    conversation = list(_conversation(transcript, turn))
    answers = [one for one in conversation if one.label == _SPEAKERS["assistant"]]
    if answers:
        answers[-1].label = "The agent said, as its last answer"
        answers[-1].judged = about is None
    pieces += conversation
    for number, call in enumerate(transcript.tool_calls, 1):
        if turn is None or call.turn <= turn:
            pieces += _tool_call(number, call)
    pieces += [_event(one) for one in transcript.events if _is_shown(one, turn)]
    shown = dict(files or {}) | dict(about or {})
    for name, text in shown.items():
        label = "A file that the agent made, with its path on the first line"
        pieces.append(Piece(label=label, text=f"{name}\n{text}", judged=about is not None and name in about))
    for one in pieces:
        one.text = mask(one.text, secrets)
    return fitted(pieces)


def content_text(content: Any) -> str:
    """The text of a message's content: the content itself, or the text among its parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content):
        return "\n".join(
            str(part.get("text", "")) if part["type"] == "text" else f"[{part['type']}]" for part in content
        )
    return _json(content)


def _conversation(transcript: Transcript, turn: int | None) -> Iterator[Piece]:
    turns = [one for one in transcript.turns if turn is None or one.turn <= turn]
    if transcript.messages and len(turns) == len(transcript.turns):
        for message in transcript.messages:
            yield from _message(message)
        return
    for message in transcript.messages[: transcript.inherited]:
        yield from _message(message)
    for one in turns:
        yield Piece(label=_SPEAKERS["user"], text=content_text(one.input))
        yield Piece(label=_SPEAKERS["assistant"], text=content_text(one.output))


def _message(message: dict[str, Any]) -> Iterator[Piece]:
    label = _SPEAKERS.get(str(message.get("role")))
    text, wishes = content_text(message.get("content")), message.get("tool_calls")
    if label is None:
        yield Piece(label="A message", text=_json(message))
        return
    if text or not wishes:
        yield Piece(label=label, text=text)
    if wishes:
        yield Piece(label=f"{label} that tools be called", text=_json(_without_ids(wishes)))


def _without_ids(wishes: Any) -> Any:
    """Tool calls without their ids, which are new in every run and would make every record unique."""
    if not isinstance(wishes, list):
        return wishes
    return [
        {key: value for key, value in one.items() if key not in ("id", "index")} if isinstance(one, dict) else one
        for one in wishes
    ]


def _tool_call(number: int, call: ToolCall) -> Iterator[Piece]:
    about = f"Turn {call.turn}, tool call {number}"
    yield Piece(label=f"{about}, its name and arguments", text=_json({"tool": call.name, "arguments": call.arguments}))
    if call.result is not None:
        yield Piece(label=f"{about}, its result", text=content_text(call.result))
    if call.error is not None:
        yield Piece(label=f"{about}, its error", text=call.error)


def _is_shown(event: Event, turn: int | None) -> bool:
    return event.type not in _SHOWN_ELSEWHERE and (turn is None or event.turn <= turn)


def _event(event: Event) -> Piece:
    payload = {name: value for name, value in event.payload.items() if name not in _TIMES}
    return Piece(label=f"Turn {event.turn}, told by the agent", text=_json({"event": event.type, **payload}))


def fitted(pieces: list[Piece]) -> Record:
    """A record of these texts: long ones are cut, and if there are still too many, those in the middle are left out."""
    longest = LONGEST
    while longest > SHORTEST and sum(min(len(one.text), longest) + _AROUND for one in pieces) > MOST:
        longest = max(longest // 2, SHORTEST)
    notes = []
    if cut := sum(len(one.text) > longest for one in pieces):
        notes.append(f"the judge was shown {cut} of {len(pieces)} texts cut to {longest} characters")
    for one in pieces:
        _cut(one, longest)
    kept = _kept(pieces)
    if gone := len(pieces) - len(kept):
        notes.append(f"the judge was not shown {gone} of {len(pieces)} texts: there were too many")
        gap = next(place for place in range(len(pieces)) if place not in kept)
        left_out = Piece(label=f"Here {gone} texts are left out, because there are too many")
        before, after = [place for place in kept if place < gap], [place for place in kept if place > gap]
        pieces = [*(pieces[place] for place in before), left_out, *(pieces[place] for place in after)]
    return Record(pieces=pieces, notes=notes)


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


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
