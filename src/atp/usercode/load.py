"""Loading the user's modules: `module` or `path/to/file.py`, and finding things in them."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_FILES: dict[Path, tuple[tuple[int, int], ModuleType]] = {}
"""Modules that were loaded from files, by path, with the file's stamp."""
USER_FOLDERS: set[str] = set()
"""Folders on `sys.path` that the user's modules are imported from; the one that was asked for last comes first."""
_OURS = (os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "worker"))
"""The folders of the code that loads the user's."""
_PYTHONS_OWN: frozenset[str] = frozenset(getattr(sys, "stdlib_module_names", sys.builtin_module_names))


class UnusableCode(Exception):
    """Raised when the user's code can't be loaded, or can't be called as it is configured.

    Not a `ConfigurationError`: a worker loads this module in an environment that has no `atp.base`.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        word: str | None = None,
        known: Iterable[str] = (),
        missing: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        """How to fix the code or its configuration."""
        self.word = word
        """A name that was not found. `configuration_error` looks for a similar one in `known`."""
        self.known = list(known)
        """The names that exist where `word` was looked up."""
        self.missing = missing
        """The package that is not installed in the environment."""

    def to_json(self) -> dict[str, Any]:
        """The error as JSON values, for a worker's reply."""
        return {
            "message": str(self),
            "hint": self.hint,
            "word": self.word,
            "known": self.known,
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, sent: dict[str, Any]) -> UnusableCode:
        """The error that a worker sent."""
        return cls(
            sent["message"],
            sent["hint"],
            word=sent["word"],
            known=sent["known"],
            missing=sent["missing"],
        )


def split_place(text: str) -> tuple[str, str | None]:
    """A module or file, and the name of something in it if one is given: `file.py:name`, `module:name`, `file.py`."""
    place, colon, name = text.rpartition(":")
    if not colon or text.endswith(".py"):
        return text, None
    return place, name


def named_place(path: str | None, module: str | None, name: str | None) -> tuple[str, str | None]:
    """The same for a configuration, which has a path, or a module and a name in it."""
    place, inside = split_place(path) if path is not None else (module or "", None)
    return place, inside or name


def is_file(place: str) -> bool:
    """Whether a place is a file, as against a module."""
    return place.endswith(".py") or "/" in place


def load_place(place: str, folders: Sequence[Path]) -> ModuleType:
    """The module at a place. Raises `UnusableCode` when it can't be found or imported."""
    return _load_file(place, folders) if is_file(place) else _load_module(place, folders)


def find_name(module: ModuleType, name: str, place: str) -> Any:
    """What a module calls so, with dots for what is inside it. Raises `UnusableCode`."""
    found: Any = module
    for step in name.split("."):
        if not hasattr(found, step):
            where = getattr(module, "__file__", None) or place
            raise UnusableCode(f"there is no `{name}` in {where}", word=step, known=_own_names(found))
        found = getattr(found, step)
    return found


def _own_names(found: Any) -> list[str]:
    """The public names in a module or a class, without what a module only imports."""
    return [
        name
        for name, value in getattr(found, "__dict__", {}).items()
        if not name.startswith("_") and not (isinstance(found, ModuleType) and _is_imported(value, found))
    ]


def _is_imported(value: Any, module: ModuleType) -> bool:
    own = value.__module__ == module.__name__ if isinstance(value, type) or inspect.isroutine(value) else True
    return isinstance(value, ModuleType) or not own


def find_file(place: str, folders: Sequence[Path]) -> Path:
    """Where a file is. Raises `UnusableCode`."""
    for folder in folders:
        path = folder.joinpath(place).resolve()
        if path.is_file():
            return path
    raise UnusableCode(f"the file {place} is not there", f"it is looked for in {folders[0]}")


def _load_file(place: str, folders: Sequence[Path]) -> ModuleType:
    path = find_file(place, folders)
    about = path.stat()
    stamp = (about.st_mtime_ns, about.st_size)
    known = _FILES.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    _let_import_from(path.parent)
    # Under a name of its own: two suites may each have their `agent.py`.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        _importing(place, lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    except BaseException:
        sys.modules.pop(name, None)
        raise
    _FILES[path] = (stamp, module)
    return module


def _load_module(name: str, folders: Sequence[Path]) -> ModuleType:
    """A module of the working directory, of the folder beside the input file, or one that is installed."""
    top = name.partition(".")[0]
    folder = folder_of(name, folders)
    if folder is not None:
        _forget_other(top, importlib.machinery.PathFinder.find_spec(top, [str(folder)]))
        _let_import_from(folder)
    importlib.invalidate_caches()
    module: ModuleType = _importing(name, lambda: importlib.import_module(name), [Path.cwd(), *folders])
    return module


def folder_of(place: str, folders: Sequence[Path]) -> Path | None:
    """The folder that a place's code is imported from. None if the module is installed. Raises `UnusableCode`."""
    if is_file(place):
        return find_file(place, folders).parent
    top = place.partition(".")[0]
    if top not in _PYTHONS_OWN:
        for folder in dict.fromkeys(one.resolve() for one in [Path.cwd(), *folders]):
            if importlib.machinery.PathFinder.find_spec(top, [str(folder)]) is not None:
                return folder
    return None


def _forget_other(top: str, spec: importlib.machinery.ModuleSpec | None) -> None:
    """A module of the same name from another suite's folder must not stand in for this one."""
    loaded = sys.modules.get(top)
    if loaded is None or source_of(loaded.__spec__) == source_of(spec):
        return
    for name in [one for one in sys.modules if one == top or one.startswith(f"{top}.")]:
        del sys.modules[name]


def source_of(spec: importlib.machinery.ModuleSpec | None) -> object:
    """The file or the folders that a module comes from."""
    if spec is None:
        return None
    return spec.origin or list(spec.submodule_search_locations or ())


def _let_import_from(folder: Path) -> None:
    """Let the user's modules import each other: before installed packages, but never in place of Python's own."""
    text = str(folder)
    if text in sys.path:
        sys.path.remove(text)
    USER_FOLDERS.add(text)
    later = [one in USER_FOLDERS or one.endswith(("site-packages", "dist-packages")) for one in sys.path]
    sys.path.insert(later.index(True) if True in later else len(later), text)


def _importing(what: str, load: Callable[[], Any], folders: Sequence[Path] = ()) -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a module prints when it loads is no output of ours
            return load()
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        text = f"{what} can't be imported: {type(error).__name__}: {error}{_line(error)}"
        hint = None if missing is None else f"install what has `{missing}` for {sys.executable}"
        if missing == what.partition(".")[0] and folders:
            places = ", ".join(dict.fromkeys(str(one) for one in folders))
            hint = f"it is looked for in {places}, and among what is installed for {sys.executable}"
        raise UnusableCode(text, hint, missing=missing) from error


def _line(error: BaseException) -> str:
    """Where in the user's code it went wrong."""
    if isinstance(error, SyntaxError) and error.filename:
        return ""  # its text says so
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not _is_machinery(one.filename)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _is_machinery(file: str) -> bool:
    return os.path.dirname(file) in _OURS or "importlib" in file
