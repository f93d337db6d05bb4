"""`atp view` as a person uses it: in a real browser, over runs that really run."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect
from tests.engine.support.project import Project
from tests.view.conftest import AGENT, View
from tests.waiting import WAIT_LIMIT, until


class Visitor:
    """A browser with pages of one view, and everything that must not happen in them."""

    def __init__(self, context: BrowserContext, view: View) -> None:
        self.trouble: list[str] = []
        self.context = context
        self.view = view
        self._own = f"http://127.0.0.1:{view.port}/"
        context.on("request", self._request)
        context.on("console", self._console)
        context.on("weberror", lambda error: self.trouble.append(str(error.error)))

    def open(self, hash_: str = "") -> Page:
        """A page at the view's address, when it is drawn."""
        page = self.context.new_page()
        page.goto(f"{self.view.address}{hash_}")
        page.locator("html[data-ready]").wait_for(state="attached")
        return page

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._own, "data:")):
            self.trouble.append(f"request {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(message.text)


@pytest.fixture
def visit(browser: Browser, project: Project) -> Iterator[Callable[..., Visitor]]:
    """Starts `atp view` in the project and a browser for it."""
    made: list[Visitor] = []

    def start(*arguments: str, **settings: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **settings})
        context.set_default_timeout(WAIT_LIMIT * 1000)
        made.append(Visitor(context, View(project, *arguments)))
        return made[-1]

    yield start
    for one in made:
        one.context.close()
        assert one.trouble == []


@pytest.fixture
def suite(project: Project) -> str:
    """A suite whose cases end one by one: each waits for a file of its own."""
    project.write("agent.py", AGENT)
    check = [{"type": "contains", "value": "You said"}]
    tests = [{"id": f"case-{n}", "task": {"description": f"wait-{n}"}, "assertions": check} for n in range(1, 4)]
    tests[1]["assertions"] = [{"type": "contains", "value": "<b>never</b>"}]
    return project.suite([{"name": "echo", "type": "custom", "config": {"entry": "agent.py:answer"}}], tests)


def let(project: Project, *numbers: int) -> None:
    """Let these cases end."""
    for number in numbers:
        project.write(f"wait-{number}", "")


def test_rows_grow_while_a_run_runs(
    project: Project, suite: str, visit: Callable[..., Visitor], shoot: Callable[..., None]
) -> None:
    page = visit().open()
    expect(page.locator("h1")).to_have_text("Runs")
    page.evaluate("window.stays = true")
    running = project.start("test", suite, "--parallel", "2")
    page.locator("tr.is-running a.open").click()
    expect(page.locator("h1")).to_have_text("Running: 0 of 3 cases done")
    expect(page.locator(".now li").first).to_contain_text("case-1")
    let(project, 1)
    expect(page.locator("tr.row")).to_have_count(1)
    expect(page.locator("h1")).to_have_text("Running: 1 of 3 cases done")
    let(project, 2)
    expect(page.locator("tr.row")).to_have_count(2)
    expect(page.locator(".why > li")).to_contain_text("<b>never</b>")
    assert "could not be completed" not in page.locator("main").inner_text()
    shoot(page, "view-live")
    page.locator("tr.row a.open").first.focus()
    let(project, 3)
    expect(page.locator("h1")).to_have_text("1 of 3 cases failed")
    expect(page.locator("tr.row")).to_have_count(3)
    expect(page.locator("#progress")).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('tr.row') !== null"), "the focus was lost"
    assert page.evaluate("window.stays"), "the page was loaded again"
    assert project.finish(running).code == 1


def test_a_killed_run_is_seen_as_stopped(
    project: Project, suite: str, visit: Callable[..., Visitor], shoot: Callable[..., None]
) -> None:
    visitor = visit()
    listed, page = visitor.open(), visitor.open()
    let(project, 1)
    running = project.start("test", suite)
    page.locator("tr.is-running a.open").click()
    expect(page.locator("h1")).to_have_text("Running: 1 of 3 cases done")
    running.kill()
    expect(page.locator(".stopped")).to_contain_text("it ended without a summary")
    expect(page.locator("h1")).to_have_text("2 of 3 cases could not be completed")
    expect(page.locator("#progress")).to_be_hidden()
    expect(listed.locator("tr.row .c-state")).to_contain_text("stopped")
    shoot(page, "view-killed")


