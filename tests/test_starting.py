"""How tests start processes: `atp` forked from a process that has it imported is `python -m atp`; signals are reset."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.starting import run_atp

AGENT = """
import os, sys
def run(prompt):
    print("from the agent", file=sys.stderr)
    return f"{prompt} {os.getcwd()} {os.environ['SAID']}"
"""


def real(*arguments: str, cwd: Path, env: dict[str, str], said: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "atp", *arguments]
    done = subprocess.run(command, cwd=cwd, env=env, input=said, capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["dance"],
        ["show", "cases.jsonl"],
        ["validate", "gone.jsonl"],
        ["test", "cases.jsonl", "-n", "agent.py:run", "--dry-run"],
        ["chat", "agent.py:run"],
    ],
)
def test_it_does_the_same(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "agent.py").write_text(AGENT, "utf-8")
    (tmp_path / "cases.jsonl").write_text('{"id": "ä", "input": "x", "expected": "y"}\n', "utf-8")
    env = {**os.environ, "SAID": "ö"}
    done = run_atp(*arguments, cwd=tmp_path, env=env, input="hello ü\n")
    expected = real(*arguments, cwd=tmp_path, env=env, said="hello ü\n")
    assert (done.returncode, done.stdout, done.stderr) == expected
    assert expected[1] or expected[2]


def test_what_python_reads_when_it_starts_gets_a_python_of_its_own(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONVERBOSE": "1"}
    assert "import 'atp.cli.main'" in run_atp("--version", cwd=tmp_path, env=env).stderr


def test_one_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import time\ndef run(prompt): time.sleep(600)\n", "utf-8")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "x"}\n', "utf-8")
    with pytest.raises(subprocess.TimeoutExpired):
        run_atp("test", "cases.jsonl", "-n", "agent.py:run", cwd=tmp_path, timeout=1)


def ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def test_signals_that_a_background_job_ignores_reach_what_tests_start() -> None:
    """`make test &` in a shell script has SIGINT ignored; tests of Ctrl-C must not inherit that."""
    signals = "import signal; print(*[signal.getsignal(one).name for one in (1, 3, 15)], signal.getsignal(2).__name__)"
    script = f"import subprocess, sys, tests.conftest; subprocess.run([sys.executable, '-c', {signals!r}], check=True)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[1],
        preexec_fn=ignore_signals,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "SIG_DFL SIG_DFL SIG_DFL default_int_handler\n"
