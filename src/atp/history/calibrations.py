"""Calibrations: how right a judge was measured to be, in files that are committed, `calibrations/NAME.json`.

A calibration holds for one judge (its model and settings or its files, its prompt, its number of votes) and for the
criteria that were labelled. A judge or a criterion that has changed since is one that was never calibrated. A file that
is damaged, of a newer format or none of ATP's is refused by name.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from atp.base.diagnostics import LoadError, load_error
from atp.base.files import write_file
from atp.base.json.text import UNREADABLE
from atp.base.project import unreadable
from atp.stats.calibration import Accuracy
from atp.stats.self_consistency import Flips
from atp.suite.result import JudgedBy

FOLDER = "calibrations"
ENDING = ".json"
FORMAT = 1
"""The format of calibrations that this version writes. A higher one is refused."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ENCODER = msgspec.json.Encoder(order="sorted")


class Measured(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What was measured of a judge, by one criterion or by all of its criteria."""

    criterion: str | None = None
    """The criterion's digest; None for all criteria together."""
    text: str | None = None
    """The criterion; None for all criteria together."""
    passed: int = 0
    """Verdicts of the run that passed."""
    failed: int = 0
    """Verdicts of the run that failed."""
    accuracy: Accuracy
    """What the labels say."""
    flips: Flips | None = None
    """How often the judge changed its verdict on the same conversation, if it was asked again."""


class JudgeCalibration(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What was measured of one judge."""

    judge: JudgedBy
    """The judge."""
    whole: Measured
    """By all of its criteria together."""
    criteria: list[Measured] = []
    """By each of its criteria that verdicts were drawn from, with labels or without."""


class Calibration(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The content of a calibration's file."""

    type: Literal["atp calibration"]
    """Tells a calibration from other JSON."""
    format: Annotated[int, msgspec.Meta(ge=1)]
    """The format's number."""
    run: str
    """The id of the run whose verdicts were labelled."""
    at: float
    """When the calibration was made, in seconds since 1970."""
    agents: dict[str, list[str]]
    """The agents whose answers were labelled, each with the digests of its configurations."""
    people: list[str] = []
    """Who labelled."""
    judges: list[JudgeCalibration]
    """What was measured."""


class _Head(msgspec.Struct):
    type: str = ""
    format: int = 0


class Found(NamedTuple):
    """The calibration of a judge, and the file that it stands in."""

    name: str
    """The name of the file."""
    calibration: Calibration
    """All of the file."""
    judge: JudgeCalibration
    """The part about the judge."""

    def by(self, criterion: str | None) -> Measured | None:
        """What was measured by a criterion, or by all; None if verdicts by this criterion were never drawn from."""
        if criterion is None:
            return self.judge.whole
        return next((one for one in self.judge.criteria if one.criterion == criterion), None)


class Calibrations:
    """The calibrations of a project."""

    def __init__(self, files: Iterable[tuple[str, Calibration]] = ()) -> None:
        self.files = dict(files)
        """Each calibration by the name of its file."""
        self._by_judge: dict[str, list[Found]] = {}
        for name, calibration in sorted(self.files.items(), key=lambda one: -one[1].at):
            for judge in calibration.judges:
                self._by_judge.setdefault(judge.judge.digest, []).append(Found(name, calibration, judge))

    def of(self, judge: JudgedBy, criterion: str | None = None) -> Found | None:
        """The newest calibration of a judge by a criterion; by any, if none is given. None if there is none."""
        found = self._by_judge.get(judge.digest, ())
        return next((one for one in found if one.by(criterion) is not None), None)

    def is_informative(self, judge: JudgedBy, criterion: str) -> bool:
        """True if labels show the judge to be better than chance by a criterion, or by all criteria together."""
        found = self.of(judge, criterion)
        measured = () if found is None else (found.by(criterion), found.judge.whole)
        return any(one is not None and one.accuracy.is_informative for one in measured)

    def names(self, judge: JudgedBy) -> list[JudgedBy]:
        """Calibrated judges of the same name: what a judge was before its model, prompt or votes changed."""
        everyone = (one.judge.judge for found in self._by_judge.values() for one in found)
        return [one for one in everyone if one.name == judge.name]


def folder(root: Path) -> Path:
    """The folder of a project's calibrations."""
    return root / FOLDER


def path_of(root: Path, name: str) -> Path:
    """The file of a calibration. Raises `LoadError` for a name that none can have."""
    if not _NAME.fullmatch(name) or name.endswith(ENDING):
        hint = "use letters, digits, `.`, `_` and `-`, for example support"
        raise load_error("calibration-name", f"`{name}` can't be the name of a calibration", hint)
    return folder(root) / f"{name}{ENDING}"


def load_calibrations(root: Path) -> Calibrations:
    """The calibrations of a project. Raises `LoadError` with all files that can't be used."""
    where = folder(root)
    try:
        paths = sorted(path for path in where.iterdir() if path.name.endswith(ENDING))
    except (FileNotFoundError, NotADirectoryError):
        return Calibrations()
    except OSError as error:
        raise unreadable(where, error) from error
    wrong: list[LoadError] = []
    found = []
    for path in paths:
        try:
            found.append((path.name.removesuffix(ENDING), read(path)))
        except LoadError as error:
            wrong.append(error)
    if wrong:
        raise LoadError([one for error in wrong for one in error.diagnostics])
    return Calibrations(found)


def read(path: Path) -> Calibration:
    """The calibration in a file. Raises `LoadError`."""
    try:
        data = path.read_bytes()
        head = msgspec.json.decode(data, type=_Head)
        if head.type != "atp calibration":
            raise _damaged(path, "it is other JSON")
        if head.format > FORMAT:
            message = f"{path} has format {head.format}, and this version reads calibrations up to format {FORMAT}"
            raise load_error("newer-format", message, "update ATP, or measure again")
        found = msgspec.json.decode(data, type=Calibration)
    except OSError as error:
        raise unreadable(path, error) from error
    except UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    measured = [one for judge in found.judges for one in (judge.whole, *judge.criteria)]
    if not all(one.accuracy.is_possible for one in measured):
        raise _damaged(path, "its figures are not possible")
    return found


def save(root: Path, name: str, calibration: Calibration, *, force: bool = False) -> Path:
    """Write a calibration. Raises `LoadError` if that of another run has the name and `force` is not given."""
    path = path_of(root, name)
    if path.exists() and not force and (there := read(path).run) != calibration.run:
        message = f"{path} has the calibration of another run, {there}"
        raise load_error("calibration-exists", message, "replace it with --force, or give another name with --name")
    data = msgspec.json.format(_ENCODER.encode(calibration), indent=1)
    try:
        path.parent.mkdir(exist_ok=True)
        write_file(path, data.decode() + "\n")
    except OSError as error:
        message = f"{path} can't be written: {error.strerror or error}"
        raise load_error(
            "unwritable-calibration", message, "check its permissions, and the space on the disk"
        ) from error
    return path


def _damaged(path: Path, why: str) -> LoadError:
    hint = "measure again (atp calibrate measure RUN), or get the file from git: git checkout"
    return load_error("bad-calibration", f"{path} is damaged, or no calibration of ATP's: {why}", hint)
