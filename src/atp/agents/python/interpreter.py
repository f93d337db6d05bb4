"""Finds the interpreter of another environment, makes the command of a worker in it, and explains a failed start."""

import os
import shutil
import subprocess
from pathlib import Path

from atp.agents.adapter import AdapterContext
from atp.agents.child import Command, child_environment
from atp.base.errors import ConfigurationError
from atp.base.project import working_directory
from atp.usercode.worker import serve

OLDEST_VERSION = (3, 8)
"""The oldest Python version that a worker runs on."""
_SERVE = Path(serve.__file__)
_PRINT_VERSION = "import sys; sys.stdout.write('%d.%d.%d' % tuple(sys.version_info[:3]))"


def find_interpreter(python: str, context: AdapterContext) -> str:
    """The interpreter that `python:` names: by its path, by its environment's folder, or as a command on the PATH."""
    path = context.base / Path(python).expanduser()
    if path.is_dir():
        found = next((one for one in (path / "bin/python", path / "Scripts/python.exe") if one.is_file()), None)
        if found is None:
            raise ConfigurationError(
                f"`python`: {path} is not an environment: there is no bin/python in it",
                f"make one: python3 -m venv {path}",
            )
        path = found
    if path.is_file():
        if not os.access(path, os.X_OK):
            raise ConfigurationError(
                f"`python`: {path} can't be executed", "name an interpreter, like `env/bin/python`"
            )
        return str(path.absolute())  # not resolved: an interpreter finds its environment by the path of the link
    command = None if os.sep in python else shutil.which(python, path=context.environment.get("PATH"))
    if command is None:
        nor = "" if os.sep in python else f", and no `{python}` on the PATH"
        raise ConfigurationError(
            f"`python`: there is no interpreter at {path}{nor}",
            "the path starts in the suite's folder; an environment is made by `python3 -m venv FOLDER`",
        )
    return command


def worker_command(interpreter: str, context: AdapterContext) -> Command:
    """The command that starts a worker. It gets all environment variables, as an agent in our own process does."""
    environment = child_environment(context, everything=True)
    environment.pop("PYTHONHOME", None)
    return Command((interpreter, "-u", "-X", "utf8", str(_SERVE)), working_directory(), environment)


def start_error(interpreter: str, how: str, printed: str) -> str:
    """Explain why a worker ended before its first message. Blocks while the interpreter prints its version."""
    try:
        run = subprocess.run(  # noqa: S603  (the interpreter that the user names)
            [interpreter, "-c", _PRINT_VERSION],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        version = tuple(int(part) for part in run.stdout.split("."))
    except (OSError, ValueError, subprocess.SubprocessError):
        first_line = printed.partition("\n")[0]
        return f"{interpreter} is not a Python interpreter{f': {first_line}' if first_line else f' ({how})'}"
    if version[:2] < OLDEST_VERSION:
        version_needed = ".".join(str(part) for part in OLDEST_VERSION)
        return f"{interpreter} is Python {run.stdout}, and agents need {version_needed} or newer"
    return f"the worker in {interpreter} could not start: {how}{f': {printed}' if printed else ''}"
