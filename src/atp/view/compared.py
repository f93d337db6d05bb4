"""Compares runs for the view, with the classes of `atp compare`."""

import asyncio
from collections import OrderedDict
from typing import Any

from msgspec import to_builtins

from atp.history.compare import compare_runs
from atp.history.figures import RunFigures, run_figures
from atp.journal.follow import Signature
from atp.view.runs import Runs

MOST_KEPT = 6
"""Runs whose figures are kept in memory."""
MOST_RUNS = 8
"""Runs that are compared at once."""


class Comparisons:
    """The comparisons of runs of one folder."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._figures: OrderedDict[tuple[str, Signature], RunFigures] = OrderedDict()

    async def of(self, idents: list[str]) -> dict[str, Any]:
        """Each of 2 to `MOST_RUNS` runs but the first compared with the first. Raises `NoRun` and `LoadError`."""
        # One after the other: each may take a second and its memory.
        figures = [await asyncio.to_thread(self._figures_of, ident) for ident in idents]
        made = await asyncio.to_thread(self._compare, idents, figures)
        return {"runs": idents, "comparisons": self._runs.hide(made)}

    def _figures_of(self, ident: str) -> RunFigures:
        folder = self._runs.folder_of(ident)
        key = ident, Signature.of(folder)
        found = self._figures.get(key)
        if found is None:
            found = self._figures[key] = run_figures(folder, self._runs.hide)
            while len(self._figures) > MOST_KEPT:
                self._figures.popitem(last=False)
        return found

    def _compare(self, idents: list[str], figures: list[RunFigures]) -> list[Any]:
        first, *others = figures
        return [
            to_builtins(compare_runs(first, other, (idents[0], ident)))
            for ident, other in zip(idents[1:], others, strict=True)
        ]
