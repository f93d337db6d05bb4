"""Answers kept in files: lines that are only ever appended, and a bounded cache made of them.

Several processes may write to the same file. Each line is written whole, under the file's lock; one that a crash tore
is cut off by whoever writes next.
"""

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from atp.base.files import write_file
from atp.base.secrets import mask
from atp.models.cassettes.parts import key_of, line_of, plain

CACHE_BYTES = 100 * 1024 * 1024
"""How much a cache keeps."""
SEGMENTS = 10
"""Of how many files a full cache consists: the oldest is dropped as a whole."""
_NAMES = "[0-9]" * 6 + ".jsonl"


class Place(NamedTuple):
    """Where a line is."""

    file: int
    """The descriptor of its file, which stays valid when the file is replaced."""
    offset: int
    """Where it begins."""
    length: int
    """How many bytes it has."""

    def read(self) -> bytes:
        """The line."""
        return os.pread(self.file, self.length, self.offset)


class LineFile:
    """A file to which lines are appended, by several processes if need be."""

    def __init__(self, path: Path, write: bool = True) -> None:
        """Without `write` it is only read, and must be there."""
        self.path = path
        self._flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if write else os.O_RDONLY
        self._open: list[int] = []

    def lines(self, start: int = 0) -> Iterator[tuple[Place, bytes]]:
        """The lines from an offset on; the last one may be torn, and then has no line break."""
        descriptor = self._newest()
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(start)
            for line in file:
                yield Place(descriptor, start, len(line)), line
                start += len(line)

    def append(self, line: bytes) -> Place:
        """Add a line, which ends with a line break. Raises `OSError`, and the file is as it was."""
        with self._locked() as file:
            end = _mended(file)
            try:
                written = 0
                while written < len(line):
                    written += os.write(file, line[written:])
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file, end)
                raise
        return Place(file, end, len(line))

    def rewrite(self, content: Callable[[], bytes]) -> None:
        """Replace the file, which nobody writes to meanwhile. Whoever reads sees the old one or the new one."""
        with self._locked():
            new = content()
            if new != self.path.read_bytes():
                write_file(self.path, new.decode())

    def holds(self, place: Place) -> bool:
        """Whether a place is in this file."""
        return place.file in self._open

    def close(self) -> None:
        """Have the disk keep what was written, and let go of the file. No place of it can be read any more."""
        for file in self._open:
            with contextlib.suppress(OSError):
                os.fsync(file)
            os.close(file)
        self._open.clear()

    def _newest(self) -> int:
        if not self._open:
            self._open.append(os.open(self.path, self._flags, 0o644))
        return self._open[-1]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        while True:
            file = self._newest()
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                if self._is_current(file):
                    yield file
                    return
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)
            # Somebody has replaced the file. What we know to be in the old one can still be read there.
            self._open.append(os.open(self.path, self._flags, 0o644))

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False


def _mended(file: int) -> int:
    """Where the next line begins, once what a crash left of the last one is gone."""
    size = os.fstat(file).st_size
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return size
    text = os.pread(file, size, 0)
    begin = text.rfind(b"\n") + 1
    try:
        msgspec.json.decode(text[begin:])
    except msgspec.DecodeError:
        os.ftruncate(file, begin)
        return begin
    os.write(file, b"\n")  # an editor saved the file without its last line break
    return size + 1


class _Turn:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Turns:
    """One at a time for each thing, whatever it is."""

    def __init__(self) -> None:
        self._turns: dict[Hashable, _Turn] = {}

    @contextlib.asynccontextmanager
    async def of(self, thing: Hashable) -> AsyncIterator[None]:
        """Wait until nobody else is at this thing, and be at it."""
        turn = self._turns.setdefault(thing, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[thing]


class _Cached(msgspec.Struct):
    key: str
    answer: msgspec.Raw


_DECODER = msgspec.json.Decoder(_Cached)


class Cache:
    """Answers by what was asked, kept across runs until there are too many. Processes may share a folder."""

    def __init__(self, folder: Path, secrets: Iterable[str] = (), most_bytes: int = CACHE_BYTES) -> None:
        """`secrets` are what no file may show."""
        self.folder = folder
        self.problem: str | None = None
        """Why answers are not kept, if they can't be: a run goes on without."""
        self._secrets = frozenset(secrets)
        self._most = most_bytes
        self._segments: dict[str, LineFile] = {}
        self._read: dict[str, int] = {}
        self._known: dict[str, Place] = {}
        self._turns = Turns()

    async def through(
        self,
        parts: dict[str, Any],
        call: Callable[[], Awaitable[Any]],
        usable: Callable[[Any], bool] = lambda answer: True,
    ) -> Any:
        """The answer (any JSON value) to what `parts` says: kept from before if it is `usable`, or called for and kept.

        Those who ask the same at the same time share one call; one that fails is not kept, and the next one calls.
        """
        key = key_of(plain(parts))
        async with self._turns.of(key):
            found = self._find(key)
            kept = None if found is None else json.loads(bytes(found.answer))
            if found is None or not usable(kept):
                kept = plain(await call())
                self._keep(key, kept)
        return kept

    def hide(self, secrets: Iterable[str]) -> None:
        """Further texts that no file may show from here on."""
        self._secrets |= frozenset(secrets)

    def close(self) -> None:
        """Let go of the files."""
        for segment in self._segments.values():
            segment.close()
        for reset in (self._segments, self._read, self._known):
            reset.clear()

    def _find(self, key: str) -> _Cached | None:
        if key not in self._known:
            with contextlib.suppress(OSError):  # told of when something is to be kept
                self._catch_up()
        place = self._known.get(key)
        return None if place is None else _DECODER.decode(place.read())

    def _catch_up(self) -> None:
        """Read what was added to the folder, by us or by others."""
        names = sorted(path.name for path in self.folder.glob(_NAMES))
        for gone in self._segments.keys() - set(names):
            self._forget(gone)
        for name in names:
            segment = self._segments.setdefault(name, LineFile(self.folder / name))
            for place, line in segment.lines(self._read.get(name, 0)):
                if not line.endswith(b"\n"):  # torn, or being written just now
                    break
                self._read[name] = place.offset + place.length
                with contextlib.suppress(msgspec.MsgspecError):  # damaged: it will be asked for again
                    self._known[_DECODER.decode(line).key] = place

    def _forget(self, name: str) -> None:
        segment = self._segments.pop(name)
        self._read.pop(name, None)
        self._known = {key: place for key, place in self._known.items() if not segment.holds(place)}
        segment.close()

    def _keep(self, key: str, answer: Any) -> None:
        line = line_of({"key": key, "answer": mask(answer, self._secrets, numbers=False)})
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            segment = self._newest()
            self._known[key] = segment.append(line)
            self._drop_oldest()
        except OSError as error:
            self.problem = f"answers can't be kept in {self.folder}: {error.strerror or error}"

    def _newest(self) -> LineFile:
        path = max(self.folder.glob(_NAMES), default=self.folder / "000001.jsonl")
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size >= self._most // SEGMENTS:
                path = path.with_name(f"{int(path.stem) + 1:06}.jsonl")
        return self._segments.setdefault(path.name, LineFile(path))

    def _drop_oldest(self) -> None:
        for path in sorted(self.folder.glob(_NAMES))[:-SEGMENTS]:
            path.unlink(missing_ok=True)
            if path.name in self._segments:
                self._forget(path.name)
