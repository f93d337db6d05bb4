"""Functions of the user's that run before and after a trial, or the whole run."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atp.base.errors import Error
from atp.usercode.code_path import load_function
from atp.usercode.contain import contained
from atp.usercode.printed import Printed
from atp.usercode.threads import Raised, Thread


class HookError(Error):
    """A hook that could not be run to its end."""


class Hooks:
    """The hooks of a run, each loaded once."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._loaded: dict[tuple[str, Path | None], Callable[..., Any]] = {}

    def load(self, name: str, folder: Path | None = None) -> Callable[..., Any]:
        """The function a hook names: `module:function`, `file.py:function` or `scripts:a.b`.

        `folder` is that of the file which names it. Raises `ConfigurationError`.
        """
        place = (name, folder)
        if place not in self._loaded:
            self._loaded[place] = load_function(name, self._folders if folder is None else (folder, *self._folders))
        return self._loaded[place]

    async def call(
        self, name: str, about: dict[str, Any], log: Callable[[str], None], folder: Path | None = None
    ) -> None:
        """Run a hook. Whatever it raises becomes a `HookError`, for which no agent is to blame.

        `log` gets the lines that it prints.
        """
        printed = Printed()
        context = contextvars.copy_context()
        context.run(printed.catch)
        try:
            function = self.load(name, folder)
            takes = len(inspect.signature(function).parameters) > 0
            made = await Thread(context).call(lambda: function(about) if takes else function(), last=True)
            if inspect.iscoroutine(made):
                made = await contained(made, context)
            if isinstance(made, Raised):
                raise made.error
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise HookError(f"hook {name}: {type(error).__name__}: {error}") from error
        finally:
            for line in printed.finish():
                log(line)
