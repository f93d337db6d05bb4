"""`make demo`, from where everything is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_shows_a_failure_and_goes_well(tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    made_by_runs = shutil.ignore_patterns(".atp", "output-*", "*.tps.json", "*.variations.jsonl")
    shutil.copytree(ROOT / "examples", examples, ignore=made_by_runs)
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ATP_") and name not in keys}
    env = {**clean, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        [examples / "demo.sh"], env=env, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "fails on purpose" in ran.stdout
    assert "✗ [count-002]" in ran.stdout
    assert "✓ [trip]" in ran.stdout
    said = ran.stdout.rpartition("# Reports: ")[2].partition("\n# Journals:")[0]
    reports = [Path(one) for one in said.replace("\n#", "").replace(",", "").split()]
    assert len(reports) == 5
    assert all(one.is_file() and one.is_relative_to(examples) for one in reports)
    assert len(list(examples.glob(".atp/runs/*/journal.jsonl"))) == 5
    assert "Traceback" not in ran.stderr, ran.stderr  # a crash ends with 1 as well, as if something had failed
    before, _, after = ran.stdout.partition("Played back")
    flaky = [re.findall(r"Trials:  20 \(.*", text) for text in (before, after)]
    assert flaky[0][-1:] == flaky[1] != [], ran.stdout + ran.stderr
