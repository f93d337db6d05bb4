"""Every example in the README and the docs is executed.

A block after `<!-- file: NAME -->` is written to that file. In a `console` block, a line that begins with `$ ` is run
in the same folder, and the lines below it are what it must print; `…` stands for anything. A page's blocks share a
folder. A `console` block after `<!-- not run: WHY -->` is left alone.

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<order>file|not run): (?P<what>.*?) -->\n+)?^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$", re.M | re.S
)


def _commands(body: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.strip()
        found.append((command, expected.strip()))
    return found


def _fits(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(piece) for piece in expected.split("…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_page(page: Path, tmp_path: Path) -> None:
    bin_folder = Path(sys.executable).parent
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ATP_")}
    env = {**clean, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "100"}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["order"] == "file":
            target = tmp_path / block["what"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block["body"], encoding="utf-8")
        elif block["kind"] == "console" and block["order"] is None:
            for command, expected in _commands(block["body"]):
                ran = subprocess.run(
                    command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
                )
                printed = ran.stdout + ran.stderr
                assert _fits(expected, printed), f"$ {command}\n--- expected\n{expected}\n--- printed\n{printed}"
