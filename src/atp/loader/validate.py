"""Validates plain data as a record, and notes every mistake at its place in the file.

pydantic finds the mistakes, and `error_messages` words them in the file's own terms. Values with mistakes are then left
out and the rest is validated again, so that a file with mistakes still shows what could be understood.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, get_args

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic_core import ErrorDetails

from atp.base.diagnostics import Diagnostics, Place
from atp.base.secrets import secrets_of
from atp.loader.error_messages import CommandText, Mistake, either, mistake_of
from atp.suite.kinds import OneOf
from atp.suite.record import Defaulted, Filled

Shape = TypeVar("Shape", bound=BaseModel)
DataPath = tuple[str | int, ...]
"""The keys and indexes that lead to a value in a file's data."""

_FOLLOWS = Mistake("missing-key", "")
"""A mistake that another one explains: not reported."""
_REPORTED = Mistake("reported", "")
"""A mistake that was reported before validation."""


class Unfilled(str):
    """Text with a variable that has no value, or that is no number after all. Reported already, so never again."""

    __slots__ = ()


class Locator(Protocol):
    """Finds the place of a key or value in a file. Only called when there is a diagnostic to place."""

    def key(self, path: DataPath) -> Place:
        """The place of the last key of `path`; for a missing key, of the mapping that should have it."""

    def value(self, path: DataPath) -> Place:
        """The place where the value begins."""


class NoLocator:
    """The locator of data that comes from no file."""

    def key(self, path: DataPath) -> Place:
        """The first line and column."""
        return Place(1, 1)

    value = key


class RenamedKeys:
    """The locator of a mapping in which some keys were renamed before validation, such as a misspelled key."""

    def __init__(self, locate: Locator, base: DataPath, written: dict[str, str]) -> None:
        """`written` has the keys as the file spells them in the mapping at `base`, by their new names."""
        self._locate = locate
        self._base = base
        self._written = written

    def key(self, path: DataPath) -> Place:
        """The place of a key by its new name."""
        return self._locate.key(self._as_written(path))

    def value(self, path: DataPath) -> Place:
        """The place of the key's value."""
        return self._locate.value(self._as_written(path))

    def _as_written(self, path: DataPath) -> DataPath:
        place = len(self._base)
        if len(path) <= place or path[:place] != self._base:
            return path
        key = path[place]
        return (*self._base, self._written.get(str(key), key), *path[place + 1 :])


def validate(
    shape: type[Shape],
    raw: dict[str, Any],
    notes: Diagnostics,
    locate: Locator,
    base: DataPath = (),
    spare: dict[str, Any] | None = None,
    *,
    spell: Callable[[str], str] | None = None,
) -> Shape | None:
    """`raw` as a `shape`, or None if nothing of it can be used. Mistakes are noted.

    `base` is the path of `raw` in its file. `spare` has values for required keys whose own value is missing or has a
    mistake. `spell` names a key as the user wrote it, for data of the command line or the environment.
    """
    try:
        return shape.model_validate(raw)
    except ValidationError as failure:
        first = failure
    if _read_filled(raw, first):
        try:
            return shape.model_validate(raw)
        except ValidationError as failure:
            first = failure
    return _Recovery(shape, notes, locate, base, spare or {}, spell).recover(_numbered(raw), first)


def _read_filled(raw: dict[str, Any], failure: ValidationError) -> bool:
    """Parse each variable's text that stands where a list or a mapping belongs. True if there was any."""
    found = False
    for error in failure.errors(include_url=False, include_input=False):
        path = _place_in(raw, error)
        text = _at(raw, path)
        is_wrong_type = error["type"].endswith("_type") or error["type"] == "union_tag_not_found"
        if not path or not isinstance(text, Filled) or not is_wrong_type:
            continue
        value = Defaulted.read(text)
        if isinstance(value, list | dict):
            _at(raw, path[:-1])[path[-1]] = value
            found = True
    return found


