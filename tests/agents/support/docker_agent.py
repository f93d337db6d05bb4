"""An agent in a container: what `command.py` can do, and what only makes sense in there."""

# ruff: noqa: T201
import os
import signal
import socket
import sys
import time
from pathlib import Path

from tests.agents.support import command
from tests.agents.support.command import read, say


def context() -> None:
    """What the agent is and sees."""
    request = read()
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    say(
        request,
        output={
            "request": request,
            "argv": sys.argv[2:],
            "cwd": os.getcwd(),
            "env": dict(os.environ),
            "uid": os.getuid(),
            "gid": os.getgid(),
            "capabilities": {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
            "no_new_privileges": status["NoNewPrivs"],
            "interfaces": [name for _, name in socket.if_nameindex()],
        },
    )


def tries() -> None:
    """Each argument is an address to connect to, or a path to write to; what came of it."""
    request = read()
    found = {}
    for one in sys.argv[2:]:
        try:
            if one.startswith("/"):
                Path(one).write_text("written")
            else:
                host, port = one.split(":")
                socket.create_connection((host, int(port)), timeout=5).close()
            found[one] = "well"
        except OSError as error:
            found[one] = type(error).__name__ if error.errno is None else os.strerror(error.errno)
    say(request, output=found)


def reads() -> None:
    request = read()
    say(request, output=[Path(path).read_text() for path in sys.argv[2:]])


def hogs() -> None:
    read()
    print("hungry", file=sys.stderr, flush=True)
    _hog()


def _hog() -> None:
    """Needs more and more memory."""
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1024)) * 4096)


def lets_a_child_hog() -> None:
    request = read()
    if os.fork() == 0:
        _hog()
    os.wait()
    say(request, output="survived")


def forks_many() -> None:
    request = read()
    made = 0
    try:
        for _ in range(200):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
    except OSError as error:
        say(request, output=[made, os.strerror(error.errno or 0)])
        return
    say(request, output=[made, ""])


def large() -> None:
    request = read()
    say(request, output="ü" * 5_000_000)


def exits_with() -> None:
    read()
    print("this is why", file=sys.stderr)
    sys.exit(int(sys.argv[2]))


def says_that_it_sleeps() -> None:
    Path("/shared/asleep").touch()
    time.sleep(600)


def notes_and_holds() -> None:
    """Notes its prompt, and waits with the one that `hold` names until there is a file `go`."""
    shared, prompt = Path("/shared"), sys.stdin.readline().strip()
    with (shared / "asked").open("a") as file:
        print(prompt, file=file)
    while (shared / "hold").read_text() == prompt and not (shared / "go").exists():
        time.sleep(0.02)
    print(prompt)


def serves() -> None:
    """An HTTP agent on a port, ready after a while."""
    from tests.agents.support.docker_server import serve  # only here: the imports of a server take their time

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    serve(int(sys.argv[2]), float(sys.argv[3] if len(sys.argv) > 3 else 0))


def fails_to_serve() -> None:
    print("no such model", file=sys.stderr)
    sys.exit(4)


if __name__ == "__main__":
    (globals().get(sys.argv[1]) or getattr(command, sys.argv[1]))()
