"""`make demo`, from where everything is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_shows_a_failure_and_goes_well(tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns(".atp", "output-*"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ATP_")}
    env = {**clean, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        [examples / "demo.sh"], env=env, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "fails on purpose" in ran.stdout
    assert "✗ [count-002]" in ran.stdout
    assert (examples / ".atp/demo/files.json").is_file()
    assert (examples / ".atp/demo/expense.jsonl").is_file()
    assert len(list(examples.glob(".atp/runs/*/journal.jsonl"))) == 2