@dataclass(frozen=True, slots=True)
class _Recovery(Generic[Shape]):
    """Notes the mistakes of a record and validates the record without them."""

    shape: type[Shape]
    notes: Diagnostics
    locate: Locator
    base: DataPath
    spare: dict[str, Any]
    spell: Callable[[str], str] | None

    def recover(self, raw: Any, failure: ValidationError) -> Shape | None:
        left_out: list[DataPath] = []
        for _ in range(8):  # leaving a mistake out can reveal another, but not many times
            gone: dict[DataPath, DataPath] = {}
            for path, mistake in _mistakes(self.shape, raw, failure, self.notes.secrets, self.spell):
                here = _as_written(raw, path)
                if mistake.message and not _follows(mistake, here, left_out):
                    self._note(mistake, here)
                keep = len(path) - 1 if self._takes_record_along(mistake, path) else len(path)
                gone[path[:keep]] = here[:keep]
            if not all(gone):
                return None
            left_out.extend(gone.values())
            raw = {**self.spare, **_without(raw, set(gone))}
            try:
                return self.shape.model_validate(raw)
            except ValidationError as again:
                failure = again
        return None

    def _note(self, mistake: Mistake, here: DataPath) -> None:
        find = self.locate.key if mistake.at_key else self.locate.value
        self.notes.error(mistake.code, mistake.message, find(self.base + here + mistake.below), mistake.hint)

    def _takes_record_along(self, mistake: Mistake, path: DataPath) -> bool:
        """Whether the whole record is left out with the mistake, because a required key is missing."""
        is_record_itself = mistake.below or (len(path) == 1 and path[0] in self.spare)
        return mistake.code == "missing-key" and not is_record_itself


def _follows(mistake: Mistake, path: DataPath, left_out: list[DataPath]) -> bool:
    """Whether a mistake follows from a value that was left out."""
    flat = tuple(step for step in path if step != "config")
    if mistake.code == "missing-key" and not mistake.below:
        flat = flat[:-1]
    return any(tuple(step for step in one if step != "config")[: len(flat)] == flat for one in left_out)


class _Numbered(list[Any]):
    """A list that keeps the original indexes of its items after some were left out."""

    def __init__(self, items: list[Any], numbers: list[int]) -> None:
        super().__init__(items)
        self.numbers = numbers


