"""Folders that are deeper than any path to them may be long, as agents can make them."""

import subprocess
import sys
from pathlib import Path

MAKE_DEEP = """
import os
for _ in range({levels}):
    os.mkdir("{name}")
    os.chdir("{name}")
open("file", "w").close()
"""
TOO_DEEP = (1100, "d")
"""More levels than Python lets a function call itself."""
TOO_LONG = (30, "d" * 200)
"""A longer path than the system takes."""


def make_deep(folder: Path, levels: int, name: str) -> None:
    """Make folders inside each other, with a file in the last. In a process of its own: it changes its folder."""
    subprocess.run([sys.executable, "-c", MAKE_DEEP.format(levels=levels, name=name)], cwd=folder, check=True)
