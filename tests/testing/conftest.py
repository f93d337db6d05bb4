"""Fixtures for the tests of `atp.testing`."""

from tests.agents.support.docker_engine import engine

__all__ = ["engine"]  # a fixture; the daemon starts when a test first asks for it