def _numbered(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {key: _numbered(item) for key, item in raw.items()}
    if isinstance(raw, list):
        return _Numbered([_numbered(item) for item in raw], list(range(len(raw))))
    return raw


def _as_written(raw: Any, path: DataPath) -> DataPath:
    steps: list[str | int] = []
    for step in path:
        steps.append(raw.numbers[step] if isinstance(raw, _Numbered) and isinstance(step, int) else step)
        raw = _item(raw, step)
    return tuple(steps)


def _item(raw: Any, step: str | int) -> Any:
    try:
        return raw[step]
    except (KeyError, IndexError, TypeError):
        return None


def _without(raw: Any, gone: set[DataPath], here: DataPath = ()) -> Any:
    if isinstance(raw, dict):
        return {key: _without(item, gone, (*here, key)) for key, item in raw.items() if (*here, key) not in gone}
    if isinstance(raw, _Numbered):
        kept = [number for number in range(len(raw)) if (*here, number) not in gone]
        return _Numbered([_without(raw[n], gone, (*here, n)) for n in kept], [raw.numbers[n] for n in kept])
    return raw


def _mistakes(
    shape: type[BaseModel],
    raw: Any,
    failure: ValidationError,
    secrets: set[str],
    spell: Callable[[str], str] | None,
) -> Iterator[tuple[DataPath, Mistake]]:
    """The mistakes by path in `raw`; where a value fits none of several types, one for all of them."""
    by_path: dict[DataPath, Mistake] = {}
    for error in failure.errors(include_url=False, include_input=False):
        path = _place_in(raw, error)
        key = next((str(step) for step in reversed(path) if isinstance(step, str)), "this")
        # Masked before a message cuts it off and it can't be recognised.
        shown = secrets_of(secrets).mask(_at(raw, path), numbers=True)
        if spell is not None:
            key = spell(key) if key in shape.model_fields else key
            shown = CommandText(shown) if isinstance(shown, str) else shown
        known = partial(_spellings, shape, raw, path[:-1])
        mistake = mistake_of(error, key, shown, known, is_item=bool(path) and isinstance(path[-1], int))
        if not mistake.at_key and isinstance(_at(raw, (*path, *mistake.below)), Unfilled):
            mistake = _REPORTED
        if path not in by_path:
            by_path[path] = mistake
        else:
            by_path[path] = either(by_path[path], mistake)
    meant = {(*path[:-1], mistake.meant) for path, mistake in by_path.items() if mistake.meant}
    for path, mistake in by_path.items():
        # A slip in a key is one mistake, not two.
        yield path, _FOLLOWS if mistake.code == "missing-key" and path in meant else mistake


def _place_in(raw: Any, error: ErrorDetails) -> DataPath:
    """The path in the data that an error is about."""
    path = _path_in(raw, error["loc"], error["type"] == "missing")
    context = error.get("ctx") or {}
    if "key" in context:  # our own rules look at a whole record and name the key they are about
        path = (*path, *(("config",) if "config" in (_at(raw, path) or {}) else ()), context["key"])
        path = path if _present(raw, path) else (*path[:-2], context["key"])
    return path


def _present(raw: Any, path: DataPath) -> bool:
    parent = _at(raw, path[:-1])
    return isinstance(parent, dict) and path[-1] in parent


def _at(raw: Any, path: DataPath) -> Any:
    for step in path:
        raw = _item(raw, step)
    return raw


def _path_in(raw: Any, loc: tuple[str | int, ...], is_missing: bool) -> DataPath:
    """pydantic's location as a path of the data.

    The path leaves out members of unions and the list around an object that stands for a list of one, and has the
    `config` that validation looks through.
    """
    path: list[str | int] = []
    tag_possible = True
    for number, step in enumerate(loc):
        if isinstance(raw, dict):
            if tag_possible and raw.get("type") == step and _is_tag(raw, loc[number:], is_missing):
                tag_possible = False
                continue
            config = raw.get("config")
            if step not in raw and isinstance(config, dict) and step in config:
                path.append("config")
                raw = config
            if step not in raw and not (is_missing and number + 1 == len(loc)):
                continue
            path.append(step)
            raw = raw.get(step)
            tag_possible = True
        elif isinstance(raw, list) and isinstance(step, int):
            path.append(step)
            raw = _item(raw, step)
            tag_possible = True
        elif isinstance(step, int):
            path.append(step)
    return tuple(path)


def _is_tag(raw: dict[str, Any], loc: tuple[str | int, ...], is_missing: bool) -> bool:
    """Whether a location begins with the `type` of a union's member, not with a key that is called like it."""
    if len(loc) == 1:
        return loc[0] not in raw and not is_missing
    return loc[1] in raw or (is_missing and len(loc) == 2)


def _spellings(shape: type[BaseModel], raw: Any, path: DataPath) -> dict[str, str]:
    """The known keys at a path, each with the name of its field."""
    here: Any = shape
    for step in path:
        raw = _item(raw, step)
        if isinstance(step, str) and step == "config" and not _is_field(here, "config"):
            continue
        here = _field_type(here, step) if isinstance(step, str) else here
        if isinstance(raw, dict):
            here = _shape_of(here, raw)
    return spellings(here) if isinstance(here, type) and issubclass(here, BaseModel) else {}


def spellings(shape: type[BaseModel]) -> dict[str, str]:
    """Every key a shape accepts, with the name of its field."""
    known: dict[str, str] = {}
    for name, field in shape.model_fields.items():
        if field.exclude or name in ("index",):
            continue
        alias = field.validation_alias
        names = [str(one) for one in alias.choices] if isinstance(alias, AliasChoices) else [alias or name]
        known.update({str(one): name for one in names})
    return known


def _is_field(shape: Any, name: str) -> bool:
    return isinstance(shape, type) and issubclass(shape, BaseModel) and name in shape.model_fields


def _field_type(shape: Any, key: str) -> Any:
    if not (isinstance(shape, type) and issubclass(shape, BaseModel)):
        return None
    field = shape.model_fields.get(spellings(shape).get(key, key))
    return None if field is None else (field.annotation, *field.metadata)


def _shape_of(annotation: Any, raw: Any) -> Any:
    """The record type that an annotation means for this value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if isinstance(annotation, OneOf):
        return annotation.record_of(str(_item(raw, "type"))) if isinstance(raw, dict) else annotation
    parts = annotation if isinstance(annotation, tuple) else get_args(annotation)
    found = [one for part in parts if (one := _shape_of(part, raw)) is not None]
    kinds = [one for one in found if isinstance(one, OneOf)]
    return kinds[0] if kinds else _by_type(found, raw)


def _by_type(shapes: list[Any], raw: Any) -> Any:
    """The shape that fits the value's `type`."""
    for shape in shapes:
        field = shape.model_fields.get("type")
        if field is not None and _item(raw, "type") in get_args(field.annotation):
            return shape
    return shapes[0] if shapes else None
