"""Containers that runs left behind: each is labelled with whose it is, and those of the dead are removed.

A run that is killed can't clean up. What tells its containers from those of a run that lives is the process that
made them: its number and its start, on this machine since it was booted. Where that can't be told, because another
machine or another container shares the engine, nothing is touched.
"""

import asyncio
import contextlib
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from aiodocker.exceptions import DockerError

from atp.agents.docker.engine import Engine

OF_RUN = "atp.run"
"""The label with the run's marker: every container of ours has it."""
OF_ADAPTER = "atp.adapter"
"""The label that tells the containers of one adapter from those of another."""
_HOST, _PID, _START = "atp.host", "atp.pid", "atp.start"


def labels(marker: str, adapter: str) -> dict[str, str]:
    """Whose a container is."""
    pid = os.getpid()
    return {OF_RUN: marker, OF_ADAPTER: adapter, _HOST: _host(), _PID: str(pid), _START: _start(pid) or ""}


async def remove_leftovers(engine: Engine) -> None:
    """Remove the containers of runs that are dead. What can't be removed stays for the next one to try."""
    found = await _labelled(engine, OF_RUN)
    dead = [one["Id"] for one in found if _is_dead(one.get("Labels") or {})]
    await asyncio.gather(*(_remove(engine, name) for name in dead))


async def remove_own(engine: Engine, adapter: str) -> int:
    """Remove all containers of an adapter; how many there were."""
    found = await _labelled(engine, f"{OF_ADAPTER}={adapter}")
    for one in found:
        await engine.docker.containers.container(one["Id"]).delete(force=True, v=True)
    return len(found)


async def _labelled(engine: Engine, label: str) -> list[Mapping[str, Any]]:
    found = await engine.docker.containers.list(all=True, filters={"label": [label]})
    return [one._container for one in found]


async def _remove(engine: Engine, name: str) -> None:
    with contextlib.suppress(DockerError, aiohttp.ClientError, OSError):
        await engine.docker.containers.container(name).delete(force=True, v=True)


def _is_dead(labelled: Mapping[str, str]) -> bool:
    """Whether the process that made a container is certainly gone."""
    pid = labelled.get(_PID, "")
    if labelled.get(_HOST) != _host() or not pid.isdecimal():
        return False
    start = labelled.get(_START)
    if start:
        return _start(int(pid)) != start
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # somebody else's
        return False
    return False


@cache
def _host() -> str:
    """The machine since it was booted, and the name space that process numbers are of."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return platform.node()


def _start(pid: int) -> str | None:
    """When a process was started, in the system's own measure; nothing if there is none of this number."""
    try:
        about = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = about.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]
