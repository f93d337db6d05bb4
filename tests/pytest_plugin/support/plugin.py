"""How a session inside a test gets the plugin: by its entry point, as users do, else by its name."""

from importlib.metadata import entry_points

# Imported here, so that the sessions inside tests, which forget what they import, find it: Hypothesis has a plugin too.
import hypothesis  # noqa: F401

ATP: tuple[str, ...] = () if entry_points(group="pytest11", name="atp") else ("-p", "atp.pytest_plugin.plugin")
PLUGIN = (*ATP, "-p", "no:langsmith_plugin")
"""Of the plugins that others installed, the one that takes a second to import is left out."""
