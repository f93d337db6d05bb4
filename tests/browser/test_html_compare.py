"""The page of a comparison in a browser: answers side by side, with what differs marked, and nothing of them runs."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect
from tests.browser.conftest import Watched
from tests.browser.test_html_hostile import NASTY
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
