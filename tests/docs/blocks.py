"""The blocks of a page, the marks above them, and the commands in them."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:^<!-- (?P<order>file|added to|run by|not run): (?P<what>.*?) -->\n+)?"
    r"^(?P<fence>`{3,})(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


def commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a `console` block, each with what it is to print."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.strip()
        yield command, expected.strip()


def run_by(test: str) -> list[tuple[str, list[str]]]:
    """The blocks that pages leave to a test, named by its file: each with its page and its commands."""
    name = Path(test).relative_to(ROOT).as_posix()
    return [
        (page.relative_to(ROOT).as_posix(), [command for command, _ in commands(block["body"])])
        for page in PAGES
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if (block["order"], block["what"]) == ("run by", name)
    ]
