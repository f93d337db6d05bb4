"""The environments of child processes, and the words for how they ended."""

import signal
from pathlib import Path

import pytest

from atp.agents.adapter import AdapterContext
from atp.agents.child import child_environment, ending


def test_a_child_gets_a_few_variables_its_own_and_the_marker(tmp_path: Path) -> None:
    context = AdapterContext(
        base=tmp_path, environment={"PATH": "/bin", "HOME": "/root", "API_KEY": "s3cret"}, marker="m"
    )
    own = {"HOME": "/own", "ATP_RUN": "another"}
    assert child_environment(context, own) == {"PATH": "/bin", "HOME": "/own", "ATP_RUN": "m"}
    assert child_environment(context, own, everything=True) == {
        "PATH": "/bin",
        "HOME": "/own",
        "API_KEY": "s3cret",
        "ATP_RUN": "m",
    }


def test_without_a_marker_a_child_gets_none(tmp_path: Path) -> None:
    assert child_environment(AdapterContext(base=tmp_path, environment={"API_KEY": "s3cret"}, marker="")) == {}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-signal.SIGKILL, "ended by SIGKILL"),
        (-signal.SIGRTMIN, "ended by SIGRTMIN"),
        (-signal.SIGRTMIN - 1, f"ended by signal {signal.SIGRTMIN + 1}"),
    ],
)
def test_how_a_process_ended(code: int, words: str) -> None:
    assert ending(code) == words
