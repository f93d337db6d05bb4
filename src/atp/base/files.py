"""Putting something into a file so that nobody ever sees half of it."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_file(path: Path, text: str) -> None:
    """Put a text into a file, in UTF-8 and with its line ends as they are."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file beside the one that is meant, which takes its place when all is written, and keeps its permissions.

    Raises `OSError` and leaves everything as it was when that can't be done.
    """
    target = path.resolve()  # a symbolic link stays one
    if target.exists() and not target.is_file():  # a device would be replaced by a file
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    half = target.with_name(f".atp-{secrets.token_hex(8)}.tmp")  # the name itself may be as long as one can be
    try:
        with half.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            half.chmod(target.stat().st_mode & 0o777)
        half.replace(target)
    except BaseException as error:
        half.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(half):
            error.filename = str(path)  # nobody has heard of the other
        raise