def test_the_token_leaves_the_address(project: Project, suite: str, visit: Callable[..., Visitor]) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    visitor = visit("last")
    page = visitor.open()
    expect(page.locator("h1")).to_have_text("1 of 3 cases failed")
    run = project.runs()[0].name
    assert page.url == f"http://127.0.0.1:{visitor.view.port}/#run={run}"
    assert page.evaluate("history.length") <= 2
    assert visitor.view.token not in page.content()
    # A page that is loaded again, or in another tab, has no token in its address and gets it from where it was kept.
    page.reload()
    expect(page.locator("h1")).to_have_text("1 of 3 cases failed")
    other = visitor.context.new_page()
    other.goto(page.url)
    expect(other.locator("h1")).to_have_text("1 of 3 cases failed")
    assert visitor.view.token not in other.url
    page.close()
    other.close()
    alone = visitor.context.new_page()
    alone.goto(f"http://127.0.0.1:{visitor.view.port}/")
    expect(alone.locator("p")).to_contain_text("needs the address that atp view printed")
    # The browser notes each of the three answers 403 to pages without a token; nothing else.
    refused = "Failed to load resource: the server responded with a status of 403 (Forbidden)"
    visitor.trouble[:] = [one for one in visitor.trouble if one != refused]


def test_two_runs_are_compared(
    project: Project, suite: str, visit: Callable[..., Visitor], shoot: Callable[..., None]
) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    project.write("agent.py", AGENT.replace('f"You said: {prompt}"', '"You said <b>never</b>"'))
    project.test(suite)
    page = visit().open()
    boxes = page.locator("tr.row input[type=checkbox]")
    expect(boxes).to_have_count(2)
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page.locator("h1")).to_have_text("2 runs side by side")
    expect(page.locator("tr.row")).to_have_count(1)  # only where they differ
    expect(page.locator("tr.row")).to_contain_text("case-2")
    expect(page.locator("tr.row .c-tally").nth(0)).to_have_text("failed")
    expect(page.locator("tr.row .c-tally").nth(1)).to_have_text("passed")
    page.get_by_label("Only where they differ").uncheck()
    expect(page.locator("tr.row")).to_have_count(3)
    shoot(page, "view-compare")
    page.get_by_role("link", name="case-2").click()
    expect(page.locator(".column")).to_have_count(2)
    expect(page.locator(".beside-talk > li.differs").first).to_be_visible()
    expect(page.locator(".beside-talk ins").first).to_contain_text("never")
    expect(page.locator(".beside-talk > li.same").first).to_be_hidden()
    page.get_by_label("Only where they differ").uncheck()
    expect(page.locator(".beside-talk > li.same").first).to_be_visible()
    shoot(page, "view-compare-case")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("2 runs side by side")


def test_the_history_of_a_case_leads_to_a_comparison(
    project: Project, suite: str, visit: Callable[..., Visitor]
) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    project.test(suite)
    first, second = (run.name for run in project.runs())
    page = visit(second).open("#run=" + second + "&case=case-2")
    expect(page.locator(".past .square")).to_have_count(2)
    expect(page.locator(".past .aside")).to_have_text("passed in 0 of 2 runs")
    page.locator(".past .square").first.click()
    expect(page).to_have_url(re.compile(f"#run={first}&"))
    expect(page.locator(".past .square[aria-current]")).to_have_count(1)


