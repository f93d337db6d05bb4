"""What a case came to in earlier runs."""

import asyncio
from pathlib import Path
from typing import Any

from atp.base.diagnostics import LoadError
from atp.history.figures import run_figures
from atp.journal.follow import Signature
from atp.report.facts import timestamp
from atp.view.runs import Runs

MOST_RUNS = 200
"""How many of the newest runs are looked at."""


class Past:
    """The results of cases in the runs of one folder."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._results: dict[str, tuple[Signature, dict[str, list[dict[str, Any]]]]] = {}

    async def of(self, case: str, agent: str | None, file: str | None) -> dict[str, Any]:
        """The results of a case, newest first; of one agent and one file, if these are given."""
        found = []
        for folder in self._runs.folders()[:MOST_RUNS]:
            try:
                results = await asyncio.to_thread(self._results_of, folder)
            except (LoadError, OSError):
                continue
            found += [
                one for one in results.get(case, ()) if agent in (None, one["agent"]) and file in (None, one["file"])
            ]
        return {"case": case, "results": found}

    def _results_of(self, folder: Path) -> dict[str, list[dict[str, Any]]]:
        """What each case of a run came to, by its id."""
        signature = Signature.of(folder)
        known = self._results.get(folder.name)
        if known is not None and known[0] == signature:
            return known[1]
        figures = run_figures(folder, self._runs.hide)
        results: dict[str, list[dict[str, Any]]] = {}
        for case in figures.cases:
            one = {
                "run": folder.name,
                "at": timestamp(figures.at),
                "commit": figures.commit,
                "agent": case.agent,
                "file": case.file,
                "status": case.status,
                "runs": case.judged + case.errors + case.missing,
                "passed": case.passed,
            }
            results.setdefault(case.id, []).append(one)
        self._results[folder.name] = signature, results
        return results
