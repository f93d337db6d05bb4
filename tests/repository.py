"""Repositories of git for tests, whatever the settings of whoever runs them."""

import os
import subprocess
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    """Call git in a folder, and return what it prints."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, env=clean, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()
