"""Imports the user's code into our own process, which the import can neither end, nor block, nor take modules from.

The user's folders are on `sys.path` before installed packages, so that the user's code gets the user's modules. ATP
would import a module there in place of an installed one of the same name that it needs, at any time in the run: such
a folder is refused before anything runs. See docs/design/usercode.md.
"""

import importlib.machinery
import importlib.metadata
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from types import FrameType

from atp.base.diagnostics import load_error
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.usercode.exits import foreign
from atp.usercode.load import USER_FOLDERS, UnusableCode, folder_of, source_of
from atp.usercode.printed import capture_threads

DEFAULT_SECONDS = 60.0
"""Seconds after which an import counts as hanging. Large frameworks take ten."""
_SHORTEST, _LONGEST = 0.001, 86_400.0
"""The range of the limit in seconds: a timer of 0 would be off."""
_REPEAT_SECONDS = 5.0
"""Seconds after which the signal is sent again, to code that caught the first exception."""

DISTRIBUTION = "agent-test-platform"
OPTIONAL_MODULES = frozenset(
    {
        *("aiodns", "brotli", "brotlicffi"),  # aiohttp
        *("fqdn", "isoduration", "rfc3339_validator", "rfc3986_validator", "rfc3987", "rfc3987_syntax"),  # jsonschema
        *("uri_template", "webcolors"),  # jsonschema
        *("linkify_it", "logfire", "socksio", "trio"),  # markdown-it, pydantic-ai, httpx, anyio
    }
)
"""Modules that dependencies of ATP import if they are installed, without requiring them."""


class TakesTooLong(SystemExit):
    """Raised in an import that takes too long. A `SystemExit`, which `except Exception` doesn't catch."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g}s")
        self.code = 2


class _Limit:
    seconds: float | None = None


def limit_imports(seconds: float = DEFAULT_SECONDS) -> None:
    """Limit how long each import of an agent's code may take from now on.

    Only for a process that ATP owns: the limit uses `SIGALRM`, which a host process may use itself.
    """
    _Limit.seconds = min(max(_SHORTEST, seconds), _LONGEST)


@contextmanager
def loading(place: str | None = None, folders: Sequence[Path] = ()) -> Iterator[None]:
    """Protect the process while the user's code is imported inside. Raises `LoadError` as `check_shadowing` does."""
    folder = None if place is None else folder_of(place, folders)
    if folder is not None:
        check_shadowing(folder)
    seconds = _Limit.seconds
    may_signal = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    limited = _limited_to(seconds) if seconds is not None and may_signal else nullcontext()
    with foreign() as code, capture_threads(code, lambda: sys.stderr), limited:
        yield


@contextmanager
def _limited_to(seconds: float) -> Iterator[None]:
    def raise_too_long(_number: int, _frame: FrameType | None) -> None:
        raise TakesTooLong(seconds)

    before = signal.signal(signal.SIGALRM, raise_too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds, _REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGALRM) is raise_too_long:
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def configuration_error(error: UnusableCode) -> ConfigurationError:
    """The error as a `ConfigurationError`, with the most similar name as a hint."""
    meant = near_miss(error.word, error.known) if error.word is not None else None
    return ConfigurationError(str(error), f"did you mean `{meant}`?" if meant else error.hint)


def check_project_path(root: Path) -> None:
    """Check the folders of a project that are already on `sys.path`, as under pytest or in the user's own script."""
    root = root.resolve()
    for entry in dict.fromkeys(sys.path):
        folder = Path(os.path.realpath(str(entry)))  # a value that is no text has no modules either
        if (folder == root or root in folder.parents) and not _is_installed(str(folder)):
            check_shadowing(folder)


def check_shadowing(folder: Path) -> None:
    """Raise `LoadError` (`shadowed-module`) if a module in a folder has the name of one that ATP needs.

    A path that is no folder, or that can't be listed, has no modules: Python skips it on `sys.path`, too.
    """
    try:
        found = _shadowing(str(folder), folder.stat().st_mtime_ns)
    except OSError:
        return
    for name in found:
        raise load_error(
            "shadowed-module",
            f"`{name}` in {folder} has the name of a module that ATP needs, and would be imported in its place",
            f"rename it, or give the agent an interpreter of its own with `python: {sys.executable}`",
        )


@lru_cache(maxsize=256)
def _shadowing(folder: str, _changed: int) -> list[str]:
    elsewhere = [one for one in sys.path if one and one != folder and one not in USER_FOLDERS]
    found = []
    for name in sorted(_modules_in(Path(folder))):
        own = importlib.machinery.PathFinder.find_spec(name, [folder])
        if (
            own is None or own.origin is None
        ):  # no module, or a folder without `__init__.py`, which an installed package takes precedence over
            continue
        installed = importlib.machinery.PathFinder.find_spec(name, elsewhere)
        if installed is None or installed.origin is None:
            if name in OPTIONAL_MODULES:
                found.append(name)
        elif source_of(installed) != source_of(own) and name in _needed_modules():
            found.append(name)
    return found


def _modules_in(folder: Path) -> Iterable[str]:
    """The names of the modules in a folder, without those of the standard library, which comes first on `sys.path`."""
    suffixes = tuple(importlib.machinery.all_suffixes())
    names = {one.name.partition(".")[0] for one in folder.iterdir() if one.name.endswith(suffixes) or one.is_dir()}
    return {name for name in names if name.isidentifier() and name not in sys.stdlib_module_names}


def _is_installed(folder: str) -> bool:
    return folder.endswith(("site-packages", "dist-packages")) or Path(folder, "atp", "usercode").is_dir()


@lru_cache(maxsize=1)
def _needed_modules() -> frozenset[str]:
    """The top-level modules of ATP, its extras and all their requirements that are installed."""
    names = {"atp", *OPTIONAL_MODULES}
    seen: set[str] = set()
    rest = [DISTRIBUTION, *(["pytest"] if "pytest" in sys.modules else [])]
    while rest:
        wanted = re.sub(r"[-_.]+", "-", rest.pop()).lower()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = importlib.metadata.distribution(wanted)
        except importlib.metadata.PackageNotFoundError:
            continue
        for requirement in found.requires or ():
            name = re.match(r"[\w.-]+", requirement)
            if name is not None and ("extra ==" not in requirement or wanted == DISTRIBUTION):
                rest.append(name.group())
        names |= {
            file.parts[0].partition(".")[0]
            for file in found.files or ()
            if file.name.endswith(tuple(importlib.machinery.all_suffixes()))
        }
    return frozenset(names)
