"""What tests of all folders share."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

os.environ.pop("GITHUB_ACTIONS", None)  # what tests run is not what our own CI is to annotate


@pytest.fixture
def atp() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs `atp` with the arguments given, in a process of its own."""

    def run(*arguments: str, **settings: Any) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "atp", *arguments]
        usual: dict[str, Any] = {"capture_output": True, "text": True, "encoding": "utf-8", "timeout": 60}
        return subprocess.run(command, check=False, **{**usual, **settings})

    return run
