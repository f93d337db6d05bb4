"""CrewAI's own environment, which tools/crewai-env.sh makes."""

from pathlib import Path

from tests.parts import missing

CREWAI = Path(__file__).parents[3] / ".venv/envs/crewai"
"""The environment."""


def needs_crewai() -> None:
    """The test that calls this needs the environment."""
    if not (CREWAI / ".installed").is_file():
        missing(f"CrewAI has no environment in {CREWAI}: make it by tools/crewai-env.sh")
