"""What the tests of the commands share."""

import sys
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from atp.cli.main import main


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., CompletedProcess[str]]:
    """`atp` in this process: most of a command's time goes into starting Python."""

    def here(*arguments: str) -> CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["atp", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        return CompletedProcess(arguments, left.value.code, *capfd.readouterr())  # type: ignore[arg-type]

    return here
