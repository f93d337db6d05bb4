"""10,000 trials: the page draws what is seen of them, and the file can be sent around."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.reading import rendered

from atp.suite.result import CaseResult, ToolCall, Verdict

WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=3 + number % 7)) for number in range(2000)
]


def words(luck: random.Random, count: int) -> str:
    return " ".join(luck.choices(WORDS, k=count))


def many(desk: Any, make_case: Any, cases: int, runs: int) -> Iterator[CaseResult]:
    luck = desk.luck
    for index in range(cases):
        trials = []
        for run in range(1, runs + 1):
            trial = desk.plain(words(luck, 40), words(luck, 250), run=run)
            trial.transcript.tool_calls = [
                ToolCall(name="search", arguments={"q": words(luck, 5)}, result=words(luck, 60)) for _ in range(3)
            ]
            if index % 20 == 0:
                wrong = f"expected {words(luck, 2)}"
                trial.status, trial.error = "failed", wrong
                trial.verdicts = [Verdict(type="contains", outcome="failed", message=wrong, expected="x", found="y")]
            trials.append(trial)
        yield make_case(f"case-{index:05}", *trials, name=words(luck, 4), index=index, tags=[f"t{index % 5}"])


@pytest.mark.no_cover  # which doubles what it takes, and other tests cover the same
@pytest.mark.parametrize(("cases", "runs"), [(10_000, 1), (2_000, 5)])
def test_ten_thousand_trials(
    tmp_path: Path,
    watched: Any,
    write_report: Callable[..., Path],
    make_case: Any,
    desk: Any,
    shoot: Callable[..., None],
    cases: int,
    runs: int,
) -> None:
    path = write_report(tmp_path / "report.html", list(many(desk, make_case, cases, runs)))
    size = path.stat().st_size
    assert size < 50_000_000
    page = watched.page
    page.goto(path.as_uri(), wait_until="commit")
    rendered(page)
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert page.locator("tr.row").count() < 100
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(page.locator("tr.row", has_text=f"case-{cases - 1:05}")).to_be_visible()
    page.locator("#search").fill(f"case-0{cases // 10 - 7:04}")
    expect(page.locator("tr.row")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".case-head h1")).to_contain_text(f"case-0{cases // 10 - 7:04}")
    expect(page.locator(".talk .call")).to_have_count(3)
    if runs > 1:
        page.goto(f"{path.as_uri()}#view=stability")
        expect(page.locator("tr.row .square").first).to_be_visible()
        assert page.locator("tr.row").count() < 100
    shoot(page, f"many-{runs}")
