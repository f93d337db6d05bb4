"""The HTML report for those who use the keyboard alone, hear the page, or need contrast, width or paper."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.reading import ids, press_at_once, rendered, settings

PLACES = ["", "#q=stats:failed", "#view=stability", "#view=run", "#case=lisbon-total", "#case=trip&trial=1.2"]

LOW_CONTRAST = """
() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
    const ground = (element) => {
        const layers = [];
        for (let one = element; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const light = (colour) => {
        const [r, g, b] = colour.slice(0, 3).map((part) => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    let looked = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.textContent.trim() || element.closest("script, style, noscript, svg")) continue;
        if (!element.checkVisibility()) continue;
        const style = getComputedStyle(element);
        const below = ground(element);
        const [a, b] = [light(over(rgba(style.color), below)), light(below)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        looked++;
        const about = `${ratio.toFixed(2)} .${element.className} ${node.textContent.trim().slice(0, 40)}`;
        if (ratio < (large ? 3 : 4.5)) found.push(about);
    }
    return { looked, found };
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_aa(browser: Browser, reports: dict[str, Path], scheme: Any) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1, and 3 to 1 for large text."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 860})
    page = context.new_page()
    others = [("agents", "#view=agents"), ("agents", "#case=greeting"), ("stopped", "")]
    places = [*(("repeated", place) for place in PLACES), *others]
    too_low: dict[str, list[str]] = {}
    for name, place in places:
        page.goto("about:blank")
        page.goto(f"{reports[name].as_uri()}{place}")
        rendered(page)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        if place == "":
            page.keyboard.press("?")
        seen = page.evaluate(LOW_CONTRAST)
        assert seen["looked"] > 20
        if seen["found"]:
            too_low[f"{name}{place}"] = sorted(set(seen["found"]))
    context.close()
    assert too_low == {}


def test_the_contrast_test_sees_low_contrast(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["passed"])
    page.evaluate("document.querySelector('h1').style.color = 'color-mix(in srgb, currentColor 20%, transparent)'")
    assert any("All 10 cases passed" in one for one in page.evaluate(LOW_CONTRAST)["found"])


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.closest('tr.row')?.querySelector('a.open').textContent ?? ''"))


def test_the_list_goes_on_from_the_case_that_was_left(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    order = ids(page)
    watched.open(reports["repeated"], f"#case={order[6]}")  # from a link, and not from the list
    press_at_once(page, "Escape", "k", "k")
    assert focused(page).startswith(order[4])
    press_at_once(page, "k", "k")
    assert focused(page).startswith(order[2])
    press_at_once(page, "Enter")
    page.keyboard.press("Enter")
    press_at_once(page, "k", "k")
    assert settings(page) == f"#case={order[0]}"


def test_scrolling_away_does_not_lose_the_place(
    watched: Any, tmp_path: Path, write_report: Callable[..., Path], make_case: Any, desk: Any
) -> None:
    cases = [make_case(f"case-{number:03}", desk.plain("q", "a"), index=number) for number in range(400)]
    page = watched.open(write_report(tmp_path / "many.html", cases))
    press_at_once(page, *["j"] * 21)
    assert focused(page).startswith("case-020")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(page.locator("tr.row", has_text="case-399")).to_be_visible()
    expect(page.locator("tr.row", has_text="case-020")).to_have_count(0)
    press_at_once(page, "k", "k")
    assert focused(page).startswith("case-018")
    expect(page.locator("tr.row", has_text="case-018")).to_be_in_viewport()


def test_a_filter_keeps_the_place_of_a_case_that_stays(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    press_at_once(page, "j", "j", "f")
    place = ids(page)
    before = focused(page)
    press_at_once(page, "f")
    page.locator("tr.row", has_text="hotel-choice").locator("a.open").focus()
    press_at_once(page, "f", "j")
    assert focused(page).startswith(place[place.index("hotel-choice") + 1]), before


def test_every_view_is_reached_by_key(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    for key, place in (("2", "#view=stability"), ("3", "#view=run"), ("1", "")):
        page.keyboard.press(key)
        assert settings(page) == place
    page.keyboard.press("9")
    page.keyboard.press("4")  # this run has three views
    assert settings(page) == ""
    page.keyboard.press("f")
    page.keyboard.press("e")
    expect(page.get_by_role("button", name="JSON, with conversations")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#export")).to_be_hidden()
    assert settings(page).startswith("#status="), "Escape closes the menu, and clears no filter"
    watched.open(reports["agents"])
    page.keyboard.press("2")
    page.get_by_label("Only where they differ").press("Space")
    assert settings(page) == "#view=agents&differ=yes"
    page.reload()
    expect(rendered(page).locator("tr.row")).to_have_count(7)
    expect(page.get_by_label("Only where they differ")).to_be_checked()


def test_everything_can_be_reached_with_tab(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["passed"])
    wanted = page.evaluate(
        """[...document.querySelectorAll("a[href], button, input, select, summary")]
            .filter((one) => one.checkVisibility() && !one.disabled).length"""
    )
    seen = page.evaluate("[]")
    for _ in range(wanted + 2):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
    reached = {one for one in seen if not one.startswith("<body")}
    assert len(reached) >= wanted - 1, sorted(reached)
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.locator("#search").focus()
    page.keyboard.press("Tab")
    assert page.evaluate(outline) != "none"


def test_what_is_said_to_those_who_hear_the_page(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"])
    said = page.locator("#said")
    expect(said).to_have_attribute("aria-live", "polite")
    row = page.locator("tr.row", has_text="lisbon-total")
    expect(row.locator("a.open")).to_have_accessible_description("failed")
    page.locator("#search").fill("refused")
    expect(page.get_by_role("status").filter(has_text="2 of 19 cases")).to_have_count(1)
    page.locator("#search").fill("stats:x")
    described = 'there is no field `stats` to search. did you mean `status`?; quote a text: "stats:x"'
    expect(page.locator("#search")).to_have_accessible_description(described)
    page.keyboard.press("Escape")
    order = ids(page)
    row.locator("a.open").press("Enter")
    expect(said).to_have_text(f"lisbon-total: failed, run 1 failed, case 1 of {len(order)}")
    page.keyboard.press("]")
    expect(said).to_have_text(f"lisbon-total: failed, run 2 failed, case 1 of {len(order)}")
    page.keyboard.press("j")
    expect(said).to_contain_text(f"{order[1]}: ")
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_count(1)
    page.keyboard.press("t")
    expect(said).to_contain_text("colours")


@pytest.mark.parametrize("name", ["repeated", "single", "agents"])
def test_roles_and_names(watched: Any, reports: dict[str, Path], name: str) -> None:
    page = watched.open(reports[name])
    for landmark in ("main", "banner", "search"):
        expect(page.get_by_role(landmark)).to_have_count(1)
    nameless = """() => [...document.querySelectorAll("button, a[href], input, select, [role=img], table, nav")]
        .filter((one) => one.checkVisibility() && !(one.innerText ?? "").trim()
            && !one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby")
            && !one.closest("label")?.innerText.trim()).map((one) => one.outerHTML)"""
    assert page.evaluate(nameless) == []
    doubled = """() => [...document.querySelectorAll("[id]")].map((one) => one.id)
        .filter((id, at, all) => all.indexOf(id) !== at)"""
    assert page.evaluate(doubled) == []
    described = """() => [...document.querySelectorAll("[aria-describedby], [aria-labelledby]")]
        .filter((one) => !["aria-describedby", "aria-labelledby"].some(
            (name) => document.getElementById(one.getAttribute(name)))).map((one) => one.outerHTML)"""
    assert page.evaluate(described) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_400_pixels(browser: Browser, reports: dict[str, Path], shoot: Callable[..., None], scheme: Any) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for place in PLACES:
        page.goto("about:blank")
        page.goto(f"{reports['repeated'].as_uri()}{place}")
        rendered(page)
        page.keyboard.press("?")
        wide = page.evaluate("[document.documentElement.scrollWidth, document.querySelector('dialog').scrollWidth]")
        assert wide[0] <= 400, place
        assert wide[1] <= 400, place
        expect(page.get_by_role("dialog")).to_be_in_viewport()
    shoot(page, f"narrow-keys-{scheme}")
    context.close()


def test_paper_has_the_reasons(watched: Any, reports: dict[str, Path]) -> None:
    page = watched.open(reports["repeated"], "#status=failed")
    page.emulate_media(media="print")
    for row in page.locator("tr.row").all():
        expect(row.locator(".why-line")).to_be_visible()
    expect(page.locator(".filters")).to_be_hidden()
    for reason in page.locator(".why > li").all():
        expect(reason).to_be_visible()
