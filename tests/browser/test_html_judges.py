"""The judges of a run on the HTML page: raw and corrected rates, in a real browser, whatever a criterion says."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.engine.support.project import Project

CRITERION = "<img src=x onerror=alert(1)> it can be sent"


@pytest.fixture
def report(project: Project) -> Path:
    """The report of a run whose judge is right about all of its 80 answers but two, as labels say."""
    project.write("atp.toml", "")
    project.write(
        "agent.py", 'def run(prompt):\n    return f"answer {prompt}: " + ("good" if int(prompt) % 4 else "bad")\n'
    )
    project.write(
        "scripts/judges.py",
        """
        def judge(asked):
            answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
            met = "good" in answer and not answer.startswith(("answer 1:", "answer 2:"))
            return {"verdicts": [{"number": 1, "score": float(met), "reason": "so", "evidence": [answer]}]}
        """,
    )
    check = {"type": "llm_eval", "criteria": CRITERION}
    name = project.cases(*({"id": f"c{n}", "input": str(n), "assert": [check]} for n in range(1, 81)))
    project.test(name, "-n", "agent.py:run", "--assessor", "scripts:judges.judge")
    assert project.atp("calibrate", "sample", "-o", "sample.jsonl").code == 0
    path = project.folder / "sample.jsonl"
    lines = path.read_text("utf-8").splitlines()
    truth = ["passed" if ': good"' in line else "failed" for line in lines]
    filled = [line.replace('"label":null', f'"label":"{said}"') for line, said in zip(lines, truth, strict=True)]
    path.write_text("\n".join(filled) + "\n", "utf-8")
    measured = project.atp("calibrate", "measure", "last", "sample.jsonl")
    assert measured.code == 0, measured.err
    assert project.atp("report", "-o", "report.html").code == 0
    return project.folder / "report.html"


def test_a_judge_has_its_rates_and_a_criterion_stays_text(watched: Any, report: Path) -> None:
    page = watched.open(report)
    section = page.locator(".judges")
    expect(section.locator("caption")).to_have_text("scripts:judges.judge")
    row = section.locator("tbody tr")
    expect(row.locator("th")).to_contain_text(CRITERION)
    expect(row.locator("td").nth(0)).to_have_text("80")
    expect(row.locator("td").nth(1)).to_have_text("72.5%")
    expect(row.locator("td").nth(2)).to_contain_text("75%")
    assert page.locator(".judges img").count() == 0
