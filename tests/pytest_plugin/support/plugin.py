"""How a session inside a test gets the plugin: by its entry point, as users do, else by its name."""

from importlib.metadata import entry_points

PLUGIN: tuple[str, ...] = () if entry_points(group="pytest11", name="atp") else ("-p", "atp.pytest_plugin")
