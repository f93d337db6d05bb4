"""Finds functions in the user's code: `module:function`, `path/to/file.py:function`, or `scripts:a.b`.

`scripts:a.b` is function `b` of `scripts/a.py` below one of several folders.
"""

import ast
import importlib.util
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.base.project import working_directory
from atp.usercode.importing import check_shadowing, configuration_error, loading
from atp.usercode.load import UnusableCode, find_file, find_name, folder_of, is_file, load_place

_LOCKS: dict[Path, threading.Lock] = {}
"""A lock for each file, so that two concurrent trials run the file's code once."""


def load_function(name: str, folders: Sequence[Path]) -> Callable[..., Any]:
    """Load the function that `scripts:a.b`, `scripts.a.b`, `module:function` or `file.py:function` names.

    Raises `ConfigurationError` if the function can't be found or imported. Runs the user's module the first time.
    """
    if not is_script(name):
        return _load_entry(name, folders or (working_directory(),))
    path, function = find_script(name, folders)
    with _LOCKS.setdefault(path, threading.Lock()):
        return _load_entry(f"{path}:{function}", (path.parent,))


def locate_function(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the file or the folder of the function that `load_function` would load, without running any of its code.

    None for a function of an installed module. Raises `ConfigurationError` if the function is not there.
    """
    if is_script(name):
        return find_script(name, folders)[0]
    place, _, function = name.rpartition(":")
    if not place or not function:
        raise _no_entry(name)
    try:
        if is_file(place):
            path = find_file(place, folders or (working_directory(),))
            _function(path, function.partition(".")[0], exact=True)
            return path
        folder = folder_of(place, folders)
    except UnusableCode as error:
        raise configuration_error(error) from error
    top = place.partition(".")[0]
    if folder is None and importlib.util.find_spec(top) is None:
        raise ConfigurationError(f"there is no module `{top}`", f"it is looked for in {', '.join(map(str, folders))}")
    return folder


def _no_entry(entry: str) -> ConfigurationError:
    return ConfigurationError(f"`{entry}` names no function", "write `module:function` or `file.py:function`")


def _load_entry(entry: str, folders: Sequence[Path]) -> Callable[..., Any]:
    place, _, name = entry.rpartition(":")
    if not place or not name:
        raise _no_entry(entry)
    try:
        with loading(place, folders):
            found = find_name(load_place(place, folders), name, place)
    except UnusableCode as error:
        raise configuration_error(error) from error
    if not callable(found):
        raise ConfigurationError(f"`{entry}` is not a function", f"it is of type {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def is_script(name: str) -> bool:
    """True if a name refers to a script."""
    return name.startswith(("scripts:", "scripts."))


def find_script(reference: str, folders: Sequence[Path]) -> tuple[Path, str]:
    """The file of a script and the name of its function, without running the file. Raises `ConfigurationError`."""
    *steps, wanted = reference[len("scripts:") :].split(".")
    path = find_module(steps, folders)
    if path is not None:
        check_shadowing(path.parent)
        return path, _function(path, wanted)
    shown = "/".join(["scripts", *steps]) + ".py"
    looked = ", ".join(str(folder) for folder in dict.fromkeys(folders)) or "no folder"
    raise ConfigurationError(f"`{reference}`: there is no {shown}", f"it is looked for below {looked}")


def find_module(steps: Sequence[str], folders: Sequence[Path]) -> Path | None:
    """The file `scripts/a/b.py` below the first of the folders that has it, for the steps `a`, `b`."""
    if not steps:
        return None
    for folder in folders:
        for spelled in (steps, [step.replace("-", "_") for step in steps]):
            path = folder.joinpath("scripts", *spelled[:-1], f"{spelled[-1]}.py")
            if path.is_file():
                return path.resolve()
    return None


def _function(path: Path, wanted: str, *, exact: bool = False) -> str:
    """The name as the file spells it. Unless `exact`, a hyphen counts as an underscore, and letters of either case."""
    name = wanted if exact else wanted.replace("-", "_")
    try:
        about = path.stat()
        names = _names(path, about.st_mtime_ns, about.st_size)
    except (OSError, SyntaxError, ValueError) as error:
        raise ConfigurationError(f"{path} can't be read: {type(error).__name__}: {error}") from error
    if name in names or "*" in names:
        return name
    alike = [one for one in names if one.lower() == name.lower()] if not exact else []
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise ConfigurationError(f"`{wanted}` may be any of {', '.join(alike)} in {path}", "spell it as it is there")
    meant = near_miss(name, names)
    raise ConfigurationError(f"there is no `{wanted}` in {path}", meant and f"did you mean `{meant}`?")


@lru_cache(maxsize=256)
def _names(path: Path, _changed: int, _size: int) -> list[str]:
    """The names that a file defines, as far as its syntax tree shows them; `*` if it imports all names of a module."""
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):  # also below `if` and `try`
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = None
            case ast.Assign():
                found.update(dict.fromkeys(one.id for one in node.targets if isinstance(one, ast.Name)))
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = None
            case ast.ImportFrom() | ast.Import():
                found.update(dict.fromkeys(one.asname or one.name for one in node.names))
    return list(found)
