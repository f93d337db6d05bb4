"""`atp` itself: help, version, unknown commands, pipes that close, and how little it loads."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.waiting import WAIT_LIMIT, until

import atp as atp_package
from atp import __version__
from atp.cli.main import COMMANDS

Atp = Callable[..., CompletedProcess[str]]


def test_help_lists_the_commands(atp: Atp) -> None:
    done = atp("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command, line in COMMANDS.items():
        assert f"  {command}" in done.stdout
        assert line in done.stdout
    assert atp("-h").stdout == done.stdout


@pytest.mark.parametrize("command", ["validate", "show"])
def test_every_command_has_help(atp: Atp, command: str) -> None:
    done = atp(command, "--help")
    assert done.returncode == 0
    assert COMMANDS[command] in done.stdout


def test_version(atp: Atp) -> None:
    assert atp("--version").stdout == f"atp {__version__}\n"


def test_the_installed_command_is_the_same() -> None:
    installed = Path(sys.executable).with_name("atp")
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"atp {__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"),
    [("validat", "Did you mean 'validate'?"), ("shwo", "Did you mean 'show'?"), ("dance", "Commands: ")],
)
def test_an_unknown_command_gets_a_suggestion(atp: Atp, word: str, hint: str) -> None:
    done = atp(word, "x.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"There is no command '{word}'. {hint}" in done.stderr


def test_an_unknown_option(atp: Atp) -> None:
    done = atp("validate", "--sctrict", "x.yaml")
    assert done.returncode == 2
    assert "--strict" in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_has_seen_enough(tmp_path: Path, form: list[str]) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "input": "{"x" * 1000}"}}\n' for number in range(2000)))
    command = [sys.executable, "-m", "atp", "show", *form, str(file)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=WAIT_LIMIT) == 141


def test_a_reader_that_never_was(atp: Atp) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = atp("--help", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_while_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "input": "x"}}\n' for number in range(200_000)))
    command = [sys.executable, "-m", "atp", "validate", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        until(lambda: is_open(file, child.pid) or child.poll() is not None)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=WAIT_LIMIT)
    assert "Traceback" not in errors
    assert child.returncode == 130


def is_open(file: Path, process: int) -> bool:
    """Whether a process has a file open."""
    return any(os.path.realpath(link) == str(file.resolve()) for link in Path(f"/proc/{process}/fd").iterdir())


INTERRUPTED_WHILE_IMPORTING = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.argv = ["atp", "--version"]
from atp.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["click", "atp.cli.main", "atp.usercode.exits"])
def test_ctrl_c_while_atp_is_starting_shows_no_traceback(module: str) -> None:
    script = INTERRUPTED_WHILE_IMPORTING.format(module=module)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


BEFORE_THE_FIRST_COMMAND = """
import sys

class Notes:
    def find_spec(self, name, path=None, target=None):
        if name == "atp.cli":
            print(*sought)
            sys.exit()
        sought.append(name)

sought = []
sys.meta_path.insert(0, Notes())
from atp.__main__ import main
main()
"""


def test_atp_imports_nothing_before_ctrl_c_ends_it_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", BEFORE_THE_FIRST_COMMAND], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    # `signal` itself needs some of Python's modules, `typing` not among them, which takes tens of milliseconds.
    assert [name for name in done.stdout.split() if name.startswith("atp")] == ["atp", "atp.__main__"]
    assert "typing" not in done.stdout.split()


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a command has imported when it is done."""
    script = (
        "import sys\n"
        f"sys.argv = ['atp', *{arguments!r}]\n"
        "from atp.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


HELP_LOADS = {"atp", "atp.cli", "atp.cli.main", "atp.cli.streams", "atp.usercode", "atp.usercode.exits"}
"""The modules of ATP that `atp --help` imports. This set may only shrink."""
VALIDATE_LOADS = {
    "atp.agents",
    "atp.base",
    "atp.checks",
    "atp.cli",
    "atp.engine",
    "atp.loader",
    "atp.suite",
    "atp.usercode",
}
"""The packages of ATP that `atp validate` imports from. This set may only shrink."""
VALIDATE_CHECKS = {
    *("atp.checks.before_run", "atp.checks.evidence", "atp.checks.output", "atp.checks.verdicts"),
    *("atp.checks.matching.compare", "atp.checks.matching.json_paths", "atp.checks.matching.patterns"),
}
"""The modules of checks for a suite that uses only checks of the output: a kind is loaded when a file uses it."""
VALIDATE_MOST = 61
"""How many modules of ATP `atp validate` imports for a small YAML suite. This number may only shrink.

Packages are not counted, so that modules may be sorted into them: an `__init__` has no work of its own.
"""
SOURCE = Path(atp_package.__file__).parent
PACKAGES = {".".join(("atp", *path.parent.relative_to(SOURCE).parts)) for path in SOURCE.rglob("__init__.py")}
HEAVY = {"aiohttp", "jinja2", "jsonschema", "markdown_it", "rich"}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_six_modules_and_click(argument: str) -> None:
    loaded = loaded_by(argument)
    assert {name for name in loaded if name.partition(".")[0] == "atp"} <= HELP_LOADS
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY, "pydantic", "yaml", "msgspec", "asyncio"}


def test_validate_loads_nothing_that_only_a_run_needs(tmp_path: Path) -> None:
    agents = "agents: [{name: a, type: custom, config: {entry: 'agent.py:answer'}}]"
    tests = "tests: [{id: a, name: A, input: x, assertions: [{type: contains, value: y}]}]"
    (tmp_path / "suite.yaml").write_text(f"test_suite: small\n{agents}\n{tests}\n")
    loaded = loaded_by("validate", str(tmp_path / "suite.yaml"))
    ours = {name for name in loaded if name.partition(".")[0] == "atp"} - PACKAGES
    assert {".".join(name.split(".")[:2]) for name in ours} <= VALIDATE_LOADS
    assert {name for name in ours if name.startswith("atp.checks")} <= VALIDATE_CHECKS
    assert len(ours) <= VALIDATE_MOST
    assert not {name.partition(".")[0] for name in loaded} & HEAVY


def test_jsonl_needs_no_yaml_and_yaml_no_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "input": "x"}\n')
    script = (
        "import sys; from atp.loader import TestLoader; TestLoader().load_file(sys.argv[1]);print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.jsonl")], capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & {"yaml", "markdown_it", "jsonschema", "jsonpath_rfc9535"}
