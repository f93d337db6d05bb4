"""`pip install`, as the pages have it, into an environment that has all but ATP: no network, nothing from this tree."""

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.docs.blocks import ROOT, run_by
from tests.docs.newcomer import plain_environment, shell
from tests.waiting import WAIT_LIMIT

import atp

COMMANDS = [command for _, commands in run_by(__file__) for command in commands]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's environment: what ATP depends on and is built with is there, ATP is not."""
    made = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", made], check=True, timeout=WAIT_LIMIT)
    packages = made / "packages"
    packages.mkdir()
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        if not one.name.startswith(("agent_test_platform", "_agent_test_platform", "pip")):
            (packages / one.name).symlink_to(one)
    (inside,) = made.glob("lib/python*/site-packages")
    (inside / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    return made


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


def call(environment: Path, folder: Path, command: str) -> str:
    done = shell([command], folder, plain_environment(environment / "bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(package: Path) -> set[str]:
    return {
        one.relative_to(package).as_posix()
        for one in package.rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    }


def test_there_are_commands() -> None:
    assert COMMANDS
    assert all(shlex.split(command)[:2] == ["pip", "install"] for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_everything_is_installed(command: str, repository: Path, environment: Path, tmp_path: Path) -> None:
    install(command, repository, environment)
    assert call(environment, tmp_path, "atp --version") == f"atp {atp.__version__}\n"
    place = Path(call(environment, tmp_path, "python -c 'import atp; print(atp.__file__)'").strip()).parent
    assert place.is_relative_to(environment)
    assert files(place) == files(ROOT / "src/atp")


def test_what_is_installed_works_on_its_own(repository: Path, environment: Path, tmp_path: Path) -> None:
    """What it has beside Python code is found: the starters, the files of the HTML report, the pytest plugin."""
    if not (environment / "bin/atp").exists():
        install("pip install /path/to/atp", repository, environment)
    for kind in ("yaml", "md", "jsonl"):
        call(environment, tmp_path, f"atp init {kind} --dir {kind}")
    said = call(environment, tmp_path, "python -m atp test yaml/suite.yaml -o report.html -o report.json")
    assert "Failed:  0" in said
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["summary"]["passed"] > 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for asset in (ROOT / "src/atp/report/html/assets").glob("*.js"):
        assert asset.read_text(encoding="utf-8").splitlines()[0] in page, asset.name
    schema = json.loads(call(environment, tmp_path, "atp schema yaml"))
    assert "test_suite" in schema["properties"]
    listed = call(environment, tmp_path, "python -m pytest --atp --collect-only -q yaml")
    assert "suite.yaml::" in listed
    assert os.listdir(tmp_path / ".atp/runs")
