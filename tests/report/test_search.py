"""The search language in Python; tests/browser/test_html_search.py asks the page the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.support.search_table import PROBLEMS, QUERIES, left_out, ran

from atp.base.secrets import hider
from atp.report.part_of_run import searched_row, searched_skipped
from atp.report.search import FIELDS, Search, SearchError

HIDE = hider(())
ROWS = [
    *(searched_row(case, HIDE) for case in ran()),
    *(searched_skipped(file, case, HIDE) for file, case in left_out()),
]


@pytest.mark.parametrize(("query", "ids"), QUERIES)
def test_what_a_query_finds(query: str, ids: list[str]) -> None:
    search = Search(query)
    assert [row["id"] for row in ROWS if search.matches(row)] == ids


@pytest.mark.parametrize(("query", "message", "hint"), PROBLEMS)
def test_what_a_query_gets_wrong(query: str, message: str, hint: str) -> None:
    with pytest.raises(SearchError) as found:
        Search(query)
    assert (str(found.value), found.value.hint or "") == (message, hint)


def test_the_table_asks_for_every_field() -> None:
    asked = " ".join(query for query, _ in QUERIES)
    assert [name for name in FIELDS if not any(f"{name}{relation}" in asked for relation in ":<>")] == []


@given(st.text())
def test_any_text_is_a_query_or_a_search_error(text: str) -> None:
    try:
        search = Search(text)
    except SearchError:
        return
    for row in ROWS:
        search.matches(row)


@given(st.text(st.characters(codec="utf-8", exclude_characters='"')))
def test_a_quoted_text_is_never_a_field(text: str) -> None:
    search = Search(f'"{text}"')
    assert [search.matches(row) for row in ROWS] == [Search(f'"{text.upper()}"').matches(row) for row in ROWS] or (
        text.upper().lower() != text.lower()
    )


def test_a_secret_is_not_found() -> None:
    case = ran()[0]
    case.trials[0].error = "the key sk-hidden-123456 was refused"
    row = searched_row(case, hider(["sk-hidden-123456"]))
    assert not Search("sk-hidden-123456").matches(row)
    assert Search("key refused").matches(row)
