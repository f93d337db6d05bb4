"""No secret is in what is made of a run afterwards: baselines, comparisons, rechecks, golden files, gates, quarantine.

The secrets enter and are told as in `test_canaries`, and the same search looks for them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_canaries import ENTRIES, NOT_IN_LINES, SAMPLE_FORMS, SECRETS, Outputs, planted
from tests.engine.support.project import clean_environment
from tests.starting import run_atp

MATCHES = {"calls": "tools", "is cut": "json", "prints": "normalized"}
REPORTS = ("r.json", "r.md", "r.html", "r.xml")
COMPARISONS = ("c.json", "c.md", "c.html")
SAMPLES = {("the environment", "plain"), ("a setting", "quoted")}


def with_golden_files_and_gates(suite: dict[str, Any], secret: str) -> None:
    """Every case has a snapshot, one of them is tagged with the secret, and a gate is about that tag."""
    for one in suite["tests"]:
        match = MATCHES.get(one["name"].partition(":")[0], "text")
        one["assertions"].append({"type": "snapshot", "match": match, "name": secret})
    suite["tests"][0] |= {"id": secret, "tags": [secret.strip()]}
    suite["gates"] = [{"at_least": 0.5, "tag": secret.strip()}, {"metric": "tokens", "at_most": 1}]


def quarantine(secret: str) -> list[dict[str, str]]:
    """Entries that tell the secret: of a case, and of one that is not there."""
    told = {"owner": secret, "reason": f"because of {secret}", "expires": "9999-12-31"}
    return [{"case": "own-1", **told}, {"case": f"no {secret}", "file": "suite.yaml", **told}]


def places() -> Iterator[Any]:
    for entry in ENTRIES:
        for name in SECRETS:
            if name != "lines" or entry not in NOT_IN_LINES:
                marks = [] if (entry, name) in SAMPLES else [pytest.mark.fuzz]
                yield pytest.param(entry, name, id=f"{name} in {entry}", marks=marks)


def outputs_to(files: tuple[str, ...], before: str) -> list[str]:
    return [word for one in files for word in ("-o", f"out/{before}{one}")]


@pytest.mark.parametrize(("entry", "name"), list(places()))
def test_no_secret_is_in_what_is_made_of_a_run(
    entry: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, outputs = SECRETS[name], Outputs()
    monkeypatch.delenv("CI", raising=False)  # golden files are written
    with planted(entry, name, SAMPLE_FORMS, tmp_path, monkeypatch, with_golden_files_and_gates) as project:
        (project.folder / "quarantine.yaml").write_text(json.dumps(quarantine(secret)))
        env = {**os.environ, **clean_environment(), **project.env}
        (project.folder / "atp.toml").write_text('role_connector = "openai.any"\n')

        def atp(*arguments: str, code: int) -> None:
            ran = run_atp(*arguments, env=env)
            assert ran.returncode == code, (arguments, ran.stdout, ran.stderr)
            outputs.texts[f"{len(outputs.texts)}: {arguments[:2]}"] = ran.stdout + ran.stderr

        test = ("test", "suite.yaml", "-v", "--runs", "2")
        atp(*test, "--update-snapshots", *outputs_to(REPORTS, "1"), "--gate", "pass_rate >= 0.5", code=1)
        for kept in ("plain", "answers"):
            atp("baseline", "save", kept, *(["--with-answers"] if kept == "answers" else []), code=0)
            atp("baseline", "show", kept, code=0)
            atp("baseline", "show", kept, "--json", code=0)
        pytest_ = [sys.executable, "-m", "pytest", "--atp", "-v", "-p", "no:cacheprovider", "suite.yaml", "-k", "own"]
        ran = subprocess.run(pytest_, env=env, capture_output=True, text=True, check=False)
        assert ran.returncode == 1, ran.stdout + ran.stderr
        outputs.texts["pytest"] = ran.stdout + ran.stderr
        (project.folder / "agent.py").write_text("def answer(prompt):\n    return 'changed'\n")
        atp(*test, "--baseline", "answers", "--fail-on-regression", *outputs_to(REPORTS, "2"), code=1)
        atp("compare", "answers", "last", "-v", *outputs_to(COMPARISONS, ""), code=0)
        atp("compare", "last~1", "plain", "--json", code=0)
        atp("recheck", "last~1", "-v", "--runs", "2", *outputs_to(REPORTS, "3"), code=1)
        for last in (("baseline", "save", "again"), ("baseline", "list"), ("report", "-v"), ("runs",)):
            atp(*last, code=0)
        outputs.texts["judge"] = json.dumps([heard.body for heard in project.asked])
    for part in ("out", ".atp", "baselines", "__snapshots__"):
        outputs.add_files(project.folder / part)
    golden = [text for place, text in outputs.texts.items() if place.startswith("__snapshots__/")]
    assert any("***" in text for text in golden)
    assert "***" in outputs.texts["baselines/answers.json.gz"]
    assert outputs.leaks(secret)[:5] == []
