"""Removes containers that killed runs left behind.

Every container is labelled with the process that created it: its number and start time, on this machine since its boot.
Containers of a process that no longer exists are removed. Containers of other machines, or of other process name spaces
on the same engine, are never touched.
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
"""The label with the run's marker, on every container of ATP."""
OF_ADAPTER = "atp.adapter"
"""The label with the adapter's id."""
_HOST, _PID, _START = "atp.host", "atp.pid", "atp.start"


def labels(marker: str, adapter: str) -> dict[str, str]:
    """Return the labels of a container."""
    pid = os.getpid()
    return {OF_RUN: marker, OF_ADAPTER: adapter, _HOST: _host(), _PID: str(pid), _START: _start(pid) or ""}


async def remove_leftovers(engine: Engine) -> None:
    """Remove the containers of dead runs. Containers that can't be removed are left to the next run."""
    found = await _labelled(engine, OF_RUN)
    dead = [one["Id"] for one in found if _is_dead(one.get("Labels") or {})]
    await asyncio.gather(*(_remove(engine, name) for name in dead))


async def remove_own(engine: Engine, adapter: str) -> int:
    """Remove all containers of an adapter, and return their number."""
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
    """Return whether the process that created a container is certainly gone."""
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
    except OSError:  # another user's process
        return False
    return False


@cache
def _host() -> str:
    """Return an id of the machine since its boot, and of the name space of process numbers."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return platform.node()


def _start(pid: int) -> str | None:
    """Return the start time of a process in clock ticks, or None if no such process runs."""
    try:
        about = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = about.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]
