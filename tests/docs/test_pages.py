"""Every example in the README and the docs is executed.

The blocks of a page share a folder, which has a copy of `examples/` in it:

- A block after `<!-- file: NAME -->` is written to that file, after `<!-- added to: NAME -->` to its end. A test file
  that no command names must load without a diagnostic.
- In a `console` block, a line that begins with `$ ` is run, and the lines below it are what it must print; `…` stands
  for anything, and durations may differ. A command that ends in ` &` runs until the page ends.
- A `python` block is run. Its lines that begin with `# > ` are what it must print.
- `pip install -e .` builds the page's `pyproject.toml` without a network, and has what was built found.
- `openai.…` and `anthropic.…` connectors reach a model that `stand_in.py` describes; the keys are in the environment.
- `envs/crew` is CrewAI's environment, which tools/crewai-env.sh makes; a page that names it needs that.
- A block after `<!-- run by: FILE -->` is carried out by that test instead; after `<!-- not run: WHY -->`, by none.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.agents.support.crewai_environment import CREWAI, needs_crewai
from tests.docs.blocks import BLOCK, PAGES, ROOT, commands
from tests.docs.stand_in import stand_in
from tests.models.mock_server import MockModels
from tests.starting import run_atp
from tests.waiting import WAIT_LIMIT

from atp.loader.load import dialect_of, load_path

TOOK = re.compile(r"(?:(?<=\()|(?<=Time:    ))(?:\d+m)?[\d.]+m?s\b")
"""How long something took, which is never the same."""
SHELL = re.compile(r"[^\w\s./:=,@%+'\"-]")
"""What a shell may read as more than a letter of a word."""


@dataclass
class PageRun:
    """A page being carried out in a folder of its own."""

    folder: Path
    env: dict[str, str]
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    named: str = ""
    """All that is run, to see which files it names."""

    def carry_out(self, page: str) -> None:
        shutil.copytree(
            ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns(".atp", "output-*", "*.tps.json")
        )
        if "envs/crew" in page:
            self.give_crewai()
        try:
            for block in BLOCK.finditer(page):
                self.block(block["order"], block["what"], block["kind"], block["body"])
            self.check_unnamed()
        finally:
            for process in self.started:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def give_crewai(self) -> None:
        needs_crewai()
        (self.folder / "envs").mkdir()
        (self.folder / "envs/crew").symlink_to(CREWAI)
        self.env["HOME"] = str(self.folder / "home")  # CrewAI keeps files there

    def block(self, order: str | None, what: str | None, kind: str, body: str) -> None:
        if order in ("file", "added to"):
            assert what is not None
            target = self.folder / what
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a" if order == "added to" else "w", encoding="utf-8") as file:
                file.write(body)
        elif order == "run by":
            assert what is not None
            assert "run_by(__file__)" in (ROOT / what).read_text(encoding="utf-8"), f"{what} does not look for it"
        elif order is None and kind == "console":
            for command, expected in commands(body):
                self.run(command, expected)
        elif order is None and kind == "python":
            self.python(body)

    def install(self) -> None:
        """Build the page's package and unpack it, as pip would; its build backend is installed here already."""
        ran = self.process([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"])
        assert ran.returncode == 0, ran.stdout
        (wheel,) = (self.folder / "dist").glob("*.whl")
        installed = self.folder / "venv" / "site-packages"
        with zipfile.ZipFile(wheel) as files:
            files.extractall(installed)
        self.env["PYTHONPATH"] = str(installed)

    def run(self, command: str, expected: str) -> None:
        self.named += f"{command}\n"
        if command == "pip install -e .":
            self.install()
            return
        if command.endswith(" &"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            shell = f"exec {command[:-2]}"
            self.started.append(
                subprocess.Popen(shell, shell=True, cwd=self.folder, env=self.env, start_new_session=True, **quiet)  # type: ignore[call-overload]
            )
            return
        if command.startswith("atp ") and not SHELL.search(command):
            ran = run_atp(*shlex.split(command)[1:], cwd=self.folder, env=self.env, merged=True)
        else:
            ran = self.process(["/bin/sh", "-c", command])
        assert _fits(expected, ran.stdout), f"$ {command}\n--- expected\n{expected}\n--- printed\n{ran.stdout}"

    def python(self, body: str) -> None:
        self.named += body
        expected = "\n".join(line[4:] for line in body.splitlines() if line.startswith("# > "))
        ran = self.process([sys.executable, "-W", "error", "-c", body])
        fits = ran.returncode == 0 and (not expected or _fits(expected, ran.stdout))
        assert fits, f"{body}\n--- printed\n{ran.stdout}"

    def process(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run something, with what it prints in one piece, as on a terminal."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_LIMIT,
            check=False,
        )

    def check_unnamed(self) -> None:
        """Test files that are only shown must be in order all the same."""
        for path in sorted(self.folder.rglob("*")):
            inside = path.relative_to(self.folder)
            if (
                inside.parts[0] in ("examples", "tapes")
                or ".atp" in inside.parts
                or not path.is_file()
                or dialect_of(path) in (None, "json")
            ):
                continue
            if (
                path.name not in self.named
                and path.name not in ("prompts.yml", "quarantine.yaml")
                and not path.name.startswith("output-")
            ):
                assert load_path(path).diagnostics == [], f"{inside} is not in order"


def _fits(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(piece) for piece in TOOK.sub("0ms", expected).split("…"))
    return re.fullmatch(pattern, TOOK.sub("0ms", printed.strip()), re.DOTALL) is not None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _environment(models: MockModels) -> dict[str, str]:
    bin_folder = Path(sys.executable).parent
    # A page is about a person at a terminal: with CI set, no golden file is written.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ATP_") and name != "CI"}
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    ours = {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "TZ": "UTC"}
    return {**clean, **models.env, **ours}


def _carry_out(page: Path, folder: Path, environment: dict[str, str]) -> None:
    own = {"PORT": str(_free_port()), "XDG_DATA_HOME": str(folder / "data")}  # with no model installed
    PageRun(folder, {**environment, **own}).carry_out(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[None]]]:
    """All pages that are asked for, carried out side by side: they mostly wait for processes."""
    asked = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    pages = [spec.params["page"] for spec in asked if spec is not None]
    with MockModels(stand_in) as models, ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        environment = _environment(models)  # before there are threads: pytest changes its own with every test
        yield {
            page: pool.submit(_carry_out, page, tmp_path_factory.mktemp(page.stem), environment)
            for page in pages
            if isinstance(page, Path)
        }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_page(page: Path, runs: dict[Path, "Future[None]"]) -> None:
    runs[page].result()
