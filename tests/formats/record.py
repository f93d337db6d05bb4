"""Records the journal, the JSON report and a baseline of `project/` in the formats that this version writes.

    .venv/bin/python tests/formats/record.py

Run this once when a format gets a new number, and commit the new folder. The folders of earlier numbers never change.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import atp
from atp.history import baselines
from atp.report.records.report import FORMAT

SOURCE = Path(atp.__file__).parent.parent
HERE = Path(__file__).parent
PROJECT = HERE / "project"
ROOT = "/project"
"""What stands for the folder of the recorded run."""
TEST = ("test", "cases.jsonl", "ocean.test.md", "-n", "agent.py:answer")
"""The command that was recorded."""


BASELINES = HERE / "baselines"
"""A baseline of each format, `<format>.json.gz`. Their numbers are not those of journals and reports."""


def record(command: str, folder: Path, baseline: Path) -> None:
    """Run the project with `command`, and keep its journal and its report in `folder`, and a baseline of the run."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve() / "project"
        shutil.copytree(PROJECT, root)
        subprocess.run([command, *TEST, "-o", "report.json", "--quiet"], cwd=root, check=False)
        folder.mkdir(exist_ok=True)
        (journal,) = root.glob(".atp/runs/*/journal.jsonl")
        for file in (journal, root / "report.json"):
            text = file.read_text(encoding="utf-8").replace(str(root), ROOT).replace(str(SOURCE), "/site-packages")
            (folder / file.name).write_text(text, encoding="utf-8")
        subprocess.run([command, "baseline", "save", "recorded", "--with-answers"], cwd=root, check=True)
        baseline.parent.mkdir(exist_ok=True)
        shutil.copy(root / "baselines" / "recorded.json.gz", baseline)


if __name__ == "__main__":
    record(str(Path(sys.executable).with_name("atp")), HERE / str(FORMAT), BASELINES / f"{baselines.FORMAT}.json.gz")
