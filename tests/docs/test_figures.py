"""The figures that docs/figures.md gives are those of the formulas."""

import re

from tests.docs.blocks import ROOT

from atp.stats.distributions import binomial_at_most
from atp.stats.intervals import wilson

PAGE = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) of (\d+) passed \| (\d+) % and (\d+) % \|$", re.MULTILINE)


def test_the_table_of_intervals() -> None:
    rows = [tuple(map(int, row)) for row in ROW.findall(PAGE)]
    assert len(rows) >= 8
    for passed, runs, low, high in rows:
        found = wilson(passed, runs)
        assert (low, high) == (round(100 * found.low), round(100 * found.high)), f"{passed} of {runs}"


def test_how_often_a_good_agent_looks_better_or_worse() -> None:
    assert f"{0.8**3:.0%}".replace("%", " %") in PAGE
    assert "in a quarter of all samples" in PAGE
    assert 0.2 < binomial_at_most(8, 10, 0.9) < 0.3
