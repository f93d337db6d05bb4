"""Agents that misbehave in a process of their own."""

# ruff: noqa: T201
import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

print("loading")
COUNT = [0]
SESSIONS: dict[str, list[str]] = {}


def pid() -> int:
    return os.getpid()


def answers(prompt: str, context: dict[str, Any]) -> dict[str, Any]:
    """Remembers the conversations that it holds, as agents in real life do."""
    said = SESSIONS.setdefault(context["session_id"], [])
    said.append(prompt)
    return {"pid": os.getpid(), "said": list(said)}


def counts() -> int:
    COUNT[0] += 1
    return COUNT[0]


def about() -> dict[str, Any]:
    names = [name for name in sys.modules if name == "atp" or name.startswith("atp.")]
    return {"python": sys.version_info[:2], "prefix": sys.prefix, "argv": sys.argv, "atp": names, "path": sys.path}


def environment(prompt: str) -> str | None:
    return os.environ.get(prompt)


def hangs(prompt: str) -> Iterator[Any]:
    yield {"event_type": "progress", "payload": {"message": str(os.getpid())}}
    while prompt == "hang":
        time.sleep(0.01)
    yield "well"


def dies(prompt: str) -> Iterator[Any]:
    yield {"event_type": "progress", "payload": {"message": str(os.getpid())}}
    if prompt == "exit":
        print("a last word", file=sys.stderr)
        os._exit(3)
    if prompt == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    yield "alive"


def dies_later(prompt: str) -> str:
    if prompt == "later":
        threading.Timer(0.05, os._exit, (7,)).start()
    return "well"


def shouts(prompt: str) -> str:
    """Writes to everything that could be taken for the protocol."""
    print('{"returned": "not so"}')
    print('{"returned": "not so"}', file=sys.stderr)
    os.write(1, b'{"returned": "by number"}\n\xff\xfe\n')
    subprocess.run(["echo", "from a child"], check=True)
    sys.stdout.flush()
    return f"{prompt}: {sys.stdin.read()!r}"


def closes_its_streams(prompt: str) -> str:
    sys.stdout.close()
    sys.stderr.close()
    return "still here"


def meddles(prompt: str) -> str:
    """Writes to, or closes, the pipes that are none of its business."""
    pipes = [int(one) for one in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{one}")]
    for one in pipes:
        if one > 2 and "pipe:" in os.readlink(f"/proc/self/fd/{one}"):
            if prompt == "close":
                os.close(one)
            else:
                try:
                    os.write(one, b"junk\n")
                except OSError:
                    continue
    time.sleep(30)
    return "?"


def leaves_a_child() -> int:
    script = "import time; time.sleep(600)"
    return subprocess.Popen([sys.executable, "-S", "-c", script], start_new_session=True).pid


def runs_a_loop(prompt: str) -> str:
    async def later() -> str:
        await asyncio.sleep(0)
        return f"looped {prompt}"

    return asyncio.run(later())


LOOP_CLIENT: dict[str, Any] = {}


async def keeps_a_client() -> bool:
    """Clients belong to the loop that they were made in: there must be one for all turns."""
    loop = asyncio.get_running_loop()
    return LOOP_CLIENT.setdefault("loop", loop) is loop


async def leaves_a_task_that_exits(prompt: str) -> str:
    async def leave() -> None:
        sys.exit(5)

    LOOP_CLIENT["task"] = asyncio.ensure_future(leave())
    await asyncio.sleep(0.01)
    return prompt


def large(prompt: str) -> str:
    return "ä🙂" * 1_700_000 + prompt[-1:]


def too_large() -> str:
    return "x" * 65 * 1024 * 1024


def tells_the_time() -> Iterator[Any]:
    for _ in range(5):
        yield {"event_type": "progress", "payload": {"message": str(time.monotonic() * 1000)}}
        time.sleep(0.001)


def tells_much(prompt: str) -> Iterator[Any]:
    for number in range(int(prompt)):
        yield {"event_type": "progress", "payload": {"current_step": number, "message": "x" * 1000}}
    yield "told"


def tells_much_at_once(prompt: str) -> Iterator[Any]:
    for pipe in range(3, 20):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, 1031, 2**20)  # F_SETPIPE_SZ
    for number in range(int(prompt)):
        yield {"event_type": "progress", "payload": {"current_step": number, "message": "x" * 10_000}}


def tells_and_hangs(workspace: Path) -> Iterator[Any]:
    for message in ("one", "two"):
        yield {"event_type": "progress", "payload": {"message": message}}
    (workspace / "told").touch()
    time.sleep(3600)
