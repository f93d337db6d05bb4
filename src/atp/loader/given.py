"""What the caller brings along, which a file may leave out or lean on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The environment, and the parts that the command line names."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Where variables are looked up."""
    agent: bool = False
    """An agent is named (`-n`): a file needs none of its own."""
    spare_agent: bool = False
    """The environment or the project's settings name one for files that have none of their own."""
    simulator: bool = False
    """A simulator is named (`--simulator`)."""
    assessor: bool = False
    """An assessor is named (`--assessor`)."""
