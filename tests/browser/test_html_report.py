"""The HTML report as a person uses it: in a real browser, from the disk, with nothing else."""

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.reading import ids, press_at_once, rendered, saved, settings
from tests.waiting import until

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_first_screen(watched: Any, reports: dict[str, Path], shoot: Callable[..., None]) -> None:
    page = watched.open(reports["repeated"])
    expect(page.locator("h1")).to_have_text("5 of 18 cases failed, 4 could not be completed")
    expect(page.locator(".verdict .about")).to_contain_text(
        "travel.jsonl against travel-desk on deepseek.v3, up to 5 runs each"
    )
    legend = page.locator(".verdict .legend").inner_text()
    for part in (
        "9 passed",
        "3 failed",
        "1 timed out",
        "4 errors",
        "environment 2",
        "judge 1",
        "1 blocked",
        "1 skipped",
    ):
        assert part in " ".join(legend.split())
    reasons = page.locator(".why > li")
    expect(reasons.first).to_contain_text('expected the output to contain "EUR 142"')
    expect(reasons.first).to_contain_text("×2")
    expect(reasons.nth(1)).to_contain_text("rates-today")  # as often, and errors stand below failures
    expect(reasons.nth(1)).to_contain_text("something around the agent broke, not the agent")
    expect(reasons.nth(5)).to_be_hidden()
    page.get_by_role("button", name="Show 2 more reasons").click()
    expect(reasons).to_have_count(7)
    expect(reasons.nth(6)).to_be_visible()
    figures = page.locator(".figures").inner_text()
    for part in ("Pass rate", "58.1%", "Cost", "for judging", "Tokens", "Duration"):
        assert part in figures
    shoot(page, "summary")
    shoot(page, "summary-whole", full_page=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("passed", "All 10 cases passed"),
        ("stopped", "36 of 40 cases could not be completed"),
        ("empty", "Nothing ran"),
        ("single", "1 of 13 cases failed"),
    ],
)
def test_verdicts(watched: Any, reports: dict[str, Path], name: str, words: str) -> None:
    page = watched.open(reports[name])
    expect(page.locator("h1")).to_have_text(words)
    assert rendered(page).title().startswith(words)


def test_filters_are_in_the_address(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    assert len(ids(page)) == 19
    page.locator("[data-status=failed]").click()
    assert ids(page) == ["lisbon-total", "hotel-choice", "cancel"]
    page.locator("[data-status=timeout]").click()
    assert ids(page) == ["lisbon-total", "hotel-choice", "cancel", "around-the-world"]
    page.locator("select[data-name=tag]").select_option("booking")
    assert ids(page) == ["hotel-choice", "cancel", "around-the-world"]
    expect(page.locator(".found")).to_contain_text("3 of 19 cases")
    assert settings(page) == "#status=failed,timeout&tag=booking"
    page.reload()
    assert ids(page) == ["hotel-choice", "cancel", "around-the-world"]
    page.go_back()
    expect(page.locator("tr.row")).to_have_count(4)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("tr.row")).to_have_count(19)


