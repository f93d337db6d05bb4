"""Files of lines that are only appended, and a cache of limited size made of them.

Several processes may write to the same file. Each line is written whole, under the file's lock. The next writer removes
a line that a crash cut off.
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
"""The size of a full cache."""
SEGMENTS = 10
"""Files of a full cache, of which the oldest is deleted."""
_NAMES = "[0-9]" * 6 + ".jsonl"


class Place(NamedTuple):
    """Where a line is stored."""

    file: int
    """The descriptor of the file, which stays valid when the file is replaced."""
    offset: int
    """Where the line begins."""
    length: int
    """How many bytes the line has."""

    def read(self) -> bytes:
        """Read the line."""
        return os.pread(self.file, self.length, self.offset)


class LineFile:
    """A file to which lines are appended, by any number of processes."""

    def __init__(self, path: Path, write: bool = True) -> None:
        """Without `write` the file is only read, and must exist."""
        self.path = path
        self._flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if write else os.O_RDONLY
        self._open: list[int] = []

    def lines(self, start: int = 0) -> Iterator[tuple[Place, bytes]]:
        """The lines from an offset on. A last line without a line break was cut off, or is being written."""
        descriptor = self._newest()
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(start)
            for line in file:
                yield Place(descriptor, start, len(line)), line
                start += len(line)

    def append(self, line: bytes) -> Place:
        """Append a line that ends with a line break. Raises `OSError` and then leaves the file as it was."""
        with self._locked() as file:
            end = _end_of_last_line(file)
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
        """Replace the file's content under its lock. Readers get the old content or the new one."""
        with self._locked():
            new = content()
            if new != self.path.read_bytes():
                write_file(self.path, new.decode())

    def contains(self, place: Place) -> bool:
        """True if a place is in this file."""
        return place.file in self._open

    def close(self) -> None:
        """Sync and close the file. Its places can't be read any more."""
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
            # Another process has replaced the file. Known places can still be read from the old one.
            self._open.append(os.open(self.path, self._flags, 0o644))

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False


def _end_of_last_line(file: int) -> int:
    """Remove what a crash left of a last line, and return where the next line begins."""
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


class _CountedLock:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class KeyedLocks:
    """A lock for each key, which exists only while tasks use it."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, _CountedLock] = {}

    @contextlib.asynccontextmanager
    async def locked(self, key: Hashable) -> AsyncIterator[None]:
        """Hold the lock of a key."""
        counted = self._locks.setdefault(key, _CountedLock())
        counted.users += 1
        try:
            async with counted.lock:
                yield
        finally:
            counted.users -= 1
            if not counted.users:
                del self._locks[key]


class _Cached(msgspec.Struct):
    key: str
    answer: msgspec.Raw


_DECODER = msgspec.json.Decoder(_Cached)


class Cache:
    """Answers by the call that they answer, kept across runs up to a size. Processes may share a folder."""

    def __init__(self, folder: Path, secrets: Iterable[str] = (), most_bytes: int = CACHE_BYTES) -> None:
        """`secrets` are masked in every file."""
        self.folder = folder
        self.problem: str | None = None
        """Why answers can't be kept, if so. The run continues without the cache."""
        self._secrets = frozenset(secrets)
        self._most = most_bytes
        self._segments: dict[str, LineFile] = {}
        self._read: dict[str, int] = {}
        self._known: dict[str, Place] = {}
        self._locks = KeyedLocks()

    async def through(
        self,
        parts: dict[str, Any],
        call: Callable[[], Awaitable[Any]],
        usable: Callable[[Any], bool] = lambda answer: True,
    ) -> Any:
        """The answer (any JSON value) to the call that `parts` describes: a kept one that is `usable`, else `call()`'s.

        Concurrent calls with the same parts share one `call()`. The answer of a call that fails is not kept.
        """
        key = key_of(plain(parts))
        async with self._locks.locked(key):
            found = self._find(key)
            kept = None if found is None else json.loads(bytes(found.answer))
            if found is None or not usable(kept):
                kept = plain(await call())
                self._keep(key, kept)
        return kept

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these texts, too, from here on."""
        self._secrets |= frozenset(secrets)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments.values():
            segment.close()
        for reset in (self._segments, self._read, self._known):
            reset.clear()

    def _find(self, key: str) -> _Cached | None:
        if key not in self._known:
            with contextlib.suppress(OSError):  # reported when an answer is to be kept
                self._catch_up()
        place = self._known.get(key)
        return None if place is None else _DECODER.decode(place.read())

    def _catch_up(self) -> None:
        """Read the lines that this process or others have added to the folder."""
        names = sorted(path.name for path in self.folder.glob(_NAMES))
        for gone in self._segments.keys() - set(names):
            self._forget(gone)
        for name in names:
            segment = self._segments.setdefault(name, LineFile(self.folder / name))
            for place, line in segment.lines(self._read.get(name, 0)):
                if not line.endswith(b"\n"):  # cut off, or being written now
                    break
                self._read[name] = place.offset + place.length
                with contextlib.suppress(msgspec.MsgspecError):  # damaged: the call will be made again
                    self._known[_DECODER.decode(line).key] = place

    def _forget(self, name: str) -> None:
        segment = self._segments.pop(name)
        self._read.pop(name, None)
        self._known = {key: place for key, place in self._known.items() if not segment.contains(place)}
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
