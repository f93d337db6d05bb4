"""Cassettes: the answers of models, tools, simulators and judges, recorded to a folder and replayed from it.

The folder has one file for each boundary and one line for each answer, and is made to be committed: the same recording
gives the same file, and no line contains a secret, a time or a local path. An answer is found by a hash of all that
decides it. If one trial asks the same several times, the answers are numbered.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from atp.base.json.text import UNREADABLE
from atp.base.line_file import LineFile, StoredLine
from atp.base.secrets import secrets_of
from atp.models.cassettes.parts import Difference, differences, key_of, line_of, plain
from atp.models.cassettes.store import KeyedLocks
from atp.models.model import CassetteError, CassetteMiss

Boundary = Literal["model", "tool", "simulator", "judge", "generator"]

_TAKEN: ContextVar[dict[str, set[int]]] = ContextVar("taken")
"""The numbers of the answers that the current trial has got, by the key of the call."""
_FEW_MISSES = 20
"""The first misses, for which the nearest entry is searched thoroughly, because people read them."""
_COMPARED_BYTES = 16 * 1024 * 1024
"""Bytes of entries that a thorough search compares."""
_RESTORE = "take the file from version control, or delete it and record again"
_SHOWN = 3
"""How many differences a miss names."""


def begin_trial() -> None:
    """Number the answers to repeated calls from 1 again, in this task and those that it starts."""
    _TAKEN.set({})


class _Entry(msgspec.Struct):
    key: str
    boundary: str
    parts: msgspec.Raw
    repeat: int
    answer: msgspec.Raw


_DECODER = msgspec.json.Decoder(_Entry)


class Cassette:
    """A folder of recorded answers."""

    def __init__(self, folder: Path, mode: Literal["record", "replay"], secrets: Iterable[str] = ()) -> None:
        """`secrets` are masked in every line and in what is looked up. Raises `CassetteError`."""
        self.folder = folder
        self.mode = mode
        self._secrets = secrets
        self._files: dict[str, LineFile] = {}
        self._known: dict[tuple[str, int], StoredLine] = {}
        self._secret_answers: dict[tuple[str, int], Any] = {}
        self._taken: dict[str, set[int]] = {}
        self._locks = KeyedLocks()
        self._misses = 0
        try:
            self._load()
        except OSError as error:
            self.close()
            raise CassetteError(f"the cassette {folder} can't be used: {error.strerror or error}") from error

    async def through(self, boundary: Boundary, parts: dict[str, Any], call: Callable[[], Awaitable[Any]]) -> Any:
        """The answer (any JSON value) to the call that `parts` describes: called for and recorded, or replayed.

        `parts` has all that decides the answer (model, settings, messages, tools, run) and nothing else. When
        recording, the first trial that makes a call gets the answer of `call()`, and other trials that make the same
        call get that answer. A call that fails is not recorded. Raises `CassetteMiss`, `CassetteError`, and as `call`.
        """
        shown = secrets_of(self._secrets).mask(plain(parts), numbers=True)
        key = key_of(boundary, shown)
        taken = _TAKEN.get(self._taken).setdefault(key, set())
        repeat = next(number for number in count(1) if number not in taken)
        taken.add(repeat)
        try:
            if self.mode == "replay":
                return self._replay(boundary, shown, key, repeat)
            async with self._locks.locked((key, repeat)):
                if (key, repeat) in self._known:
                    return self._answer(key, repeat)
                return self._record(boundary, shown, key, repeat, await call())
        except BaseException:
            taken.discard(repeat)  # a call repeated after a failure gets the same number
            raise

    def close(self) -> None:
        """Sort the recorded lines and close the files. Raises `CassetteError`."""
        try:
            if self.mode == "record":
                for file in self._files.values():
                    file.rewrite(partial(_in_order, file))
        except OSError as error:
            raise CassetteError(f"the cassette {self.folder} can't be written: {error.strerror or error}") from error
        finally:
            for file in self._files.values():
                file.close()
            self._files.clear()
            self._known.clear()

    def _load(self) -> None:
        """Read the files; also before recording over them, so that damage is reported before the run."""
        for boundary in get_args(Boundary):
            path = self.folder / f"{boundary}.jsonl"
            if path.exists():
                file = LineFile(path, write=self.mode == "record")
                places = {(entry.key, entry.repeat): place for entry, place, _ in _entries(file)}
                if self.mode == "replay":
                    self._files[boundary] = file
                    self._known |= places
                else:
                    file.close()
        if self.mode == "record":
            self.folder.mkdir(parents=True, exist_ok=True)
        elif not self._files:
            raise CassetteError(f"nothing is recorded in {self.folder}", "record it first, with --record")

    def _answer(self, key: str, repeat: int) -> Any:
        if (key, repeat) in self._secret_answers:
            return self._secret_answers[key, repeat]
        return self._value(_DECODER.decode(self._known[key, repeat].read()).answer)

    def _value(self, raw: msgspec.Raw) -> Any:
        try:
            return json.loads(bytes(raw))
        except (ValueError, RecursionError) as error:  # a number of thousands of digits
            raise CassetteError(f"an entry in {self.folder} can't be read: {error}", _RESTORE) from error

    def _record(self, boundary: Boundary, parts: Any, key: str, repeat: int, value: Any) -> Any:
        try:
            answer = plain(value)
        except TypeError as error:
            raise CassetteError(f"an answer at the boundary `{boundary}` can't be recorded: {error}") from error
        shown = secrets_of(self._secrets).mask(answer, numbers=True)
        line = line_of({"key": key, "boundary": boundary, "parts": parts, "repeat": repeat, "answer": shown})
        file = self._files.setdefault(boundary, LineFile(self.folder / f"{boundary}.jsonl"))
        try:
            self._known[key, repeat] = file.append(line)
        except OSError as error:
            raise CassetteError(f"{file.path} can't be written: {error.strerror or error}") from error
        if shown != answer:
            self._secret_answers[key, repeat] = answer
        return answer

    def _replay(self, boundary: Boundary, parts: Any, key: str, repeat: int) -> Any:
        if (key, repeat) in self._known:
            return self._answer(key, repeat)
        self._misses += 1
        why = self._why(boundary, parts, key, repeat)
        raise CassetteMiss(
            f"nothing is recorded at the boundary `{boundary}` for this call: {why}. "
            f"If the change is intended, record again (--record {self.folder})"
        )

    def _why(self, boundary: Boundary, parts: Any, key: str, repeat: int) -> str:
        if repeat > 1 and (key, 1) in self._known:
            return f"one trial asks the same {repeat} times, and {repeat - 1} of the answers are recorded"
        if boundary not in self._files:
            return "there is no recording of it at all"
        most = _COMPARED_BYTES if self._misses <= _FEW_MISSES else _COMPARED_BYTES // 16
        nearest: list[Difference] = []
        weight = float("inf")
        for entry, place, _ in _entries(self._files[boundary]):
            found = list(differences(self._value(entry.parts), parts))
            apart = sum(one.weight for one in found)
            if apart < weight:
                nearest, weight = found, apart
            if place.offset > most:
                break
        shown = [str(one) for one in nearest[:_SHOWN]]
        if len(nearest) > _SHOWN:
            shown.append(f"{len(nearest) - _SHOWN} more differences")
        return "; ".join(shown) or "its key is another, so its line was changed by hand"


def _entries(file: LineFile) -> Iterator[tuple[_Entry, StoredLine, bytes]]:
    """The entries of a file, without a last line that a crash cut off. Raises `CassetteError`."""
    for number, (place, line) in enumerate(file.lines(), 1):
        try:
            entry = _DECODER.decode(str(line, "utf-8"))  # in bytes, the encoding of the parts would not be checked
        except UNREADABLE as error:
            # Other JSON was not cut off: the next line is appended behind it, and it is refused then.
            if not line.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
                return
            raise CassetteError(
                f"{file.path}:{number} is no entry of a cassette: {error}",
                _RESTORE,
            ) from error
        yield entry, place, line


def _in_order(file: LineFile) -> bytes:
    """The file's lines sorted by key, each key's last line only: the same content whatever the order of the calls."""
    newest = {(entry.key, entry.repeat): line for entry, _, line in _entries(file)}
    return b"".join(newest[key].rstrip(b"\r\n") + b"\n" for key in sorted(newest))
