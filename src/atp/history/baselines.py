"""Baselines: the figures of a run in a file that is committed, `baselines/NAME.json.gz` at the project's root.

The same run gives the same bytes, so that saving a baseline again changes nothing in git. A file that is damaged, of a
newer format or none of ATP's is refused by name.
"""

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Literal

import msgspec

from atp.base.diagnostics import LoadError, load_error
from atp.base.files import replacing
from atp.base.json.text import UNREADABLE
from atp.base.near import near_miss
from atp.base.project import unreadable
from atp.history.figures import CaseFigures, RunFigures

FOLDER = "baselines"
ENDING = ".json.gz"
FORMAT = 1
"""The format of baselines that this version writes. A higher one is refused."""
LARGEST = 512 * 2**20
"""Bytes of an unpacked baseline. A larger one is no baseline: a small file can unpack to any size."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RESERVED = re.compile(r"last(~.*)?|commit", re.IGNORECASE)
_ENCODER = msgspec.json.Encoder(order="sorted")


class Baseline(RunFigures, omit_defaults=True, kw_only=True):
    """The content of a baseline."""

    type: Literal["atp baseline"]
    """Tells a baseline from other JSON."""
    format: int
    """The format's number."""


class _Head(msgspec.Struct):
    type: str = ""
    format: int = 0


def folder(root: Path) -> Path:
    """The folder of a project's baselines."""
    return root / FOLDER


def path_of(root: Path, name: str) -> Path:
    """The file of a baseline. Raises `LoadError` for a name that no baseline can have."""
    if not _NAME.fullmatch(name) or name.endswith(ENDING):
        hint = "use letters, digits, `.`, `_` and `-`, for example main or v1.2"
        raise load_error("baseline-name", f"`{name}` can't be the name of a baseline", hint)
    if _RESERVED.fullmatch(name):
        hint = "give another name, for example main"
        raise load_error("baseline-name", f"`{name}` can't be the name of a baseline: it names a run", hint)
    return folder(root) / f"{name}{ENDING}"


def exists(root: Path, name: str) -> bool:
    """True if there is a file of a baseline with this name."""
    return bool(_NAME.fullmatch(name)) and not _RESERVED.fullmatch(name) and path_of(root, name).is_file()


def names(root: Path) -> list[str]:
    """The names of all baselines of a project."""
    try:
        found = [path.name.removesuffix(ENDING) for path in folder(root).iterdir() if path.name.endswith(ENDING)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder(root), error) from error
    return sorted(name for name in found if exists(root, name))


def save(root: Path, name: str, run: RunFigures, *, force: bool = False) -> Path:
    """Write a baseline. Raises `LoadError` if it can't be written, or is there already and `force` is not given."""
    path = path_of(root, name)
    if path.exists() and not force:
        raise load_error("baseline-exists", f"there is a baseline `{name}` already: {path}", "replace it with --force")
    if not run.cases:
        raise load_error("baseline-empty", f"the run {run.run} has no case to save", "run some tests first")
    data = pack(run)
    try:
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        message = f"{path} can't be written: {error.strerror or error}"
        raise load_error("unwritable-baseline", message, "check its permissions, and the space on the disk") from error
    return path


def pack(run: RunFigures) -> bytes:
    """The bytes of a baseline: the same for the same figures."""
    content = {field: getattr(run, field) for field in RunFigures.__struct_fields__}
    baseline = Baseline(type="atp baseline", format=FORMAT, **content)
    plain = msgspec.to_builtins(baseline, str_keys=True)  # what is keyed by numbers can't be sorted
    packed = io.BytesIO()
    # Neither a time nor a name in the head of the file: both would be others each time.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as file:
        file.write(_ENCODER.encode(plain) + b"\n")
    return packed.getvalue()


def load(root: Path, name: str) -> Baseline:
    """The baseline of a name. Raises `LoadError`."""
    path = path_of(root, name)
    if not path.is_file():
        known = names(root)
        meant = near_miss(name, known)
        hint = f"did you mean `{meant}`?" if meant else f"save one: atp baseline save {name}"
        raise load_error("no-baseline", f"there is no baseline `{name}` in {folder(root)}", hint)
    return read(path)


def read(path: Path) -> Baseline:
    """The baseline in a file. Raises `LoadError`."""
    try:
        with gzip.open(path) as file:
            data = file.read(LARGEST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, f"it can't be unpacked: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if len(data) > LARGEST:
        raise _damaged(path, f"it has more than {LARGEST // 2**20} MB")
    try:
        head = msgspec.json.decode(data, type=_Head)
    except UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    if head.type != "atp baseline":
        raise _damaged(path, "it is other JSON")
    if head.format < 1:
        raise _damaged(path, f"there is no format {head.format}")
    if head.format > FORMAT:
        message = f"{path} has format {head.format}, and this version of ATP reads baselines up to format {FORMAT}"
        raise load_error("newer-format", message, "update ATP, or read it with the version that wrote it")
    try:
        found = msgspec.json.decode(data, type=Baseline)
    except UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    wrong = next((case for case in found.cases if not _is_possible(case)), None)
    if wrong is not None:
        raise _damaged(path, f"the figures of case `{wrong.id}` are not possible")
    if twice := _twice(found):
        raise _damaged(path, f"case `{twice.id}` of agent `{twice.agent}` is in it twice")
    return found


def _twice(baseline: Baseline) -> CaseFigures | None:
    """A case that has the same file, id and agent as one before it. Suites without a file may have the same ids."""
    seen: set[tuple[str, str, str]] = set()
    for case in baseline.cases:
        key = (case.file, case.id, case.agent)
        if case.file and key in seen:
            return case
        seen.add(key)
    return None


def _is_possible(case: CaseFigures) -> bool:
    return case.passed <= case.judged and (case.rate is None) == (case.judged == 0)


def drop(root: Path, name: str) -> Path:
    """Delete a baseline, whatever is in its file. Raises `LoadError` if there is none."""
    path = path_of(root, name)
    if not path.is_file():
        load(root, name)  # says so
    try:
        path.unlink()
    except OSError as error:
        message = f"{path} can't be deleted: {error.strerror or error}"
        raise load_error("unwritable-baseline", message, "check the permissions of its folder") from error
    return path


def _damaged(path: Path, why: str) -> LoadError:
    hint = "save it again (atp baseline save NAME --force), or get the file from git: git checkout"
    return load_error("bad-baseline", f"{path} is damaged, or no baseline of ATP's: {why}", hint)
