"""The page of a comparison in a browser: answers side by side, with what differs marked, and nothing of them runs."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect
from tests.browser.conftest import Watched
from tests.browser.test_html_hostile import NASTY
from tests.engine.support.project import Project
from tests.history.test_compare import case, compare, run

from atp.base.secrets import Secrets, hider
from atp.history.figures import Answer, RunFigures
from atp.report.compare.html import comparison_page


def _written(path: Path, a: RunFigures, b: RunFigures) -> str:
    path.write_bytes(comparison_page(compare(a, b, answers=True), hider(Secrets())))
    return path.as_uri()


def test_answers_stand_side_by_side(watched: Watched, tmp_path: Path, shoot: Callable[..., None]) -> None:
    before = {"passed": Answer(outputs=["The theatre opens at 19 in the evening."])}
    after = {"failed": Answer(outputs=["The theatre opens at 7 in the evening."], error='expected "19"')}
    same = [case(f"same-{number}") for number in range(3)]
    first, second = run(case("theatre", answers=before), *same), run(case("theatre", 0, answers=after), *same)
    page = watched.page
    page.goto(_written(tmp_path / "c.html", first, second))
    expect(page.locator("h1")).to_have_text("Worse")
    expect(page.locator("del")).to_have_text("19")
    expect(page.locator("ins")).to_have_text("7")
    panes = page.locator(".pane")
    left, right = panes.nth(0).bounding_box(), panes.nth(1).bounding_box()
    assert left is not None
    assert right is not None
    assert (left["y"], left["x"] < right["x"]) == (right["y"], True)
    assert page.locator("del").evaluate("(one) => getComputedStyle(one).backgroundColor") != "rgba(0, 0, 0, 0)"
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        shoot(page, f"comparison-{scheme}")
    assert grounds[0] != grounds[1]


def test_hostile_names_and_answers_are_shown_and_nothing_runs(watched: Watched, tmp_path: Path) -> None:
    cases = [
        case(text, 4, name=text, agent=text, answers={"passed": Answer(outputs=[text, {text: text}], error=text)})
        for text in NASTY.values()
    ]
    page = watched.page
    page.goto(_written(tmp_path / "c.html", run(*cases), run(*cases, stopped=NASTY["closing"])))
    page.locator("summary").last.click()
    expect(page.locator(".pair")).to_have_count(len(NASTY))
    assert page.evaluate("window.hacked") is None
    assert page.locator("script, img, svg, a").count() == 0
    assert NASTY["script"] in (page.locator("body").text_content() or "")


def test_the_report_of_a_run_has_its_comparison_and_all_of_its_runs(
    watched: Watched, project: Project, shoot: Callable[..., None]
) -> None:
    agent = "def answer(prompt, context):\n    return 'no' if context['run'] % 10 == 0 else 'yes'\n"
    project.write("agent.py", agent)
    project.write("atp.toml", "")
    project.cases(*({"id": f"c{n}", "input": "hello", "expected": "yes", "pass_rate": 0.1} for n in range(5)))
    flags = ("cases.jsonl", "-n", "agent.py:answer", "--runs", "31", "-q")
    assert project.test(*flags, "-o", "first.json").code == 0
    project.atp("baseline", "save", "main")
    project.write("agent.py", agent.replace("% 10 == 0", "% 2 == 0"))
    assert project.test(*flags, "--baseline", "main", "-o", "passed.html").code == 0
    assert project.test(*flags, "--baseline", "main", "--fail-on-regression", "-o", "report.html").code == 1
    expect(watched.open(project.folder / "passed.html").locator("h1")).to_have_text("All 5 cases passed")
    page = watched.open(project.folder / "report.html")
    expect(page.locator("h1")).to_have_text("Worse than the baseline")
    part = page.locator(".baseline")
    expect(part.locator(".first")).to_contain_text("5 cases got worse: ")
    expect(part.locator(".is-regressed tr")).to_have_count(6)
    expect(part.locator(".is-regressed tr").nth(1)).to_have_text("c028/31 → 16/31-38.7 pointsp = 0.0016")
    expect(page.locator(".rates tbody tr")).to_contain_text("between")
    cell = page.locator("tr.row .runs").first
    expect(cell.locator(".square")).to_have_count(12)
    expect(cell.locator(".sum")).to_have_text("… 16 of 31 passed")
    assert cell.evaluate("(one) => one.scrollHeight <= one.clientHeight")  # nothing is cut off
    shoot(page, "baseline", full_page=True)
    page.locator("tr.row .open").first.click()
    expect(page.locator(".trials .square")).to_have_count(31)
