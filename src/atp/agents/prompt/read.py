"""Finds and reads prompt agents: a Markdown file, or a folder with a package."""

from pathlib import Path

from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.file import read_prompt_file
from atp.agents.prompt.head import Written
from atp.agents.prompt.package import PACKAGE, read_package
from atp.base.errors import ConfigurationError


def find_prompt(place: str, base: Path, root: Path | None) -> Path:
    """Find the Markdown file or the package's folder that a path names. Raises `ConfigurationError`."""
    starts = [base / place]
    if root is not None:
        starts.append(root / place.lstrip("/"))
    for start in starts:
        for path in (start, start.with_name(f"{start.name}.md")):
            if path.is_file() and path.name == PACKAGE:
                return path.parent.resolve()
            if path.is_file() and path.suffix.lower() == ".md":
                return path.resolve()
            if (path / PACKAGE).is_file():
                return path.resolve()
    raise ConfigurationError(f"there is no agent at {place}", f"name a file `agents/x.md`, or a folder with {PACKAGE}")


def read_prompt(path: Path, files: AgentFiles) -> Written:
    """Read the Markdown file or the package that `find_prompt` has found. Mistakes are added to `files`."""
    return read_package(path, files) if path.is_dir() else read_prompt_file(path, files)
