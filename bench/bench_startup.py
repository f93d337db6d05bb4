"""What `atp --help` costs: CPU time over that of a bare Python."""

import resource
import subprocess
import sys

ROUNDS = 10
MOST = 0.15
"""Seconds of CPU that `atp --help` may take on top of `python -c pass`."""


def cpu(command: list[str]) -> float:
    """The least CPU time of several runs, user and system."""
    times = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def main() -> int:
    bare = cpu([sys.executable, "-c", "pass"])
    help_ = cpu([sys.executable, "-m", "atp", "--help"])
    print(f"CPU time, least of {ROUNDS}")
    print(f"  python -c pass  {bare * 1000:6.1f} ms")
    print(f"  atp --help      {help_ * 1000:6.1f} ms")
    print(f"  difference      {(help_ - bare) * 1000:6.1f} ms  (limit {MOST * 1000:.0f})")
    return int(help_ - bare > MOST)


if __name__ == "__main__":
    sys.exit(main())
