"""What a container may have: how much memory and processor time, and which files from outside.

An engine takes a limit of nothing for no limit at all, so that what rounds to nothing is refused here.
"""

import posixpath
import re
from collections import Counter
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from atp.suite.record import Amount, Count, Text

WORKSPACE = "/workspace"
"""Where a container sees the trial's folder."""
VOLUME = re.compile(r"(?P<host>.+?):(?P<container>/[^:]*)(:(?P<mode>ro|rw))?", re.DOTALL)
"""A mount: `host:container`, read-only with `:ro`."""
FEWEST_CPUS = 0.01
"""The least share of a processor that Linux keeps: a millisecond of every 100."""
MOST_CPUS = 10_000
"""More than any machine has, and a number that an engine can still read."""
_LARGEST = 2**63
_MEMORY = r"^\d+(\.\d+)?\s*([bkmgBKMG][bB]?)?$"
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def memory_bytes(amount: str | int) -> int | None:
    """The bytes of `512m`, `1.5g` and the like; None for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmg]?)b?", str(amount).lower())
    if found is None:
        return None
    size = float(found[1]) * _UNITS[found[2]]
    return int(size) if size < _LARGEST else _LARGEST


def _is_memory(amount: Any) -> Any:
    is_number = isinstance(amount, int | str) and not isinstance(amount, bool)
    size = memory_bytes(amount) if is_number else None
    if size is not None and 0 < size < _LARGEST:
        return amount
    wrong = "is no amount of memory" if size is None else "means no limit" if size == 0 else "is more than there can be"
    raise PydanticCustomError(
        "bad_value",
        "`memory` must be an amount such as 512m or 1g, and this {wrong}",
        {"wrong": wrong, "hint": 'write a number of bytes, or one with k, m or g: "512m", "1g"'},
    )


def _is_share(cpus: float) -> float:
    if not FEWEST_CPUS <= cpus <= MOST_CPUS:
        raise PydanticCustomError(
            "out_of_range",
            "`cpus` must be from {fewest} to {most}",
            {"fewest": FEWEST_CPUS, "most": MOST_CPUS, "hint": "write how many processors it may use: 0.5, 1, 2"},
        )
    return cpus


def mounts(volumes: list[str] | dict[str, str]) -> list[str]:
    """Volumes as a list of `host:container[:ro]`."""
    return volumes if isinstance(volumes, list) else [f"{host}:{inside}" for host, inside in volumes.items()]


def mount_points(volumes: list[str] | dict[str, str]) -> list[str]:
    """The paths of volumes in the container, normalised."""
    found = (VOLUME.fullmatch(one) for one in mounts(volumes))
    return [posixpath.normpath(f"/{one['container'].lstrip('/')}") for one in found if one is not None]


def _are_mounts(volumes: list[str] | dict[str, str]) -> list[str] | dict[str, str]:
    for one in mounts(volumes):
        if not VOLUME.fullmatch(one):
            raise PydanticCustomError(
                "docker_volume",
                "`{volume}` is not a mount: `host:/container`, with `:ro` at its end if it is only to be read",
                {"volume": one},
            )
    points = Counter(mount_points(volumes))
    if "/" in points:
        raise PydanticCustomError(
            "docker_volume",
            "nothing can be mounted on `/`, where the image's own files are",
            {"hint": "mount it on a folder, as `/data`"},
        )
    for point, times in points.items():
        if times > 1:
            raise PydanticCustomError(
                "docker_volume", "{times} mounts on `{point}`: only one can be there", {"times": times, "point": point}
            )
    return volumes


Memory = Annotated[Annotated[str, Field(pattern=_MEMORY)] | Count, BeforeValidator(_is_memory)]
"""An amount of memory: bytes, or text as `512m`."""
Cpus = Annotated[Amount, AfterValidator(_is_share)]
"""A number of processors, also a part of one."""
Volumes = Annotated[list[Text] | dict[str, Text], AfterValidator(_are_mounts)]
"""Files and folders from outside."""
