"""Images for the tests, made of what is on this machine: its busybox and its Python."""

import hashlib
import io
import json
import platform
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BUSYBOX = "atp-test/busybox:latest"
PYTHON = "atp-test/python:latest"
FOREIGN = "atp-test/foreign:latest"
"""An image for another architecture."""
HERE = Path(__file__).parent
AGENTS = "agent/tests/agents/support"
"""Where the Python image has the agents, at the place at which their imports find them."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_UNUSED = {"site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo", "pydoc_data"}


def archives() -> Iterator[bytes]:
    """The images in the form of `docker save`."""
    own = _ARCHITECTURES.get(platform.machine(), platform.machine())
    yield _image(BUSYBOX, _busybox(), own, {"Cmd": ["/bin/busybox", "cat"]})
    python = str(Path(sys.executable).resolve())
    yield _image(
        PYTHON,
        _python(python),
        own,
        {
            "Entrypoint": [python, "-S", f"/{AGENTS}/docker_agent.py"],
            "Cmd": ["echo"],
            "Env": [f"PYTHONHOME={sys.base_prefix}", "PYTHONPATH=/agent", "PATH=/bin", "OF_IMAGE=yes"],
        },
    )
    other, machine = ("amd64", 62) if own == "arm64" else ("arm64", 183)
    yield _image(FOREIGN, _layer({"agent": _elf(machine)}), other, {"Cmd": ["/agent"]})


def _image(name: str, layer: bytes, architecture: str, config: dict[str, Any]) -> bytes:
    about = {
        "architecture": architecture,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"manifest.json": json.dumps(manifest).encode(), "config.json": json.dumps(about).encode()}
    return _layer({**files, "layer.tar": layer})


def _layer(files: "dict[str, bytes | Path]", folders: tuple[str, ...] = ()) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for folder in folders:
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777
            archive.addfile(member)
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            member = tarfile.TarInfo(name.lstrip("/"))
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


def _busybox() -> bytes:
    path = shutil.which("busybox")
    assert path is not None
    return _layer({"bin/busybox": Path(path), "bin/sh": Path(path)}, ("tmp",))


def _python(program: str) -> bytes:
    stdlib = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    files: dict[str, bytes | Path] = {program: Path(program)}
    for path in _files(stdlib):
        files[str(path)] = path
    extensions = [str(path) for path in stdlib.glob("lib-dynload/*.so")]
    for library in _libraries([program, *extensions]):
        files[library] = Path(library)
    files |= {f"{AGENTS}/{name}": HERE / name for name in ("command.py", "docker_agent.py", "docker_server.py")}
    return _layer(files, ("tmp",))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _UNUSED and not path.name.startswith("config-"):
            yield from _files(path)
        elif path.is_file():
            yield path


def _libraries(programs: list[str]) -> list[str]:
    """What the programs are linked with, by the paths at which the loader looks."""
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return sorted(set(re.findall(r"(?:=>|^)\s+(/\S+) \(0x", said, re.MULTILINE)))


def _elf(machine: int) -> bytes:
    """The beginning of a program for another machine, as far as a system looks at it."""
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    return identity + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0) + bytes(56)
