"""What somebody has who comes to ATP for the first time: a plain environment, and a clone with its `.venv`."""

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import WAIT_LIMIT


def plain_environment(programs: Path) -> dict[str, str]:
    """The variables of somebody without keys and settings, with a folder of programs before all others."""
    ours = ("ATP_", "GIT_", "MAKE", "MFLAGS", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**clean, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def have_installed(clone: Path) -> None:
    """Give a clone what `make install` makes: the environment that the tests run in, up to date by its stamp."""
    (clone / ".venv").mkdir()
    (clone / ".venv/bin").symlink_to(Path(sys.executable).parent)
    (clone / ".venv/.installed").touch()


def shell(commands: list[str], folder: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Type commands, one after the other, until one fails."""
    script = ["/bin/sh", "-e", "-c", "\n".join(commands)]
    return subprocess.run(
        script, cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8", timeout=WAIT_LIMIT, check=False
    )


def call(environment: Path, folder: Path, command: str) -> str:
    """What a command prints that finds the programs of an environment."""
    done = shell([command], folder, plain_environment(environment / "bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(package: Path) -> set[str]:
    """The files of a package, without what Python compiled."""
    return {
        one.relative_to(package).as_posix()
        for one in package.rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    }
