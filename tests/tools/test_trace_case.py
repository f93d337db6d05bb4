"""`tools/trace_case.py` lists what one case passes through, in order."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE = """\
test_suite: one
agents:
  - { name: echo, type: custom, config: { entry: "agent.py:answer" } }
tests:
  - id: one
    name: One case
    input: say hello
    assertions:
      - { type: contains, value: hello }
"""


def test_the_steps_of_a_case_come_in_order(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "agent.py").write_text("async def answer(prompt):\n    return prompt\n")
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "trace_case.py", "test", "suite.yaml"],
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    traced = [line.split() for line in ran.stdout.splitlines() if " -- " in line or ":" in line]
    packages = [words[0].partition("/")[0] for words in traced if "/" in words[0]]
    first = {package: packages.index(package) for package in ("cli", "loader", "agents", "checks", "journal", "report")}
    assert first["cli"] < first["loader"] < first["journal"]
    assert "atp ended with exit code 0" in ran.stdout
    assert "functions in" in ran.stdout
