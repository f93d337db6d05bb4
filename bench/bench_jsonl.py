"""100,000 JSONL cases, streamed: the rate beside `json.loads` alone, and memory against that of 1,000 cases."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from atp.base.diagnostics import Diagnostics
from atp.loader.jsonl.records import stream_cases
from atp.loader.source import LoadContext

MANY, FEW = 100_000, 1_000
MOST = 1.4
"""How much more memory the MANY may take than the FEW: their ids are kept, to find doubles, and nothing else."""


def record(number: int) -> str:
    checks = [
        {"type": "json_path", "path": "$.need_search", "value": True},
        {"type": "not_contains", "value": "error"},
    ]
    return json.dumps({"id": f"T{number:06}", "input": f"What is the weather in place {number}?", "assert": checks})


def write(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            file.write(record(number) + "\n")


def parse(path: Path) -> float:
    """Seconds for `json.loads` of every line."""
    start = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return time.perf_counter() - start


def stream(path: Path) -> tuple[int, float]:
    """How many cases there are, and the seconds to stream them."""
    notes = Diagnostics(str(path))
    start = time.perf_counter()
    with path.open("rb") as file:
        count = sum(1 for _ in stream_cases(file, LoadContext(env={}), notes))
    assert not notes
    return count, time.perf_counter() - start


def peak(path: Path) -> int:
    """The most bytes that a process of its own holds while it streams a file."""
    code = "import bench_jsonl, pathlib, resource, sys; bench_jsonl.stream(pathlib.Path(sys.argv[1]));"
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    return int(done.stdout) * 1024


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder, "few.jsonl"), Path(folder, "many.jsonl")
        write(few, FEW)
        write(many, MANY)
        stream(few)  # builds what is built once
        plain = min(parse(many) for _ in range(3))
        count, seconds = min((stream(many) for _ in range(3)), key=lambda one: one[1])
        assert count == MANY
        little, much = peak(few), peak(many)
    print(f"{MANY:,} JSONL cases, streamed")
    print(f"  json.loads alone  {MANY / plain:10,.0f} cases/s")
    print(f"  stream_cases      {MANY / seconds:10,.0f} cases/s  ({seconds / plain:.1f} times as long)")
    print(f"  peak memory       {much / 1e6:10.1f} MB, {little / 1e6:.1f} MB for {FEW:,} cases  (limit {MOST} times)")
    return int(much > little * MOST)


if __name__ == "__main__":
    sys.exit(main())
