"""What a judge is shown of the files that an agent made: text of a size that can be read."""

from atp.checks.evidence import Evidence
from atp.checks.globs import normal_path
from atp.checks.made import Made, NoFile, Unreadable

LARGEST = 1024 * 1024
"""Bytes; of a larger file, only the size is told."""
MOST_BYTES = 8 * LARGEST
"""Bytes of all files that are read; of the others, only the size is told."""


def files_of(evidence: Evidence) -> dict[str, str]:
    """What the agent made, by name. What is in the workspace goes before what it handed over."""
    made = {name: Made(name, path) for name, path in evidence.made.items()}
    for artifact in evidence.transcript.artifacts:
        if artifact.kind != "reference":
            made.setdefault(name := normal_path(artifact.name), Made(name, artifact))
    room, shown = MOST_BYTES, {}
    for name, one in made.items():
        shown[name] = content_of(one, min(room, LARGEST))
        room -= len(shown[name])
    return shown


def content_of(made: Made, most: int = LARGEST) -> str:
    """The text of a file, or what it is instead."""
    try:
        if made.size() > most:
            return f"[a file of {made.size()} bytes, too large to be shown]"
        return made.content().decode()
    except UnicodeDecodeError as error:
        return f"[a file of {len(error.object)} bytes that are not text]"
    except (NoFile, Unreadable) as error:
        return f"[not a file that can be shown: {error}]"
