"""Every answer of a judge with everything that an agent may plant, everywhere: some 36,000 combinations."""

from pathlib import Path

import pytest
from tests.roles.judge.test_answers_and_plants import PLACES, PLANTED, judge_all
from tests.roles.judge.test_planted import CLIENTS
from tests.roles.support.answers import DISHONEST, HONEST


@pytest.mark.fuzz
@pytest.mark.no_cover
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("kind", CLIENTS)
def test_only_an_answer_that_means_a_pass_is_one(kind: str, planted: str, tmp_path: Path) -> None:
    cases = [(planted, place, name) for place in PLACES for name in DISHONEST]
    assert list(judge_all(kind, DISHONEST, cases, tmp_path)) == []
    cases = [(planted, place, name) for place in PLACES for name in HONEST]
    assert len(list(judge_all(kind, HONEST, cases, tmp_path))) == len(cases)
