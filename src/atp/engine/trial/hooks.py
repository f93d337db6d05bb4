"""Functions of the user's that run before and after a trial, or the whole run."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atp.agents.wire import RAW_LENGTH
from atp.base.errors import Error
from atp.base.secret_values import secret_variables
from atp.base.secrets import current_secrets
from atp.base.text import cut
from atp.usercode.call import Raised, call
from atp.usercode.code_path import load_function
from atp.usercode.signature import takes_any


class HookError(Error):
    """A hook that could not be run to its end."""


class Hooks:
    """The hooks of a run, each loaded once."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = folders
        """The folders in which hooks are found, after the folder of the file that names them."""
        self._loaded: dict[tuple[str, Path | None], Callable[..., Any]] = {}

    def load(self, name: str, folder: Path | None = None) -> Callable[..., Any]:
        """The function a hook names: `module:function`, `file.py:function` or `scripts:a.b`.

        `folder` is that of the file which names it. Raises `ConfigurationError`.
        """
        place = (name, folder)
        if place not in self._loaded:
            self._loaded[place] = load_function(name, self.folders if folder is None else (folder, *self.folders))
        return self._loaded[place]

    async def call(
        self, name: str, about: dict[str, Any], log: Callable[[str], None], folder: Path | None = None
    ) -> None:
        """Run a hook. Whatever it raises becomes a `HookError`, for which no agent is to blame.

        `log` gets the lines that it prints. Secrets among the environment variables that it sets are masked from then
        on.
        """
        environment = dict(os.environ)
        try:
            function = self.load(name, folder)
            await call(function, (about,) if takes_any(function) else (), log=log)
        except Raised as raised:
            raise HookError(f"hook {name}: {cut(str(raised), RAW_LENGTH)}") from raised.error
        except Exception as error:
            raise HookError(f"hook {name}: {type(error).__name__}: {error}") from error
        finally:
            if (now := dict(os.environ)) != environment:
                current_secrets().add(secret_variables(now))