def test_labels_survive_a_restart(
    project: Project, suite: str, visit: Callable[..., Visitor], shoot: Callable[..., None]
) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    place = f"#run={project.runs()[0].name}&case=case-2"
    visitor = visit()
    page = visitor.open(place)
    check, answer = page.locator(".verdict-item .label-part"), page.locator(".part > .label-part")
    check.get_by_role("button", name="In my judgement: passed").click()
    expect(check.locator("[aria-pressed=true]")).to_have_count(1)
    answer.get_by_role("button", name="Good").click()
    expect(answer.locator("[aria-pressed=true]")).to_have_count(1)
    answer.get_by_label("Comment").fill("<b>fine</b> to me")
    answer.get_by_label("Comment").press("Enter")
    until(lambda: "fine" in (project.runs()[0] / "labels.jsonl").read_text("utf-8"))
    shoot(page, "view-labels", full_page=True)
    page.close()
    visitor.view.process.terminate()
    assert project.finish(visitor.view.process).code == 0
    page = visit().open(place)
    check, answer = page.locator(".verdict-item .label-part"), page.locator(".part > .label-part")
    expect(check.locator("[aria-pressed=true]")).to_have_text("passed")
    expect(answer.get_by_role("button", name="Good")).to_have_attribute("aria-pressed", "true")
    expect(answer.get_by_label("Comment")).to_have_value("<b>fine</b> to me")


def test_a_search_over_everything(project: Project, suite: str, visit: Callable[..., Visitor]) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    page = visit().open()
    page.keyboard.press("/")
    page.keyboard.type("said: WAIT-2")
    page.keyboard.press("Enter")
    expect(page.locator(".hits li")).to_have_count(1)
    expect(page.locator(".hits mark")).to_have_text("said: wait-2")
    page.locator(".hits a").click()
    expect(page.locator("h1")).to_contain_text("case-2")


def test_by_keyboard_only(project: Project, suite: str, visit: Callable[..., Visitor]) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    project.test(suite)
    page = visit().open()
    expect(page.locator("tr.row")).to_have_count(2)
    for key in "jxjx":  # mark both runs
        page.keyboard.press(key)
    page.keyboard.press("c")
    expect(page.locator("h1")).to_have_text("2 runs side by side")
    page.keyboard.press("f")
    expect(page.locator("tr.row")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".column")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.locator("tr.row")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Runs")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("1 of 3 cases failed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("case-")


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egpj.exe\x1b[31m"


def test_hostile_output_stays_text(project: Project, visit: Callable[..., Visitor]) -> None:
    project.write("agent.py", f"def answer(prompt):\n    return {HOSTILE!r}\n")
    name = project.suite(
        [{"name": "<i>echo</i>", "type": "custom", "config": {"entry": "agent.py:answer"}}],
        [{"id": "<b>x</b>", "assertions": [{"type": "contains", "value": "</script><script>alert(3)</script>"}]}],
    )
    project.test(name)
    project.test(name)
    visitor = visit()
    first, second = (run.name for run in project.runs())
    for place in (
        "",
        f"#run={first}",
        f"#run={first}&case=<b>x</b>",
        f"#run={first}&with={second}&view=compare&case=<b>x</b>",
        "#view=anywhere&q=onerror",
    ):
        page = visitor.open(place)
        page.locator("main a").first.wait_for()
        assert page.locator("main img, main b:text-is('x'), main i:text-is('echo'), main script").count() == 0
        assert "\u202e" not in page.locator("main").inner_text()
        page.close()


@pytest.mark.parametrize("look", ["wide", "narrow", "dark"])
def test_looks(
    project: Project, suite: str, visit: Callable[..., Visitor], shoot: Callable[..., None], look: str
) -> None:
    let(project, 1, 2, 3)
    project.test(suite)
    project.test(suite)
    settings: dict[str, Any] = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "narrow":
        settings["viewport"] = {"width": 400, "height": 800}
    page = visit(**settings).open()
    expect(page.locator("tr.row")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    shoot(page, f"view-runs-{look}")


def test_a_view_that_ended_is_seen(project: Project, suite: str, visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    page = visitor.open()
    visitor.view.process.kill()
    expect(page.locator("html[data-lost]")).to_have_count(1)
    until(lambda: visitor.trouble)
    assert all("ERR_CONNECTION_REFUSED" in one or "ERR_INCOMPLETE" in one for one in visitor.trouble), visitor.trouble
    visitor.trouble.clear()
    page.close()
    visitor.trouble.clear()
