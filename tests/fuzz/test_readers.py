"""Every reader of what ATP did not write, or wrote and may find damaged, with many inputs. `make test` tries a few.

The rounds differ by their seed only, so that a failure can be repeated: `pytest -m fuzz -k "journal and 3"`.
"""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from tests.agents.test_stdio import CUTS, RESPONSE, STDERR, check_response, check_stderr
from tests.base.json.test_found import check_search
from tests.base.test_sse import CUTS as SSE_CUTS
from tests.base.test_sse import STREAMS, check_stream
from tests.checks.matching.test_json_paths import PATHS, VALUES, check_path
from tests.checks.test_snapshot import GOLDEN, MATCHES, check_golden
from tests.damage import damaged, damaged_bytes
from tests.history.test_baselines import CONTENT, check_baseline, check_content
from tests.history.test_quarantine import WRITTEN, check_quarantine
from tests.journal.test_damage import JOURNAL, check_journal
from tests.loader.markdown.test_properties import FIXTURES, loads
from tests.loader.test_properties import SEEDS, check
from tests.models.cassettes.test_damage import CACHED, CASSETTE, check_cache, check_cassette
from tests.roles.judge.test_answer import ANSWER, PIECES, check_answer
from tests.suite.test_gates import GATES, check_gate


def _damaged_golden(match: str) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(match), damaged_bytes(GOLDEN[match]))


ROUNDS = 4
READERS: dict[str, tuple[int, st.SearchStrategy[tuple[Any, ...]], Callable[..., object]]] = {
    "yaml": (2_000, st.tuples(damaged(SEEDS["yaml"]), st.just("yaml")), check),
    "jsonl": (2_000, st.tuples(damaged(SEEDS["jsonl"]), st.just("jsonl")), check),
    "json": (2_000, st.tuples(damaged(SEEDS["json"]), st.just("json")), check),
    "markdown": (1_000, st.tuples(st.sampled_from(FIXTURES).flatmap(damaged)), loads),
    "server-sent events": (5_000, st.tuples(STREAMS, SSE_CUTS), check_stream),
    "stderr": (2_000, st.tuples(damaged_bytes(STDERR), CUTS), check_stderr),
    "response": (2_000, st.tuples(damaged_bytes(RESPONSE)), check_response),
    "json in text": (5_000, st.tuples(damaged(ANSWER, PIECES) | st.text()), check_search),
    "json path": (2_000, st.tuples(PATHS, VALUES), check_path),
    "judge": (5_000, st.tuples(damaged(ANSWER, PIECES)), check_answer),
    "journal": (250, st.tuples(damaged_bytes(JOURNAL)), check_journal),
    "cassette": (1_000, st.tuples(damaged_bytes(CASSETTE)), check_cassette),
    "cache": (1_000, st.tuples(damaged_bytes(CACHED)), check_cache),
    "baseline": (500, st.tuples(damaged_bytes(CONTENT)), check_content),
    "packed baseline": (500, st.tuples(damaged_bytes(gzip.compress(CONTENT, mtime=0))), check_baseline),
    "golden file": (500, st.sampled_from(MATCHES).flatmap(_damaged_golden), check_golden),
    "quarantine": (1_000, st.tuples(damaged_bytes(WRITTEN)), check_quarantine),
    "gate": (1_000, st.tuples(st.text() | GATES), check_gate),
}
"""By reader: inputs a round, what they are, and what must hold for each."""


@pytest.mark.fuzz
@pytest.mark.no_cover
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("reader", READERS)
def test_any_input_is_read_or_refused(reader: str, round_: int) -> None:
    inputs, strategy, holds = READERS[reader]

    @seed(round_)
    @settings(max_examples=inputs, derandomize=False, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def read(given: tuple[Any, ...]) -> None:
        holds(*given)

    read()
