"""What the console costs: CPU a case in plain mode, beside a bare `write` of the same text."""

import io
import sys
import time

from atp.report.console.console import Console, ConsoleOptions
from atp.report.console.page import PlainPage
from atp.suite.result import CaseResult, Transcript, TrialResult, Turn, Verdict

CASES = 20_000
MOST = 30
"""Microseconds of CPU a case."""


def case() -> CaseResult:
    verdict = Verdict(type="contains", outcome="passed", message='the output contains "hello"')
    transcript = Transcript(
        messages=[{"role": "user", "content": "hello"}], turns=[Turn(turn=1, input="hello", output="hello")]
    )
    trial = TrialResult(key="k", agent="a", case="T001", verdicts=[verdict], transcript=transcript, duration_ms=1200)
    return CaseResult(agent="a", case="T001", name="Some name", trials=[trial])


def printing() -> tuple[float, str]:
    """Microseconds a case, and what was printed for one."""
    page, one = io.StringIO(), case()
    console = Console(PlainPage(page), ConsoleOptions())
    began = time.process_time()
    for _ in range(CASES):
        console.case(one)
    return (time.process_time() - began) / CASES * 1e6, page.getvalue()


def bare(text: str) -> float:
    page = io.StringIO()
    began = time.process_time()
    for _ in range(CASES):
        page.write(text)
    return (time.process_time() - began) / CASES * 1e6


def main() -> int:
    cost = min(printing()[0] for _ in range(3))
    print(f"the console         {cost:6.1f} µs of CPU a case  (limit {MOST}; a bare write {bare('x' * 80):.2f})")
    return int(cost > MOST)


if __name__ == "__main__":
    sys.exit(main())
