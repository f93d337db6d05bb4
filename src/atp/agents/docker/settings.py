"""The engine's settings of a container, made from an agent's configuration."""

import os
from pathlib import Path
from typing import Any

from atp.agents.adapter import AgentError
from atp.agents.docker.engine import Engine
from atp.agents.stdio import check_startable, split_words
from atp.base.errors import ConfigurationError
from atp.suite.agent import DockerConfig
from atp.suite.container import VOLUME, WORKSPACE, memory_bytes, mounts

STOP_SECONDS = 2
"""Seconds between SIGTERM and SIGKILL when a server is stopped."""


class Settings:
    """The settings that all containers of an agent share. Raises `ConfigurationError`."""

    def __init__(self, config: DockerConfig, base: Path) -> None:
        self._config = config
        self._command = None if config.command is None else split_words(config.command, "command")
        self._entrypoint = None if config.entrypoint is None else split_words(config.entrypoint, "entrypoint")
        check_startable([*(self._command or ()), *(self._entrypoint or ())], config.environment)
        self._mounts = [_mount(one, base) for one in mounts(config.volumes)]

    def check(self, engine: Engine) -> list[str]:
        """Raise `AgentError` for a configured limit that the engine can't enforce; return notes on default limits."""
        for limit in sorted(engine.unable & self._config.model_fields_set):
            raise AgentError(f"the container engine can't enforce the limit `{limit}` on this machine", "environment")
        return [f"the container engine can't enforce the default limit `{limit}`" for limit in sorted(engine.unable)]

    def of_turn(self, engine: Engine, image: str, workspace: Path, session: str) -> dict[str, Any]:
        """Return the settings of a container that reads stdin, in a trial's workspace."""
        settings = self._settings(engine, image)
        settings["HostConfig"]["Mounts"].append(_bind(workspace.resolve(), WORKSPACE))
        settings |= {"OpenStdin": True, "StdinOnce": True, "AttachStdin": True}
        settings["WorkingDir"] = self._config.working_dir or WORKSPACE
        if session:
            settings["Env"].append(f"ATP_SESSION_ID={session}")
        return settings

    def of_server(self, engine: Engine, image: str) -> dict[str, Any]:
        """Return the settings of a server. With a local engine only this machine can reach its port."""
        settings = self._settings(engine, image) | {"StopTimeout": STOP_SECONDS}
        if self._config.working_dir is not None:
            settings["WorkingDir"] = self._config.working_dir
        if self._config.network != "host":
            port = f"{self._config.port}/tcp"
            published = {"HostIp": "127.0.0.1" if engine.address.socket is not None else "", "HostPort": ""}
            settings["ExposedPorts"] = {port: {}}
            settings["HostConfig"]["PortBindings"] = {port: [published]}
        return settings

    def _settings(self, engine: Engine, image: str) -> dict[str, Any]:
        config = self._config
        memory = memory_bytes(config.memory)
        settings: dict[str, Any] = {
            "Image": image,
            "User": config.user if config.user is not None else _caller(engine),
            "Env": [f"{name}={value}" for name, value in config.environment.items()],
            "AttachStdout": True,
            "AttachStderr": True,
            "StopTimeout": 0,  # containers of a turn are killed: nothing reads their last output
            "HostConfig": {
                "NetworkMode": config.network,
                "Memory": memory,
                "MemorySwap": memory,  # both together: no swap beyond the limit
                "NanoCpus": round(config.cpus * 1e9),
                "PidsLimit": config.pids,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "LogConfig": {
                    "Type": "none",
                    "Config": {},
                },  # the output is read live
                "Mounts": list(self._mounts),
            },
        }
        if self._command is not None:
            settings["Cmd"] = self._command
        if self._entrypoint is not None:
            settings["Entrypoint"] = self._entrypoint
        return settings


def _caller(engine: Engine) -> str:
    """Return the user of a container: the calling user, who is root in containers of a rootless engine."""
    return "0:0" if engine.rootless else f"{os.getuid()}:{os.getgid()}"


def _mount(written: str, base: Path) -> dict[str, Any]:
    found = VOLUME.fullmatch(written)
    assert found is not None, "the configuration checks the form"
    try:
        host = base.absolute() / Path(found["host"]).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"`volumes`: {written}: {error}") from error
    source = Path(os.path.normpath(host))
    if not os.path.lexists(source):
        raise ConfigurationError(
            f"`volumes`: there is no {source} to mount", "a path starts at the folder of the file that names it"
        )
    return _bind(source, found["container"], read_only=found["mode"] == "ro")


def _bind(host: Path, container: str, read_only: bool = False) -> dict[str, Any]:
    # Not the short form `Binds`, which makes an empty folder where there is nothing to mount.
    return {"Type": "bind", "Source": str(host), "Target": container, "ReadOnly": read_only}
