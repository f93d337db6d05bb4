"""Reads the HTML report in a browser, each time after the page has rendered the address that it is at."""

from playwright.sync_api import Page


def rendered(page: Page) -> Page:
    """The page, once it shows what its address says."""
    page.wait_for_function(
        "() => document.documentElement.dataset.ready && document.documentElement.dataset.shown === location.hash"
    )
    return page


def ids(page: Page) -> list[str]:
    """The cases in the table, as far as they are in the page."""
    return [one.split("\n")[0].split()[0] for one in rendered(page).locator("tr.row a.open").all_inner_texts()]


def settings(page: Page) -> str:
    """The part of the address that says what is shown."""
    return rendered(page).evaluate("decodeURIComponent(location.hash)") or ""


def saved(page: Page, choice: str) -> str:
    """The text of the file that the page exports."""
    rendered(page).get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=choice).click()
    return download.value.path().read_text(encoding="utf-8")


def press_at_once(page: Page, *keys: str) -> None:
    """Press keys without giving the page the time to handle any event between them."""
    page.evaluate(
        """(keys) => keys.forEach((key) => (document.activeElement ?? document.body).dispatchEvent(
            new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })))""",
        keys,
    )
