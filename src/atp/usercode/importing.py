"""Imports code of others into our own process: it can neither end it, nor hold it up for ever, nor replace our imports.

The user's folders stand on `sys.path` before installed packages, so that the user's code gets the user's modules. A
module there that has the name of one which ATP needs would be imported by ATP in its place, at some time in the run:
such a folder is refused before anything runs. See docs/design/usercode.md.
"""

import importlib.machinery
import importlib.metadata
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

USUAL_SECONDS = 60.0
"""Seconds after which an import counts as hanging. Large frameworks take ten."""
_SHORTEST, _LONGEST = 0.001, 86_400.0
"""What the system's clock can be set to, and is of any use."""
_AGAIN = 5.0
"""Seconds after which code that swallowed the first signal gets another."""

DISTRIBUTION = "agent-test-platform"
OPTIONAL_MODULES = frozenset(
    {
        *("aiodns", "brotli", "brotlicffi"),  # aiohttp
        *("fqdn", "isoduration", "rfc3339_validator", "rfc3986_validator", "rfc3987", "rfc3987_syntax"),  # jsonschema
        *("uri_template", "webcolors"),  # jsonschema
        *("linkify_it", "logfire", "socksio", "trio"),  # markdown-it, pydantic-ai, httpx, anyio
    }
)
"""Modules that packages which ATP needs import if they are there, without requiring them."""


class TakesTooLong(SystemExit):
    """An import that doesn't come to its end. Like an exit, it gets past code that catches any `Exception`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g}s")
        self.code = 2


class _Limit:
    seconds: float | None = None


def limit_imports(seconds: float = USUAL_SECONDS) -> None:
    """Limit how long each import of an agent's code may take from now on.

    Only for a process that is all ours: the limit needs `SIGALRM`, which others may need for themselves.
    """
    _Limit.seconds = min(max(_SHORTEST, seconds), _LONGEST)


@contextmanager
def loading(place: str | None = None, folders: Sequence[Path] = ()) -> Iterator[None]:
    """Import the user's code at a place inside. Raises `LoadError` if that would replace a module that ATP needs."""
    folder = None if place is None else folder_of(place, folders)
    if folder is not None:
        check_shadowing(folder)
    seconds = _Limit.seconds
    may_signal = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    with foreign(), _in_time(seconds) if seconds is not None and may_signal else nullcontext():
        yield


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TakesTooLong(seconds)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGALRM) is give_up:
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def configuration_error(error: UnusableCode) -> ConfigurationError:
    """What is wrong with the user's code, with a guess at what was meant."""
    meant = near_miss(error.word, error.known) if error.word is not None else None
    return ConfigurationError(str(error), f"did you mean `{meant}`?" if meant else error.hint)


def check_project_path(root: Path) -> None:
    """Check the folders of a project that are on `sys.path` already, as under pytest or in a script of the user's."""
    root = root.resolve()
    for entry in dict.fromkeys(sys.path):
        folder = Path(entry).resolve()
        if (folder == root or root in folder.parents) and not _is_installed(str(folder)):
            check_shadowing(folder)


def check_shadowing(folder: Path) -> None:
    """Raise `LoadError` (`shadowed-module`) if a module in a folder has the name of one that ATP needs."""
    for name in _shadowing(str(folder), folder.stat().st_mtime_ns):
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
        if own is None or own.origin is None:  # no module, or a folder, which installed packages go before
            continue
        installed = importlib.machinery.PathFinder.find_spec(name, elsewhere)
        if installed is None or installed.origin is None:
            if name in OPTIONAL_MODULES:
                found.append(name)
        elif source_of(installed) != source_of(own) and name in _needed_modules():
            found.append(name)
    return found


def _modules_in(folder: Path) -> Iterable[str]:
    """The names of the modules in a folder, but for those of the standard library, which Python's own go before."""
    suffixes = tuple(importlib.machinery.all_suffixes())
    names = {one.name.partition(".")[0] for one in folder.iterdir() if one.name.endswith(suffixes) or one.is_dir()}
    return {name for name in names if name.isidentifier() and name not in sys.stdlib_module_names}


def _is_installed(folder: str) -> bool:
    return folder.endswith(("site-packages", "dist-packages")) or Path(folder, "atp", "usercode").is_dir()


@lru_cache(maxsize=1)
def _needed_modules() -> frozenset[str]:
    """The top-level modules of ATP, of its extras, and of all that they require, as far as it is installed."""
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
