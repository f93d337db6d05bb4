"""How many tokens a run used: every format, and the budget, say the same, whichever figures agents give."""

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atp.base.secrets import hider
from atp.engine.prepare.options import Options
from atp.engine.stop import Stop
from atp.report.console.summary_text import Used
from atp.report.formats.csv import CsvReport
from atp.report.formats.ctrf import CtrfReport
from atp.report.formats.json import JsonReport
from atp.report.html.rows import case_row
from atp.suite.gates import Gate
from atp.suite.result import CaseResult, Event, Transcript, TrialResult, Usage

COUNT = st.none() | st.integers(0, 1000)
USAGE = st.builds(Usage, input_tokens=COUNT, output_tokens=COUNT, total_tokens=COUNT)
EVENT = st.builds(Event, type=st.just("llm_request"), payload=st.fixed_dictionaries({"input_tokens": COUNT}))
TRANSCRIPT = st.builds(Transcript, usage=USAGE, events=st.lists(EVENT, max_size=2))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TRANSCRIPT, min_size=1, max_size=4))
def test_all_formats_and_the_budget_agree(story: Any, transcripts: list[Transcript]) -> None:
    trials = [
        TrialResult(key=str(run), agent="a", case="c", run=run, transcript=one)
        for run, one in enumerate(transcripts, 1)
    ]
    case = CaseResult(agent="a", case="c", trials=trials)
    used, stop = Used(), Stop(Options(budget_tokens=1))
    for one in trials:
        used.add(one)
        stop.on_result(one, Gate())
    found = used.agents.tokens
    assert case_row(case, hider(()), (0, 0), [(0, 0)] * len(trials)).get("usage", {}).get("tokens", 0) == found
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("r.json", "r.csv", "r.ctrf.json")]
        reports = [JsonReport(paths[0]), CsvReport(paths[1]), CtrfReport(paths[2])]
        story.tell(reports, [case], story.end())
        whole, rows, ctrf = (path.read_text() for path in paths)
    assert _total(json.loads(whole)["results"][0]["usage"]) == found
    assert _total(json.loads(ctrf)["results"]["tests"][0]["extra"]["usage"]) == found
    assert sum(int(row["total_tokens"] or 0) for row in csv.DictReader(io.StringIO(rows))) == found
    assert (stop.exhausted is not None) == (found > 1)


def _total(usage: dict[str, int] | None) -> int:
    return (usage or {}).get("total_tokens", 0)


@given(st.lists(USAGE, max_size=5))
def test_tokens_add_up_in_whatever_order_turns_are_counted(turns: list[Usage]) -> None:
    total = Usage()
    for one in turns:
        total.add(one)
    backwards = Usage()
    for one in reversed(turns):
        backwards.add(one)
    known = [one.tokens for one in turns if one.tokens is not None]
    assert total.tokens == backwards.tokens == (sum(known) if known else None)
