"""ATP beside pydantic-evals, the fastest peer: start-up, CPU a trivial case, slow agents, memory.

Both run the same cases in turn, so that a slow or busy machine is slow for both; each figure is the least of several
rounds. pydantic-evals keeps results in memory and writes nothing; ATP writes a journal. `tools/peers-env.sh` installs
pydantic-evals. Each argument `NAME=PYTHON`, the interpreter of another version of ATP, adds a column.

With `--instructions`, only the instructions that a trivial case takes are counted, by valgrind: a figure that is the
same on a machine that is busy.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PEER = ROOT / ".venv/envs/peers/bin/python"
CASES, SLOW, AT_A_TIME = 5_000, 2_000, 100
ROUNDS = 5
FEW, MANY = 200, 1_200
"""The cases of the two runs whose instructions are counted: the difference has nothing of the start-up."""
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")

AGENT = """
import asyncio

async def echo(prompt):
    return f"echo: {prompt}"

async def slow(prompt):
    await asyncio.sleep(0.1)
    return f"echo: {prompt}"
"""

PYDANTIC_EVALS = """
import sys
from agent import echo, slow
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains

count, task, at_a_time = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
cases = [Case(name=f"T{number:06}", inputs=f"hello {number}") for number in range(count)]
dataset = Dataset(name="bench", cases=cases, evaluators=[Contains(value="hello")])
report = dataset.evaluate_sync(echo if task == "echo" else slow, max_concurrency=at_a_time, progress=False)
assert len(report.cases) == count
"""


class Used(NamedTuple):
    """What one process used."""

    cpu: float
    """Seconds of CPU, user and system."""
    seconds: float
    """Seconds by the clock."""
    megabytes: float
    """The most memory at a time."""


class Figures(NamedTuple):
    """A column of the table."""

    start: float
    """Seconds of CPU for one case."""
    case: float
    """Milliseconds of CPU for each further case."""
    slow: float
    """Seconds by the clock for slow agents, start-up included."""
    megabytes: float
    """Memory at `CASES` cases."""


Runs = Callable[[Path, int, str, int], list[str]]
"""From a folder, a number of cases, an agent's name and trials at a time to a command."""


def atp(python: str) -> Runs:
    """The command of an `atp` that an interpreter has."""
    return lambda _folder, count, agent, at_a_time: [
        *(
            python,
            "-m",
            "atp",
            "test",
            f"{count}.jsonl",
            "-n",
            f"agent:{agent}",
            "--parallel",
            str(at_a_time),
            "--quiet",
        ),
        *("-o", "report.jsonl"),
    ]


def pydantic_evals(folder: Path, count: int, agent: str, at_a_time: int) -> list[str]:
    """The command of the peer."""
    return [str(PEER), str(folder / "peer.py"), str(count), agent, str(at_a_time)]


def used(command: list[str], folder: Path) -> Used:
    """Run a command to its end, and see what it used."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Used(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss / 1024)


def measure(folder: Path, columns: dict[str, Runs]) -> dict[str, Figures]:
    """All columns, each round taking one run of each."""
    rounds: dict[str, list[tuple[Used, Used, Used]]] = {name: [] for name in columns}
    for _ in range(ROUNDS):
        for name, command in columns.items():
            one = used(command(folder, 1, "echo", 1), folder)
            many = used(command(folder, CASES, "echo", 10), folder)
            slow = used(command(folder, SLOW, "slow", AT_A_TIME), folder)
            rounds[name].append((one, many, slow))
    found = {}
    for name, runs in rounds.items():
        start, many_cpu = min(one.cpu for one, _, _ in runs), min(many.cpu for _, many, _ in runs)
        found[name] = Figures(
            start=start,
            case=(many_cpu - start) / (CASES - 1) * 1000,
            slow=min(slow.seconds for _, _, slow in runs),
            megabytes=min(many.megabytes for _, many, _ in runs),
        )
    return found


def instructions(folder: Path, command: Runs) -> float:
    """The instructions that a trivial case takes, in millions."""
    counts = []
    for count in (FEW, MANY):
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        line = [*VALGRIND, *command(folder, count, "echo", 10)]
        done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        found = re.findall(r"I\s+refs:\s+([\d,]+)", done.stderr)
        counts.append(max(int(one.replace(",", "")) for one in found))
    return (counts[1] - counts[0]) / (MANY - FEW) / 1e6


def print_instructions(columns: dict[str, Runs]) -> int:
    """Print what a trivial case takes in each column. Returns 1 if ATP takes more than the peer."""
    found = {}
    for name, command in columns.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))
            found[name] = instructions(Path(folder), command)
        print(f"{name:20}{found[name]:8.3f} million instructions a trivial case")
    return int(found["atp"] > found["pydantic-evals"])


def write(folder: Path) -> None:
    """Put the agent, the peer's program and the cases into a folder."""
    (folder / "agent.py").write_text(AGENT)
    (folder / "peer.py").write_text(PYDANTIC_EVALS)
    for count in (1, FEW, MANY, CASES, SLOW):
        lines = (
            json.dumps({"id": f"T{n:06}", "input": f"hello {n}", "assert": {"type": "contains", "value": "hello"}})
            for n in range(count)
        )
        (folder / f"{count}.jsonl").write_text("\n".join(lines) + "\n")


def main() -> int:
    subprocess.run([ROOT / "tools/peers-env.sh"], check=True)
    counts_only = "--instructions" in sys.argv
    others = dict(one.split("=", 1) for one in sys.argv[1:] if one != "--instructions")
    columns: dict[str, Runs] = {"atp": atp(sys.executable), "pydantic-evals": pydantic_evals}
    columns |= {name: atp(python) for name, python in others.items()}
    if counts_only:
        return print_instructions(columns)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        found = measure(folder, columns)
    ours, peer = found["atp"], found["pydantic-evals"]
    print(f"{'':34}" + "".join(f"{name:>16}" for name in found) + "   atp ÷ pydantic-evals")
    rows = {
        "one case, start-up (s of CPU)": [one.start for one in found.values()],
        "a trivial case (ms of CPU)": [one.case for one in found.values()],
        f"{SLOW:,} × 100 ms, {AT_A_TIME} at a time (s)": [one.slow for one in found.values()],
        f"memory at {CASES:,} cases (MB)": [one.megabytes for one in found.values()],
    }
    for title, figures in rows.items():
        print(f"{title:34}" + "".join(f"{one:16.3f}" for one in figures) + f"{figures[0] / figures[1]:12.2f}")
    return int(any(one > other for one, other in zip(ours, peer, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
