"""Finding a function of the user's: `module:function` or `path/to/file.py:function`."""

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from atp.agents.adapter import ConfigurationError, Surroundings
from atp.suite.near import near_miss

_FILES: dict[Path, tuple[tuple[int, int], ModuleType]] = {}
"""Modules that were loaded from files, by path, with the file's stamp."""
_FOLDERS: set[str] = set()
"""Folders that the user's modules are imported from; the one that was asked for last comes first."""


def load_function(entry: str, surroundings: Surroundings) -> Callable[..., Any]:
    """What an entry names. Raises `ConfigurationError` when it can't be found or imported."""
    place, _, name = entry.rpartition(":")
    if not place or not name:
        raise ConfigurationError(f"`{entry}` names no function", "write `module:function` or `file.py:function`")
    if place.endswith(".py") or "/" in place:
        module = _load_file(place, surroundings)
    else:
        module = _load_module(place, surroundings)
    found: Any = module
    for step in name.split("."):
        if not hasattr(found, step):
            meant = near_miss(step, [one for one in vars(found) if not one.startswith("_")])
            where = getattr(module, "__file__", None) or place
            raise ConfigurationError(f"there is no `{name}` in {where}", meant and f"did you mean `{meant}`?")
        found = getattr(found, step)
    if not callable(found):
        raise ConfigurationError(f"`{entry}` is not a function", f"it is of type {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def _load_file(place: str, surroundings: Surroundings) -> ModuleType:
    for folder in (surroundings.base, *surroundings.search):
        path = folder.joinpath(place).resolve()
        if path.is_file():
            break
    else:
        raise ConfigurationError(f"the file {place} is not there", f"it is looked for in {surroundings.base}")
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


def _load_module(name: str, surroundings: Surroundings) -> ModuleType:
    """A module of the working directory, of the folder beside the input file, or one that is installed."""
    folders = [Path.cwd(), surroundings.base, *surroundings.search]
    top = name.partition(".")[0]
    for folder in dict.fromkeys(str(one.resolve()) for one in folders):
        spec = importlib.machinery.PathFinder.find_spec(top, [folder])
        if spec is not None and top not in sys.stdlib_module_names:
            _forget_other(top, spec)
            _let_import_from(Path(folder))
            break
    importlib.invalidate_caches()
    module: ModuleType = _importing(name, lambda: importlib.import_module(name))
    return module


def _forget_other(top: str, spec: importlib.machinery.ModuleSpec) -> None:
    """A module of the same name from another suite's folder must not stand in for this one."""
    loaded = sys.modules.get(top)
    if loaded is None or _source(loaded.__spec__) == _source(spec):
        return
    for name in [one for one in sys.modules if one == top or one.startswith(f"{top}.")]:
        del sys.modules[name]


def _source(spec: importlib.machinery.ModuleSpec | None) -> object:
    if spec is None:
        return None
    return spec.origin or list(spec.submodule_search_locations or ())


def _let_import_from(folder: Path) -> None:
    """Let the user's modules import each other: before installed packages, but never in place of Python's own."""
    text = str(folder)
    if text in sys.path:
        sys.path.remove(text)
    _FOLDERS.add(text)
    later = [one in _FOLDERS or one.endswith(("site-packages", "dist-packages")) for one in sys.path]
    sys.path.insert(later.index(True) if True in later else len(later), text)


def _importing(what: str, load: Callable[[], Any]) -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a module prints when it loads is no output of ours
            return load()
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{what} can't be imported: {type(error).__name__}: {error}{_line(error)}") from error


def _line(error: BaseException) -> str:
    """Where in the user's code it went wrong."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not _is_machinery(one.filename)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _is_machinery(file: str) -> bool:
    return file == __file__ or "importlib" in file
