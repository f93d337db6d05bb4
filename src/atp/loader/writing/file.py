"""Putting a text into a file so that nobody ever sees half of it."""

import errno
import os
import secrets
from pathlib import Path


def write_file(path: Path, text: str) -> None:
    """Write the text beside the file and move it there, keeping an earlier file's permissions.

    Raises `OSError` and leaves everything as it was when that can't be done.
    """
    target = path.resolve()  # a symbolic link stays one
    if target.exists() and not target.is_file():  # a device would be replaced by a file
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    half = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with half.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            half.chmod(target.stat().st_mode & 0o777)
        half.replace(target)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
