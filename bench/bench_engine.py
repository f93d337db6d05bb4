"""What the engine costs: CPU a trivial case, time over a bare asyncio loop, memory.

Everything is measured beside something bare in the same run, so that a slow or busy machine is slow for both.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_MS_A_CASE = 0.2
MOST_OVER_BARE = 1.04
MOST_MS_A_REQUEST = 0.6
MOST_MB = 80
MOST_GROWTH = 1.3
CASES, MANY = 5_000, 100_000
AGENTS, AT_A_TIME, SECONDS = 2_000, 100, 0.1

AGENT = """
import asyncio

async def echo(prompt):
    return f"echo: {prompt}"

async def slow(prompt):
    await asyncio.sleep(0.1)
    return f"echo: {prompt}"
"""

SERVER = """
import sys
from aiohttp import web

async def answer(request):
    asked = await request.json()
    return web.json_response(
        {"version": "1.0", "task_id": asked["task_id"], "status": "completed", "output": asked["task"]["description"]}
    )

app = web.Application()
app.router.add_post("/", answer)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
"""


def write_cases(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            check = {"type": "contains", "value": "hello"}
            file.write(json.dumps({"id": f"T{number:06}", "input": f"hello {number}", "assert": check}) + "\n")


def run(folder: Path, file: str, *flags: str) -> tuple[float, float, float]:
    """CPU seconds, seconds by the clock inside the run, and megabytes of an `atp test`."""
    command = [sys.executable, "-m", "atp", "test", file, "--quiet", "-o", "report.jsonl", *flags]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    *_, summary = (folder / "report.jsonl").read_text().splitlines()
    return used.ru_utime + used.ru_stime, json.loads(summary)["duration_ms"] / 1000, used.ru_maxrss / 1024


def a_case(folder: Path, *flags: str) -> float:
    """Milliseconds of CPU a case, start-up taken off.

    Other work on the machine only ever adds to a figure, so each of the two is the least of nine. The least of their
    differences would be too low: it is found where the start-up happened to be slow.
    """
    one, all_of_them = [], []
    for _ in range(9):
        one.append(run(folder, "one.jsonl", *flags)[0])
        all_of_them.append(run(folder, "cases.jsonl", *flags)[0])
    return (min(all_of_them) - min(one)) / (CASES - 1) * 1000


async def _bare(path: Path) -> None:
    numbers = iter(range(AGENTS))

    async def worker() -> None:
        for number in numbers:
            await asyncio.sleep(SECONDS)
            file.write(json.dumps({"id": number, "output": f"echo: {number}"}) + "\n")

    with path.open("w") as file:
        await asyncio.gather(*(worker() for _ in range(AT_A_TIME)))


def bare_loop(folder: Path) -> float:
    """Seconds that the same agents take in nothing but an asyncio loop."""
    began = time.perf_counter()
    asyncio.run(_bare(folder / "bare.jsonl"))
    return time.perf_counter() - began


def bare_case(folder: Path) -> float:
    """Milliseconds of CPU a case in nothing but a loop that writes a line of JSON."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    with (folder / "bare.jsonl").open("w") as file:
        for number in range(CASES):
            file.write(json.dumps({"id": number, "output": f"echo: {number}"}) + "\n")
            file.flush()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / CASES * 1000


def http_case(folder: Path) -> float:
    """Milliseconds of CPU a case against a server in another process."""
    port = 18_000 + os.getpid() % 10_000
    server = subprocess.Popen([sys.executable, "server.py", str(port)], cwd=folder)
    try:
        time.sleep(1.5)
        return a_case(folder, "-n", f"http://127.0.0.1:{port}/", "--parallel", "10")
    finally:
        server.terminate()
        server.wait()


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(AGENT)
        (folder / "server.py").write_text(SERVER)
        for file, count in (("one", 1), ("cases", CASES), ("many", MANY), ("slow", AGENTS)):
            write_cases(folder / f"{file}.jsonl", count)
        bare, case = bare_case(folder), a_case(folder, "-n", "agent:echo")
        ideal, took = [], []
        for _ in range(4):
            ideal.append(bare_loop(folder))
            took.append(run(folder, "slow.jsonl", "-n", "agent:slow", "--parallel", str(AT_A_TIME))[1])
        ratio = min(took) / min(ideal)
        request = http_case(folder)
        _, _, few_mb = run(folder, "cases.jsonl", "-n", "agent:echo")
        _, _, many_mb = run(folder, "many.jsonl", "-n", "agent:echo")
    slow = f"{AGENTS:,} agents of {SECONDS * 1000:.0f} ms"
    print(f"a trivial case      {case:6.3f} ms of CPU  (limit {MOST_MS_A_CASE}; a bare loop {bare:.3f})")
    print(f"an HTTP case        {request:6.3f} ms of CPU  (limit {MOST_MS_A_REQUEST})")
    print(f"{slow}  {ratio:6.3f} times a bare loop  (limit {MOST_OVER_BARE})")
    print(f"memory at {CASES:,}     {few_mb:6.1f} MB  (limit {MOST_MB})")
    print(f"memory at {MANY:,}   {many_mb:6.1f} MB  ({many_mb / few_mb:.2f} times; limit {MOST_GROWTH})")
    too_slow = case > MOST_MS_A_CASE or ratio > MOST_OVER_BARE or request > MOST_MS_A_REQUEST
    return int(too_slow or few_mb > MOST_MB or many_mb > few_mb * MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
