"""An agent that is a command. Its first argument says how it behaves."""

# ruff: noqa: T201
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

FOREVER = 3600
"""Seconds; longer than any test waits."""


def say(request: dict[str, Any], **fields: Any) -> None:
    print(json.dumps({"version": "1.0", "task_id": request["task_id"], "status": "completed", **fields}))


def tell(kind: str, **payload: Any) -> None:
    print(json.dumps({"event_type": kind, "payload": payload}), file=sys.stderr, flush=True)


def read() -> dict[str, Any]:
    request: dict[str, Any] = json.load(sys.stdin)
    return request


def echo() -> None:
    request = read()
    say(request, output=request["task"]["description"])


def show() -> None:
    request = read()
    say(request, output={"request": request, "env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv[2:]})


def events() -> None:
    request = read()
    print("starting up", file=sys.stderr)
    tell("tool_call", tool="search", args={"q": 1}, output="found", status="success")
    print('{"level": "info"}', file=sys.stderr)
    tell("reasoning", thought="hm", step=2)
    sys.stderr.write(json.dumps({"event_type": "progress", "payload": {"current_step": 3}}))  # no line end
    say(request, output="done")


def many_events() -> None:
    read()
    for step in range(1000):
        tell("progress", current_step=step)
    time.sleep(FOREVER)


def bad_event() -> None:
    read()
    tell("tool_call", tool="")
    time.sleep(FOREVER)


def broken_event() -> None:
    request = read()
    print('{"event_type": "tool_call", "payl', file=sys.stderr)
    say(request)


def big() -> None:
    """Both pipes at once, far beyond their buffers."""
    request = read()
    line = "x" * 1023 + "\n"
    if os.fork() == 0:
        for _ in range(50 * 1024):
            sys.stderr.write(line)
        sys.stderr.flush()
        os._exit(0)
    say(request, output="y" * (50 * 1024 * 1024))
    sys.stdout.flush()
    os.wait()


def one_long_line() -> None:
    request = read()
    sys.stderr.write("x" * (20 * 1024 * 1024))
    say(request, output="done")


def too_big() -> None:
    read()
    while True:
        sys.stdout.write("x" * 1024 * 1024)


def deaf() -> None:
    """Never reads its stdin."""
    say({"task_id": "trial-1"}, output="I don't listen")


def deaf_and_stuck() -> None:
    time.sleep(FOREVER)


def closes_stdin() -> None:
    os.close(0)
    say({"task_id": "trial-1"}, output="closed")


def closes_stdout() -> None:
    read()
    os.close(1)
    os._exit(0)


def closes_all_and_stays() -> None:
    read()
    os.close(1)
    os.close(2)
    time.sleep(FOREVER)


def exits() -> None:
    print("first line", file=sys.stderr)
    print("what went wrong", file=sys.stderr)
    sys.exit(3)


def exits_with_response() -> None:
    request = read()
    say(request, status="failed", error="no such city", metrics={"cost_usd": 0.25})
    sys.exit(1)


def exits_well_but_failed() -> None:
    request = read()
    say(request, status=sys.argv[2], error=sys.argv[3] if len(sys.argv) > 3 else None, metrics={"total_tokens": 7})


def kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def junk() -> None:
    print("Welcome to my agent!")


def sleeps() -> None:
    read()
    tell("progress", message="sleeping")
    time.sleep(FOREVER)


def ignores_term() -> None:
    read()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell("progress", message="sleeping")
    while True:
        time.sleep(1)


def _family(detached: bool) -> None:
    """A child and a grandchild, in the group or out of it, that hold the pipes."""
    started, starting = os.pipe()
    code = f"import time; time.sleep({FOREVER})"
    outer = (
        "import os, subprocess, sys, time; "
        f"subprocess.Popen([sys.executable, '-S', '-c', {code!r}]); os.close({starting}); time.sleep({FOREVER})"
    )
    subprocess.Popen([sys.executable, "-S", "-c", outer], start_new_session=detached, pass_fds=[starting])
    os.close(starting)
    os.read(started, 1)  # the end of the pipe: the grandchild is there


def forks() -> None:
    request = read()
    _family(False)
    say(request, output="done")


def detaches() -> None:
    request = read()
    _family(True)
    say(request, output="done")


def detaches_and_sleeps() -> None:
    read()
    _family(True)
    tell("progress", message="sleeping")
    time.sleep(FOREVER)


def detaches_quietly() -> None:
    """Leaves a daemon that holds no pipe."""
    request = read()
    null = subprocess.DEVNULL
    subprocess.Popen(["sleep", str(FOREVER)], start_new_session=True, stdin=null, stdout=null, stderr=null)
    say(request, output="done")


def artifact() -> None:
    request = read()
    os.symlink(sys.argv[2], "link")
    say(request, artifacts=[{"type": "file", "path": "link/planted.txt", "content": "x"}])


def counts_turns() -> None:
    """Keeps what it knows in its workspace."""
    request = read()
    with open("turns.txt", "a") as file:
        print(request["metadata"]["turn"], request["metadata"]["session_id"], file=file)
    with open("turns.txt") as file:
        say(request, output=[file.read().split("\n")[:-1], len(request["task"]["input_data"]["messages"])])


def text() -> None:
    prompt = sys.stdin.read()
    print("thinking", file=sys.stderr)
    print('{"event_type": "tool_call", "payload": {}}', file=sys.stderr)
    print(f"You said: {prompt!r} in {os.environ['ATP_SESSION_ID']}\n")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
