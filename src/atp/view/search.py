"""Searches the records of all trials for a text: questions, answers, tool calls, verdicts, reasons."""

import json
from pathlib import Path
from typing import Any

from atp.base.json.text import UNREADABLE
from atp.base.secrets import Hide
from atp.base.text import cut
from atp.journal.read import decode_trial
from atp.journal.records import NAME
from atp.suite.result import TrialResult

MOST = 100
"""The most trials that are found."""
_AROUND = 80
_TRIAL = b'{"type":"trial"'


def search(runs: list[Path], text: str, hide: Hide) -> dict[str, Any]:
    """The newest trials with a text in them, upper and lower case being the same, and whether there are more."""
    wanted = " ".join(text.split()).casefold()
    found: list[dict[str, Any]] = []
    if not wanted:
        return {"found": found, "more": False}
    # The journal has texts as JSON escapes them. A line without the longest word need not be taken apart.
    longest = max(wanted.split(), key=len)
    word = json.dumps(longest, ensure_ascii=False)[1:-1]
    needle = word.encode(errors="surrogatepass") if word.isascii() else b""
    for run in runs:
        for trial in _trials(run, needle):
            shown = _around(hide(trial), wanted)
            if shown is None:
                continue
            if len(found) == MOST:
                return {"found": found, "more": True}
            found.append(
                {
                    "run": run.name,
                    "case": trial.case,
                    "agent": trial.agent,
                    "status": trial.status,
                    "variation": trial.variation,
                    "trial": trial.run,
                    "text": shown,
                }
            )
    return {"found": found, "more": False}


def _trials(run: Path, needle: bytes) -> Any:
    """The trials of a run whose lines may have the text in them."""
    try:
        with (run / NAME).open("rb") as file:
            for raw in file:
                if raw.startswith(_TRIAL) and needle in raw.lower():
                    try:
                        yield decode_trial(raw).result
                    except UNREADABLE:
                        continue
    except OSError:
        return


def _around(trial: TrialResult, wanted: str) -> str | None:
    """The text around the place where `wanted` stands in a trial; None if it stands nowhere."""
    for text in _texts(trial):
        flat = " ".join(text.split())
        at = flat.casefold().find(wanted)
        if at >= 0:
            begin = max(0, at - _AROUND)
            return ("…" if begin else "") + cut(flat[begin:], 2 * _AROUND + len(wanted))
    return None


def _texts(trial: TrialResult) -> Any:
    """What is searched of a trial, in the order of what a reader looks for."""
    yield trial.case
    yield trial.error or ""
    transcript = trial.transcript
    for message in transcript.messages:
        yield _text(message.get("content"))
    for turn in transcript.turns:
        yield _text(turn.output)
    for call in transcript.tool_calls:
        yield f"{call.name} {_text(call.arguments)} {_text(call.result)} {call.error or ''}"
    for verdict in trial.verdicts:
        yield " ".join(filter(None, (verdict.name, verdict.message, *map(str, verdict.evidence or ()))))
    yield from transcript.logs


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
