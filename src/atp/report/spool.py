"""What waits until the run is over: the pieces of a report, on the disk, each with its place."""

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from atp.suite.result import CaseResult


class Writes(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take them."""


class Order:
    """Where each result belongs: by file, then by its place there, then by agent; one number for all three."""

    def __init__(self, agents: Sequence[str], files: Sequence[str] = ()) -> None:
        self._files = {name: number for number, name in enumerate(files)}
        self._agents = {name: number for number, name in enumerate(agents)}

    def see(self, file: str | None) -> int:
        """A file's number: those that the run didn't name are counted as they come up."""
        return self._files.setdefault(file or "", len(self._files))

    def place(self, result: CaseResult) -> int:
        """The place of a result. Fits into 64 bits."""
        return self.see(result.file) << 48 | min(result.index, 2**32 - 1) << 16 | self._agent(result.agent)

    def by_agent(self, result: CaseResult) -> int:
        """The same with all results of an agent together: by file, then by agent, then by the place in the file."""
        return self.see(result.file) << 48 | self._agent(result.agent) << 32 | min(result.index, 2**32 - 1)

    def _agent(self, name: str) -> int:
        return min(self._agents.setdefault(name, len(self._agents)), 2**16 - 1)


class Spool:
    """Items on their way into a report. In memory is only where each one is: 16 bytes."""

    def __init__(self, folder: Path | None) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (lives as long as the run)
        self._places = array("Q")
        self._offsets = array("Q", [0])

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: int, item: bytes) -> None:
        """Keep an item until the end."""
        self._file.write(item)
        self._places.append(place)
        self._offsets.append(self._offsets[-1] + len(item))

    def __iter__(self) -> Iterator[bytes]:
        """All items, in order."""
        return (item for _, item in self.placed())

    def placed(self) -> Iterator[tuple[int, bytes]]:
        """All of them with their places, in order."""
        self._file.flush()
        for number in sorted(range(len(self)), key=self._places.__getitem__):
            self._file.seek(self._offsets[number])
            yield self._places[number], self._file.read(self._offsets[number + 1] - self._offsets[number])

    def pour(self, into: Writes) -> None:
        """Write them as a JSON list, a line an item."""
        between = b"[\n"
        for item in self:
            into.write(between)
            into.write(item)
            between = b",\n"
        into.write(b"\n]" if len(self) else b"[]")

    def close(self) -> None:
        """The items are gone with it."""
        self._file.close()
