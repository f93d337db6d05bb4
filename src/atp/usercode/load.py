"""Loads the user's modules, by `module` or `path/to/file.py`, and finds names in them."""

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

from .threads import Raised

_FILES: dict[Path, tuple[tuple[int, int], ModuleType]] = {}
"""The modules that were loaded from files, by path, with the file's time of change and size."""
USER_FOLDERS: set[str] = set()
"""Folders on `sys.path` that the user's modules are imported from. The latest one comes first."""
_IMPORTING_FOLDERS = (os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "worker"))
"""The folders of the code that imports the user's, which is left out of error places."""
_STANDARD_LIBRARY: frozenset[str] = frozenset(getattr(sys, "stdlib_module_names", sys.builtin_module_names))


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
    """The module or file, and the name in it if there is one: `file.py:name`, `module:name`, `file.py`."""
    place, colon, name = text.rpartition(":")
    if not colon or text.endswith(".py"):
        return text, None
    return place, name


def named_place(path: str | None, module: str | None, name: str | None) -> tuple[str, str | None]:
    """Like `split_place`, for a configuration with a path, or with a module and a name in it."""
    place, inside = split_place(path) if path is not None else (module or "", None)
    return place, inside or name


def is_file(place: str) -> bool:
    """True if a place is a file, not a module."""
    return place.endswith(".py") or "/" in place


def load_place(place: str, folders: Sequence[Path]) -> ModuleType:
    """Load the module at a place. Raises `UnusableCode` if the module can't be found or imported."""
    return _load_file(place, folders) if is_file(place) else _load_module(place, folders)


def find_name(module: ModuleType, name: str, place: str) -> Any:
    """The value of a name in a module. Dots lead to attributes. Raises `UnusableCode`."""
    found: Any = module
    for step in name.split("."):
        if not hasattr(found, step):
            where = getattr(module, "__file__", None) or place
            raise UnusableCode(f"there is no `{name}` in {where}", word=step, known=_own_names(found))
        found = getattr(found, step)
    return found


def _own_names(found: Any) -> list[str]:
    """The public names of a module or a class, without those that a module imports."""
    return [
        name
        for name, value in getattr(found, "__dict__", {}).items()
        if not name.startswith("_") and not (isinstance(found, ModuleType) and _is_imported(value, found))
    ]


def _is_imported(value: Any, module: ModuleType) -> bool:
    own = value.__module__ == module.__name__ if isinstance(value, type) or inspect.isroutine(value) else True
    return isinstance(value, ModuleType) or not own


def find_file(place: str, folders: Sequence[Path]) -> Path:
    """The path of a file in the first folder that has it. Raises `UnusableCode`."""
    for folder in folders:
        path = folder.joinpath(place).resolve()
        if path.is_file():
            return path
    raise UnusableCode(f"the file {place} is not there", f"it is looked for in {folders[0]}")


def _load_file(place: str, folders: Sequence[Path]) -> ModuleType:
    path = find_file(place, folders)
    status = path.stat()
    stamp = (status.st_mtime_ns, status.st_size)
    known = _FILES.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    _add_to_path(path.parent)
    # Under a name derived from the path: two suites may each have an `agent.py`.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up their module by name
    try:
        _import(place, lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    except BaseException:
        sys.modules.pop(name, None)
        raise
    _FILES[path] = (stamp, module)
    return module


def _load_module(name: str, folders: Sequence[Path]) -> ModuleType:
    """Import a module of the working directory, of one of the folders, or an installed one."""
    top = name.partition(".")[0]
    folder = folder_of(name, folders)
    if folder is not None:
        _unload_namesake(top, importlib.machinery.PathFinder.find_spec(top, [str(folder)]))
        _add_to_path(folder)
    importlib.invalidate_caches()
    module: ModuleType = _import(name, lambda: importlib.import_module(name), [*_here(), *folders])
    return module


def folder_of(place: str, folders: Sequence[Path]) -> Path | None:
    """The folder that a place's code is imported from. None if the module is installed. Raises `UnusableCode`."""
    if is_file(place):
        return find_file(place, folders).parent
    top = place.partition(".")[0]
    if top not in _STANDARD_LIBRARY:
        for folder in dict.fromkeys(one.resolve() for one in [*_here(), *folders]):
            if importlib.machinery.PathFinder.find_spec(top, [str(folder)]) is not None:
                return folder
    return None


def _here() -> list[Path]:
    """The working directory, unless the user's code has deleted it."""
    with contextlib.suppress(FileNotFoundError):
        return [Path.cwd()]
    return []


def _unload_namesake(top: str, spec: importlib.machinery.ModuleSpec | None) -> None:
    """Remove a module of the same name that was loaded from another suite's folder, with its submodules."""
    loaded = sys.modules.get(top)
    if loaded is None or source_of(loaded.__spec__) == source_of(spec):
        return
    for name in [one for one in sys.modules if one == top or one.startswith(f"{top}.")]:
        del sys.modules[name]


def source_of(spec: importlib.machinery.ModuleSpec | None) -> object:
    """The file or the folders that a module is loaded from."""
    if spec is None:
        return None
    return spec.origin or list(spec.submodule_search_locations or ())


def _add_to_path(folder: Path) -> None:
    """Put a folder on `sys.path`, before installed packages but after the standard library."""
    text = str(folder)
    if text in sys.path:
        sys.path.remove(text)
    USER_FOLDERS.add(text)
    later = [one in USER_FOLDERS or str(one).endswith(("site-packages", "dist-packages")) for one in sys.path]
    sys.path.insert(later.index(True) if True in later else len(later), text)


def _import(what: str, load: Callable[[], Any], folders: Sequence[Path] = ()) -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a module prints during its import is not output of ATP
            return load()
    except KeyboardInterrupt:  # Ctrl-C
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        text = f"{what} can't be imported: {Raised(error)}{_line(error)}"
        hint = None if missing is None else f"install what has `{missing}` for {sys.executable}"
        if missing == what.partition(".")[0] and folders:
            places = ", ".join(dict.fromkeys(str(one) for one in folders))
            hint = f"it is looked for in {places}, and among what is installed for {sys.executable}"
        raise UnusableCode(text, hint, missing=missing) from error


def _line(error: BaseException) -> str:
    """The last line of the user's code in the traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return ""  # the error's text has the line
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not _is_importing_code(one.filename)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _is_importing_code(file: str) -> bool:
    return os.path.dirname(file) in _IMPORTING_FOLDERS or "importlib" in file
