"""`pip install`, as the pages have it, into an environment that has all but ATP: no network, nothing from this tree."""

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.docs.blocks import ROOT, run_by
from tests.docs.newcomer import call, files, plain_environment, shell
from tests.waiting import WAIT_LIMIT

import atp

COMMANDS = [command for _, commands in run_by(__file__) for command in commands]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name that the base class gives it)
        pass


@contextmanager
def served(repository: Path) -> Iterator[str]:
    """The address of the repository on a server that knows nothing of git but its files."""
    subprocess.run(["git", "update-server-info"], cwd=repository, check=True, timeout=WAIT_LIMIT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=repository)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/.git"
        finally:
            server.shutdown()
            thread.join()


def install(command: str, repository: Path, environment: Path) -> None:
    """Run the command, with the places that the reader has to fill in. Build tools and packages come from here."""
    command = command.replace("pip install", "pip install --no-index --no-build-isolation", 1)
    command = command.replace("/path/to/atp", str(repository))
    env = {**plain_environment(environment / "bin"), "no_proxy": "127.0.0.1"}
    with served(repository) as address:
        done = shell([command.replace("https://<this repository>", address)], environment, env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not provide the extra" not in done.stderr, done.stderr


def test_there_are_commands() -> None:
    assert COMMANDS
    assert all(shlex.split(command)[:2] == ["pip", "install"] for command in COMMANDS)


@pytest.mark.parametrize("command", [one for one in COMMANDS if "[" not in one])
def test_everything_is_installed(command: str, repository: Path, environment: Path, tmp_path: Path) -> None:
    install(command, repository, environment)
    assert call(environment, tmp_path, "atp --version") == f"atp {atp.__version__}\n"
    place = Path(call(environment, tmp_path, "python -c 'import atp; print(atp.__file__)'").strip()).parent
    assert place.is_relative_to(environment)
    assert files(place) == files(ROOT / "src/atp")


@pytest.mark.parametrize("command", [one for one in COMMANDS if "[" in one])
def test_extras_can_be_installed(command: str, repository: Path, environment: Path) -> None:
    """What is installed beside the extras is the same for all; so only whether pip finds everything is tried."""
    install(command.replace("pip install", "pip install --dry-run", 1), repository, environment)
