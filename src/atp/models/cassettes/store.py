"""A cache of answers, of limited size, in files of lines that are only appended."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from atp.base.json.found import MISSING
from atp.base.json.text import UNREADABLE
from atp.base.line_file import LineFile, StoredLine
from atp.base.secrets import secrets_of
from atp.models.cassettes.parts import key_of, line_of, plain

CACHE_BYTES = 100 * 1024 * 1024
"""The size of a full cache."""
SEGMENTS = 10
"""Files of a full cache, of which the oldest is deleted."""
_NAMES = "[0-9]" * 6 + ".jsonl"


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
        self._secrets = secrets
        self._most = most_bytes
        self._segments: dict[str, LineFile] = {}
        self._read: dict[str, int] = {}
        self._known: dict[str, StoredLine] = {}
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
            kept = self._find(key)
            if kept is MISSING or not usable(kept):
                kept = plain(await call())
                self._keep(key, kept)
        return kept

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments.values():
            segment.close()
        for reset in (self._segments, self._read, self._known):
            reset.clear()

    def _find(self, key: str) -> Any:
        """The kept answer, or `MISSING`."""
        if key not in self._known:
            with contextlib.suppress(OSError):  # reported when an answer is to be kept
                self._catch_up()
        place = self._known.get(key)
        try:
            return MISSING if place is None else json.loads(bytes(_DECODER.decode(place.read()).answer))
        except (ValueError, RecursionError):  # damaged: the call is made again
            return MISSING

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
                with contextlib.suppress(*UNREADABLE):  # damaged: the call is made again
                    self._known[_DECODER.decode(line).key] = place

    def _forget(self, name: str) -> None:
        segment = self._segments.pop(name)
        self._read.pop(name, None)
        self._known = {key: place for key, place in self._known.items() if not segment.contains(place)}
        segment.close()

    def _keep(self, key: str, answer: Any) -> None:
        line = line_of({"key": key, "answer": secrets_of(self._secrets).mask(answer, numbers=False)})
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
