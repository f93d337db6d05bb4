"""The tool of the ocean agent: a function, whose signature and docstring are all that a model is told about it."""

from pathlib import Path


def warm_ocean(workspace: Path, degrees: float = 1) -> str:
    """Warm the ocean by so many degrees centigrade."""
    with (workspace / "ocean.log").open("a", encoding="utf-8") as log:
        log.write(f"+{degrees:g} °C\n")
    return f"The ocean is {degrees:g} °C warmer now."