def test_the_counts_lead_to_the_cases(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    page.locator(".verdict a.blame", has_text="judge").click()
    expect(page.locator("tr.row")).to_have_count(1)
    assert ids(page) == ["tone"]
    expect(page.locator("tr.row")).to_be_in_viewport()


def test_search(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("connection REFUSED")
    expect(page.locator("tr.row")).to_have_count(2)
    assert ids(page) == ["rates-today", "rates-weekend"]
    expect.soft(page.locator(".chip[data-status=error]")).to_contain_text("2")
    expect(page).to_have_url(re.compile(r"q=connection\+REFUSED$"))
    page.keyboard.press("Escape")
    expect(page.locator("tr.row")).to_have_count(19)
    page.locator("#search").fill("no such thing")
    expect(page.locator(".none")).to_have_text("No case fits these filters.")


def test_sorting(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    page.get_by_role("button", name="Time", exact=True).click()
    assert ids(page)[0] == "around-the-world"
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Time")
    page.get_by_role("button", name="Time", exact=True).click()
    assert ids(page)[-1] == "around-the-world"
    page.get_by_role("button", name="Status", exact=True).click()
    assert ids(page)[:3] == ["lisbon-total", "hotel-choice", "cancel"]
    assert settings(page) == "#sort=status"


def test_a_failed_trial(watched: Any, reports: dict[str, Path], shoot: Callable[..., None]) -> None:
    page = watched.open(reports["repeated"])
    page.locator("tr.row", has_text="lisbon-total").click()
    expect(page.locator(".case-head h1")).to_contain_text("lisbon-total")
    first = page.locator(".checks .verdict-item").first
    expect(first).to_contain_text("equals")
    assert first.locator("del").all_inner_texts() == ["630.9", "false"]
    assert first.locator("ins").all_inner_texts() == ["612.4", "true"]
    steps = page.locator(".talk .step")
    assert [one.split()[0] for one in steps.all_inner_texts()] == [
        *("Turn", "User", "Thought", "find_trip", "Model", "list_receipts", "convert", "Error", "Agent")
    ]
    expect(steps.nth(6)).to_contain_text("no rate for 2026-11-14")
    facts = page.locator(".facts").inner_text()
    for part in (
        "atp test tests/travel.jsonl --run '^lisbon-total$' -n travel-desk -c deepseek.v3",
        *("0.0 of 100", "quality", "left out: no budget_usd or max_tokens", "$0.0035", "$0.0061"),
        *("receipts.csv", "map.png", "the agent reported 3 steps", "HTTP 503", "tests/travel.jsonl:3"),
    ):
        assert part in facts
    quote = page.locator("button.quote", has_text="612.4")
    quote.click()
    mark = page.locator("mark.here")
    expect(mark).to_have_text('"total": 612.4')
    expect(mark).to_be_in_viewport()
    page.locator(".artifacts summary").click()
    expect(page.locator(".artifacts .text")).to_contain_text("dinner,148.00,EUR")
    page.locator(".logs summary").click()
    expect(page.locator(".logs .text")).to_contain_text("rates: cache miss")
    page.evaluate("scrollTo(0, 0)")
    shoot(page, "failure", full_page=True)


def test_permalinks(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"], "#case=trip&trial=1.2")
    expect(page.locator(".trials")).to_contain_text("Run 2")
    expect(page.locator(".trials")).to_contain_text("4 of 5 passed, mostly stable, 60% needed")
    expect(page.locator(".why-box")).to_have_text("missing checkpoints: files, reference")
    expect(page.locator(".points li").nth(1)).to_contain_text("not reached")
    page.locator(".trials .square").nth(2).click()
    expect(page.locator(".trials")).to_contain_text("Run 3")
    expect(page.locator(".talk")).to_contain_text("Checkpoint files reached")
    assert settings(page) == "#case=trip&trial=1.3"
    page.go_back()
    expect(page.locator(".why-box")).to_be_visible()
    watched.open(reports["agents"], "#case=greeting&by=gpt-travel")
    expect(page.locator(".case-head .about")).to_contain_text("gpt-travel")
    watched.open(reports["single"], "#case=nobody")
    expect(page.locator("h1")).to_have_text("There is no such case in this report")


def test_befores_and_variations(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["single"], "#case=after-hotel")
    expect(page.locator(".inherited summary")).to_have_text("2 messages from the cases before it")
    expect(page.locator(".inherited .message").first).to_be_hidden()
    page.locator(".inherited summary").click()
    expect(page.locator(".inherited .message").first).to_contain_text("What did I pay?")
    assert page.locator(".talk > .steps .message").count() == 2
    watched.open(reports["single"], "#case=two-ways&trial=2.1")
    expect(page.locator(".trials")).to_contain_text("Variation 2 (generated), run 1")
    expect(page.locator(".talk")).to_contain_text("Please drop my flight")


def test_keyboard(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    press = page.keyboard.press
    press("j")
    expect(page.locator("tr.row[data-place='0'] a.open")).to_be_focused()
    press("j")
    press("ArrowDown")
    press("k")
    expect(page.locator("tr.row[data-place='1'] a.open")).to_be_focused()
    press("Enter")
    expect(page.locator(".case-head h1")).to_contain_text("limit-hotel")
    press("j")
    expect(page.locator(".case-head h1")).to_contain_text("limit-meal")
    press("]")
    expect(page.locator(".trials")).to_contain_text("Run 2")
    press("[")
    expect(page.locator(".trials")).to_contain_text("Run 1")
    press("k")
    expect(page.locator(".case-head h1")).to_contain_text("limit-hotel")
    press("k")
    expect(page.locator(".case-head h1")).to_contain_text("lisbon-total")
    press("Escape")
    expect(page.locator("tr.row[data-place='0'] a.open")).to_be_focused()
    press("f")
    expect(page.locator("tr.row")).to_have_count(9)
    press("Escape")
    expect(page.locator("tr.row")).to_have_count(19)
    press("?")
    expect(page.get_by_role("dialog")).to_contain_text("only what did not pass")
    press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_keys_pressed_quickly_are_all_heard(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"], "#case=lisbon-total")
    press_at_once(page, "j", "j", "j", "k")
    expect(page.locator(".case-head h1")).to_contain_text("limit-meal")
    assert settings(page) == "#case=limit-meal"
    press_at_once(page, "]", "]", "]", "[")
    assert settings(page) == "#case=limit-meal&trial=1.3"
    expect(page.locator(".trials")).to_contain_text("Run 3")
    press_at_once(page, "Escape", "j", "j", "f", "f", "f")
    assert settings(page) == "#status=failed,timeout,error,blocked,cancelled,inconclusive"
    assert len(ids(page)) == 9
    press_at_once(page, "/", "Escape", "f", "j", "k", "j")
    expect(page.locator("tr.row[data-place='1'] a.open")).to_be_focused()
    assert settings(page) == ""
    page.go_back()
    assert len(ids(page)) == 9


def test_a_key_after_a_search_acts_on_what_was_found(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    page.locator("#search").evaluate(
        """(search) => {
            search.focus();
            search.value = "refused";
            search.dispatchEvent(new Event("input", { bubbles: true }));
            search.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator("tr.row a.open").first).to_be_focused()
    assert ids(page) == ["rates-today", "rates-weekend"]
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    press_at_once(page, "f")
    assert settings(page) == "#status=failed,timeout,error,blocked,cancelled,inconclusive"


def test_the_link_to_the_content_stays_in_the_case(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"], "#case=lisbon-total")
    page.get_by_role("link", name="To the content").press("Enter")
    expect(page.locator("#page")).to_be_focused()
    assert settings(page) == "#case=lisbon-total"


def test_export(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"], "#status=failed")
    whole = json.loads(saved(page, "JSON"))
    assert [one["id"] for one in whole["results"]] == ["lisbon-total", "hotel-choice", "cancel"]
    trial = whole["results"][0]["trials"][1]
    assert (trial["run"], trial["status"]) == (2, "failed")
    assert trial["transcript"]["tool_calls"][1]["result"][0]["amount"] == 426.0
    assert whole["results"][0]["expected"]["total"] == 630.9
    assert whole["summary"]["failed"] == 5
    rows = list(csv.DictReader(io.StringIO(saved(page, "CSV").removeprefix("\ufeff"))))
    assert [(row["id"], row["status"], row["passed"], row["pass_rate"]) for row in rows] == [
        ("lisbon-total", "failed", "0", "0"),
        ("hotel-choice", "failed", "2", "40"),
        ("cancel", "failed", "4", "80"),
    ]


def test_light_and_dark(browser: Browser, watched: Any, reports: dict[str, Path], shoot: Callable[..., None]) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page = watched.open(reports["repeated"])
    light = page.evaluate(ground)
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate(ground)
    assert light != dark
    shoot(page, "dark")

    def dark_after_reload() -> bool:
        page.reload()
        return bool(rendered(page).evaluate(ground) == dark)

    until(dark_after_reload)  # the browser stores the choice in its own time, and a page loaded before that is light
    page.keyboard.press("t")
    assert page.evaluate(ground) == light
    context = browser.new_context(color_scheme="dark")
    other = context.new_page()
    other.goto(reports["repeated"].as_uri())
    assert other.evaluate(ground) == dark
    context.close()


def test_stability(watched: Any, reports: dict[str, Path], shoot: Callable[..., None]) -> None:
    page = watched.open(reports["repeated"])
    page.get_by_role("link", name="Stability").click()
    expect(page.locator("h1")).to_have_text("3 cases of 17 go one way or the other")
    assert ids(page)[:4] == ["hotel-choice", "cancel", "trip", "lisbon-total"]
    row = page.locator("tr.row").first
    expect(row.locator(".rate")).to_contain_text("40%")
    expect(row.locator(".square")).to_have_count(5)
    expect(row.locator(".square.is-failed")).to_have_count(3)
    expect(row.locator("svg.spread .dot")).to_have_count(5)
    shoot(page, "stability", full_page=True)
    row.locator(".square").nth(1).click()
    expect(page.locator(".trials")).to_contain_text("Run 2")
    page.keyboard.press("j")
    expect(page.locator(".case-head h1")).to_contain_text("cancel")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_contain_text("one way or the other")
    page.get_by_role("button", name="Pass rate").click()
    assert ids(page)[0] == "lisbon-total"


def test_agents_side_by_side(watched: Any, reports: dict[str, Path], shoot: Callable[..., None]) -> None:
    page = watched.open(reports["agents"])
    expect(page.locator(".beside tbody tr")).to_have_count(3)
    expect(page.locator(".beside thead")).to_contain_text("Compared with the first")
    expect(page.locator(".beside tbody tr").nth(0).locator(".compared")).to_have_text("–")
    expect(page.locator(".beside tbody tr").nth(1).locator(".compared")).to_contain_text("points over 11 cases")
    page.locator(".tabs").get_by_role("link", name="Agents").click()
    expect(page.locator("h1")).to_have_text("3 agents side by side")
    expect(page.locator(".grid thead th")).to_have_text(["Case", "travel-desk", "travel-desk-mini", "gpt-travel"])
    expect(page.locator("tr.row")).to_have_count(11)
    shoot(page, "agents")
    page.get_by_label("Only where they differ").check()
    expect(page.locator("tr.row")).to_have_count(7)
    page.locator("tr.row", has_text="greeting").locator("a.by").nth(1).click()
    expect(page.locator(".case-head .about")).to_contain_text("travel-desk-mini")
    expect(page.locator(".column")).to_have_count(3)
    expect(page.locator(".column").nth(1)).to_contain_text("I can’t help with that.")
    shoot(page, "agents-case", full_page=True)
    watched.open(reports["agents"])
    page.locator("select[data-name=agent]").select_option("gpt-travel")
    expect(page.locator("tr.row")).to_have_count(11)


@pytest.mark.parametrize("place", ["", "#view=stability", "#view=run", "#case=lisbon-total", "#case=hotel-choice"])
def test_narrow(browser: Browser, reports: dict[str, Path], shoot: Callable[..., None], place: str) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page = context.new_page()
    page.goto(f"{reports['repeated'].as_uri()}{place}")
    rendered(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    cut = """[...document.querySelectorAll('.c-status .word, .grid .c-time')].filter((one) =>
        one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline'
        || one.closest('td')?.scrollWidth > one.closest('td')?.clientWidth + 1).map((one) => one.textContent)"""
    assert page.evaluate(cut) == []
    shoot(page, f"narrow{place.replace('#', '-').replace('=', '-')}")
    context.close()


@pytest.mark.parametrize("place", ["", "#case=lisbon-total"])
def test_print(watched: Any, reports: dict[str, Path], shoot: Callable[..., None], place: str) -> None:
    page = watched.open(reports["repeated"], place)
    page.emulate_media(media="print")
    expect(page.locator("#bar")).to_be_hidden()
    if not place:
        for reason in page.locator(".why > li").all():
            expect(reason).to_be_visible()
    expect(page.locator("h1")).to_be_visible()
    shoot(page, f"print{'-case' if place else ''}", full_page=True)
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_javascript(browser: Browser, reports: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["repeated"].as_uri())
    expect(page.locator("h1")).to_have_text("5 of 18 cases failed, 4 could not be completed")
    expect(page.locator(".told li")).to_have_count(9)
    expect(page.locator("noscript p")).to_be_visible()
    context.close()


def test_names_for_those_who_hear_the_page(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    table = page.get_by_role("table", name="All cases")
    expect(table).to_have_attribute("aria-rowcount", "20")
    expect(table.get_by_role("columnheader")).to_have_count(6)
    expect(table.get_by_role("rowheader")).to_have_count(19)
    nameless = """[...document.querySelectorAll('button, a, input, select')].filter((one) =>
        one.checkVisibility() && !(one.innerText || '').trim() && !one.getAttribute('aria-label')
    ).map((one) => one.outerHTML)"""
    assert page.evaluate(nameless) == []
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()


def test_of_a_real_run(
    tmp_path: Path, watched: Any, atp: Callable[..., "subprocess.CompletedProcess[str]"], shoot: Callable[..., None]
) -> None:
    for name in ("files.yaml", "clerk.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    ran = atp("test", "files.yaml", "--runs", "2", "-o", "report.html", cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    page = watched.open(tmp_path / "report.html")
    expect(page.locator("h1")).to_have_text("1 of 3 cases failed")
    page.locator(".why a.case").click()
    expect(page.locator(".checks")).to_contain_text("expected $.lines to be 3, found 2 there")
    steps = page.locator(".talk .step")
    told = [number for number, text in enumerate(steps.all_inner_texts()) if text.startswith("Input data")]
    assert len(told) == 1
    expect(steps.nth(told[0])).to_contain_text('"log": "started\\nready\\nstopped"')
    expect(steps.nth(told[0] - 1)).to_contain_text("Count the lines of the log")
    expect(page.locator(".command")).to_have_text("atp test files.yaml --run '^count-002$' -n clerk --runs 2")
    again = atp("test", "files.yaml", "--run", "^count-002$", "-n", "clerk", "--runs", "2", "--quiet", cwd=tmp_path)
    assert again.returncode == 1
    shoot(page, "real-failure", full_page=True)


def test_a_case_that_was_cut_short(watched: Any, tmp_path: Path, atp: Callable[..., Any]) -> None:
    answer = 'def answer(prompt):\n    return {"output": prompt, "usage": {"cost_usd": 1.0}}\n'
    (tmp_path / "agent.py").write_text(answer)
    (tmp_path / "dear.jsonl").write_text('{"id": "dear", "input": "hi", "expected": "hi", "runs": 5}\n')
    atp("test", "dear.jsonl", "-n", "agent.py:answer", "--budget-usd", "2", "-o", "cut.html", cwd=tmp_path)
    page = watched.open(tmp_path / "cut.html")
    expect(page.locator(".figures")).to_contain_text("60%")
    expect(page.locator(".stable-part .legend")).to_have_text("1 cut short")
    watched.go("#view=stability")
    expect(page.locator("tr.row .rate")).to_have_text("60%")
    expect(page.locator("tr.row .sub")).to_have_text("only 3 of 5 trials ran")
    watched.go("#case=dear")
    expect(page.locator(".trials p .dim")).to_contain_text("3 of 5 passed, only 3 of 5 trials ran")


def test_a_run_of_several_files_says_which_file_a_case_is_from(
    watched: Any, tmp_path: Path, atp: Callable[..., Any]
) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    for name, expected in (("one", "ho"), ("two", "he")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "a", "input": "hi", "expected": expected}))
    atp("test", "one.jsonl", "two.jsonl", "-n", "agent.py:answer", "-o", "x.html", cwd=tmp_path)
    page = watched.open(tmp_path / "x.html")
    expect(page.locator(".why a.case")).to_have_text(["a one.jsonl", "a two.jsonl"])
    expect(page.locator("tr.row a.open")).to_have_text(["a one.jsonl", "a two.jsonl"])
