"""Writes a file whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_file(path: Path, text: str) -> None:
    """Write a text in UTF-8, with its line ends as they are."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces the file at `path` once all is written, and gets its permissions.

    Raises `OSError`, and leaves the file as it was, if writing fails.
    """
    target = path.resolve()  # a symbolic link stays one
    if target.exists() and not target.is_file():  # a file must not replace a device
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    # Not the file's name with an ending: that name may be as long as is allowed.
    half = target.with_name(f".atp-{secrets.token_hex(8)}.tmp")
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
            error.filename = str(path)  # the user doesn't know the temporary file
        raise
