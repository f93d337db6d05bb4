"""The data inside an HTML report: compressed, in base64, in script elements that no browser runs.

Nothing that an agent said stands in the page as text, so a browser can take nothing of it for markup.
"""

import base64
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import IO, Self

FULL = 256 * 1024
"""Bytes after which a chunk is closed. The browser unpacks whole chunks, each when it is first needed."""
_LEVEL = 6
_OPEN = '<script type="application/octet-stream" id="{}">'
_CLOSE = b"</script>\n"


class Packed:
    """Writes bytes as one element of the page, compressed as they come."""

    def __init__(self, into: IO[bytes], name: str) -> None:
        self._into = into
        self._packer = zlib.compressobj(_LEVEL)
        self._left = b""
        into.write(_OPEN.format(name).encode())

    def write(self, data: bytes, /) -> None:
        """Compress and write bytes."""
        self._write_encoded(self._packer.compress(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Write the rest and the end of the element."""
        self._write_encoded(self._packer.flush())
        self._into.write(base64.b64encode(self._left) + _CLOSE)

    def _write_encoded(self, packed: bytes) -> None:
        waiting = self._left + packed
        whole = len(waiting) - len(waiting) % 3  # base64 encodes three bytes as four letters
        self._into.write(base64.b64encode(waiting[:whole]))
        self._left = waiting[whole:]


class Chunks:
    """The details of cases and trials, packed into chunks in a temporary file. Memory has only the newest chunk."""

    def __init__(self, folder: Path | None) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (lives as long as the run)
        self._items: list[bytes] = []
        self._waiting = 0
        self._count = 0

    @property
    def size(self) -> int:
        """The bytes of all finished chunks."""
        return self._file.tell()

    def add(self, item: bytes) -> tuple[int, int]:
        """Keep an item. Returns where the page finds it: the number of the chunk, and the index in it."""
        place = self._count, len(self._items)
        self._items.append(item)
        self._waiting += len(item)
        if self._waiting >= FULL:
            self._flush()
        return place

    def copy_to(self, into: IO[bytes]) -> None:
        """Write all chunks."""
        self._flush()
        self._file.seek(0)
        shutil.copyfileobj(self._file, into)

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def _flush(self) -> None:
        if not self._items:
            return
        with Packed(self._file, f"chunk-{self._count}") as pack:
            pack.write(b"[" + b",".join(self._items) + b"]")
        self._items.clear()
        self._waiting = 0
        self._count += 1
