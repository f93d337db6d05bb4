"""The page's search: the same queries and answers as tests/report/test_search.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.reading import ids, settings
from tests.report.support.search_table import PROBLEMS, QUERIES, left_out, ran


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, write_report: Callable[..., Path]) -> Path:
    """The report of a run with the table's cases."""
    skipped = left_out()
    path = tmp_path_factory.mktemp("search") / "table.html"
    return write_report(path, ran(), left_out=[case for _, case in skipped], input=[skipped[0][0]])


def test_queries_find_what_they_find_in_python(watched: Any, table: Path) -> None:
    page = watched.open(table)
    found = {}
    for query, _ in QUERIES:
        page.locator("#search").fill(query)
        page.keyboard.press("Shift")  # no key of the page, but the typing is over with the next one
        page.wait_for_function("(q) => (new URLSearchParams(location.hash.slice(1)).get('q') ?? '') === q", arg=query)
        found[query] = sorted(ids(page))  # the page lists failures first
        expect(page.locator("#search")).to_have_attribute("aria-invalid", "false")
    assert found == {query: sorted(wanted) for query, wanted in QUERIES}


def test_a_query_that_is_wrong_says_what_python_says(watched: Any, table: Path) -> None:
    page = watched.open(table)
    for query, message, hint in PROBLEMS:
        page.locator("#search").fill(query)
        expect(page.get_by_role("status").filter(has_text=message)).to_have_text(
            f"{message}. {hint}" if hint else message
        )
        expect(page.locator("#search")).to_have_attribute("aria-invalid", "true")
        assert ids(page) == []


def test_a_query_in_the_address(watched: Any, table: Path) -> None:
    page = watched.open(table, "#q=status%3Afailed%2Ctimeout+turns%3E5")
    assert sorted(ids(page)) == ["payment", "refund-late"]
    expect(page.locator("#search")).to_have_value("status:failed,timeout turns>5")
    page.keyboard.press("/")
    page.keyboard.press("End")
    page.keyboard.type(" tool:pay")
    expect(page.locator("tr.row")).to_have_count(1)
    assert settings(page) == "#q=status:failed,timeout+turns>5+tool:pay"
    page.reload()
    assert ids(page) == ["refund-late"]
    page.keyboard.press("Escape")
    assert len(ids(page)) == 6
