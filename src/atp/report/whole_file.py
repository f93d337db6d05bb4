"""A report that appears whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from atp.base.files import replacing
from atp.report.sink import let_go, open_stdout


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
    with replacing(path) as file:
        yield file


def must_stay(path: Path) -> bool:
    """Something that can't be replaced by a file beside it: `/dev/null`, or a file in a folder that isn't ours."""
    return path.exists() and not (path.is_file() and os.access(path.resolve().parent, os.W_OK))


def _print(whole: IO[bytes]) -> None:
    stdout = open_stdout()
    stdout.flush()
    try:
        shutil.copyfileobj(whole, stdout.buffer)
        stdout.flush()
    except OSError:
        let_go(stdout)
        raise
