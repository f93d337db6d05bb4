"""A report that appears whole or not at all."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from atp.report.sink import let_go


@contextmanager
def whole_file(path: Path | None) -> Iterator[IO[bytes]]:
    """A file beside the report, that becomes the report when all is written; or stdout."""
    if path is None:
        with tempfile.TemporaryFile() as whole:
            yield whole
            whole.seek(0)
            _print(whole)
        return
    if must_stay(path):
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()  # a symbolic link stays one
    half = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with half.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            half.chmod(target.stat().st_mode & 0o777)
        half.replace(target)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def must_stay(path: Path) -> bool:
    """Something that can't be replaced by a file beside it: `/dev/null`, or a file in a folder that isn't ours."""
    return path.exists() and not (path.is_file() and os.access(path.resolve().parent, os.W_OK))


def _print(whole: IO[bytes]) -> None:
    sys.stdout.flush()
    try:
        shutil.copyfileobj(whole, sys.stdout.buffer)
        sys.stdout.flush()
    except OSError:
        let_go(sys.stdout)
        raise
