"""The assessor: evidence, one question again, votes, what is kept, and never a verdict out of nothing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.roles.support.doubles import Scripted, run, scored, talk, verdict, verdicts

from atp.base.errors import ConfigurationError
from atp.models.cassettes.cassette import Cassette
from atp.models.cassettes.store import Cache
from atp.roles.ask import FunctionClient, RoleError, WrongAnswer
from atp.roles.judge.assessor import Assessor
from atp.roles.judge.judges import Assessment, Judgement, outcome_of_votes
from atp.roles.judge.prompt import RUBRICS, rubric
from atp.roles.record import make_record

RECORD = make_record(talk(("Warm the ocean.", "I warmed it by 2 degrees.")))
QUOTE = "warmed it by 2 degrees"


def assess(client: Scripted, *expectations: str, **options: Any) -> Assessment:
    return run(Assessor(client, **options).assess(RECORD, expectations or ("it is warm",), intent="it works"))


def test_all_expectations_in_one_call() -> None:
    client = Scripted(verdicts(verdict(2, False), verdict(1, True, QUOTE)))
    found = assess(client, "it is warm", "it is short")
    assert [(one.met, one.evidence) for one in found.judgements] == [(True, [QUOTE]), (False, [])]
    assert [one.reason for one in found.judgements] == ["so it is"] * 2
    assert (found.usage.input_tokens, found.usage.output_tokens) == (10, 2)
    (words,) = client.words
    for number, expectation in enumerate(("it is warm", "it is short"), 1):
        assert re.search(rf"^Expectation {number}:\n<<<data (\w+)\n{expectation}\n\1 data>>>$", words, re.MULTILINE)
    assert "it works" in words
    assert client.calls[0].schema is not None


def test_one_call_each() -> None:
    def answer(call: Any) -> Any:
        return verdicts(verdict(1, "\nit is warm\n" in call.prompt, QUOTE))

    client = Scripted(answer)
    found = assess(client, "it is warm", "it is short", each=True)
    assert [one.met for one in found.judgements] == [True, False]
    assert len(client.calls) == 2
    assert found.usage.input_tokens == 20


def test_nothing_is_asked_about_nothing() -> None:
    client = Scripted({})
    assert run(Assessor(client).assess(RECORD, [])).judgements == []
    assert client.calls == []


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("I think it passed", "not a JSON object"),
        (None, "not a JSON object"),
        ([verdict()], "not a JSON object"),
        ({}, "no list of objects"),
        ({"verdicts": "yes"}, "no list of objects"),
        ({"verdicts": [True]}, "no list of objects"),
        (verdicts(), "exactly once"),
        (verdicts(verdict(1), verdict(1)), "exactly once"),
        (verdicts(verdict(1), verdict(2)), "exactly once"),
        (verdicts(verdict(2)), "exactly once"),
        (verdicts(verdict(number=True)), "no whole number"),
        (verdicts(verdict(number="1")), "no whole number"),
        (verdicts(verdict(met="true")), "`met` of number 1"),
        (verdicts(verdict(met=1)), "`met` of number 1"),
        (verdicts({"number": 1, "reason": "x", "absence": True}), "`met` of number 1"),
        (verdicts(verdict(reason=" ")), "no `reason`"),
        (verdicts(verdict(evidence="text")), "`evidence`"),
        (verdicts(verdict(evidence=[1])), "`evidence`"),
        (verdicts(verdict(absence="yes")), "`absence`"),
        (verdicts(verdict(1, True, "warmed it by 3 degrees")), "the record does not contain"),
        (verdicts(verdict(1, True, "WARMED it")), "the record does not contain"),
        (verdicts(verdict(1, True, "")), "the record does not contain"),
        (verdicts(verdict(1, True, QUOTE, "made up")), "the record does not contain"),
        (verdicts(verdict(1, True, absence=False)), "no quotation"),
        (verdicts(verdict(1, False, absence=False)), "no quotation"),
        (verdicts(verdict(1, True, "made up", absence=True)), "the record does not contain"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_once_more(answer: Any, complaint: str) -> None:
    corrected = Scripted(answer, verdicts(verdict(1, True, QUOTE)))
    assert [one.met for one in assess(corrected).judgements] == [True]
    assert complaint in corrected.words[1]
    assert "could not be used" not in corrected.words[0]
    stubborn = Scripted(answer)
    (judgement,) = assess(stubborn).judgements
    assert (judgement.met, judgement.score, judgement.judged) == (None, None, False)
    assert complaint in judgement.reason
    assert len(stubborn.calls) == 2


def test_one_bad_quotation_leaves_the_others_judged() -> None:
    found = assess(Scripted(verdicts(verdict(1, True, QUOTE), verdict(2, True, "made up"))), "a", "b")
    assert [one.met for one in found.judgements] == [True, None]


def test_evidence_may_be_left_out_if_it_is_about_absence() -> None:
    found = assess(Scripted(verdicts({"number": 1, "reason": "nothing like it", "met": False, "absence": True})))
    assert found.judgements[0].met is False


@pytest.mark.parametrize("error", [RoleError("judge: connection refused"), WrongAnswer("judge: connection refused")])
def test_a_judge_that_gives_no_answer_leaves_things_unjudged(error: Exception) -> None:
    found = assess(Scripted(error), "a", "b")
    assert [one.met for one in found.judgements] == [None, None]
    assert "connection refused" in found.judgements[0].reason


@pytest.mark.parametrize(
    ("score", "result"), [(0.85, 0.85), (1, 1.0), (0, 0.0), (1.1, None), (-0.1, None), ("1", None), (True, None)]
)
def test_a_criterion_is_scored(score: Any, result: float | None) -> None:
    client = Scripted(scored(score, QUOTE))
    (judgement,) = run(Assessor(client).score(RECORD, "factual_accuracy")).judgements
    assert judgement.score == result
    assert RUBRICS["factual_accuracy"] in client.words[0]
    assert "Judge text 2 of the record" in client.words[0]


def test_the_documented_criteria_have_a_rubric() -> None:
    assert set(RUBRICS) >= {"factual_accuracy", "completeness", "coherence", "relevance"}  # named by document 1
    assert rubric("Factual accuracy") == rubric("factual-accuracy") == RUBRICS["factual_accuracy"]
    assert rubric("is it polite?") == "is it polite?"


@pytest.mark.parametrize(
    ("answers", "score"),
    [
        ((0.2, 0.9, 0.8), 0.8),
        ((0.2, 0.4), 0.3),
        ((0.5, 0.7, RoleError("gone")), 0.6),
        ((0.5, RoleError("gone")), None),
    ],
)
def test_the_median_of_the_scores_decides(answers: tuple[Any, ...], score: float | None) -> None:
    client = Scripted(*[scored(one, QUOTE) if isinstance(one, float) else one for one in answers])
    (judgement,) = run(Assessor(client).score(RECORD, "x", votes=len(answers))).judgements
    assert judgement.score == (pytest.approx(score) if score is not None else None)
    assert len(judgement.votes) == len(answers)


@pytest.mark.parametrize(
    ("scores", "threshold", "is_judged"),
    [
        ((0.9, 0.5, None), 0.7, False),
        ((0.9, 0.8, None), 0.7, True),
        ((0.2, 0.1, None), 0.7, True),
        ((1.0, 1.0, 0.0, None), 0.7, False),
        ((1.0, 0.5), 0.7, False),  # the median, 0.75, would pass with one vote of two
        ((0.8, 0.1), 0.7, False),  # the median, 0.45, would fail with one vote of two
        ((0.8, 0.7), 0.7, True),
        ((0.6, 0.1), 0.7, True),
        ((1.0, 1.0, 0.6, 0.0), 0.7, False),
        ((1.0, 0.7, 0.7, 0.0), 0.7, True),
    ],
)
def test_a_median_without_a_majority_on_its_side_of_the_threshold_is_unjudged(
    scores: tuple[float | None, ...], threshold: float, is_judged: bool
) -> None:
    answers = [RoleError("down") if one is None else scored(one, QUOTE) for one in scores]
    found = run(Assessor(Scripted(*answers)).score(RECORD, "x", threshold=threshold, votes=len(scores)))
    (judgement,) = found.judgements
    assert judgement.judged is is_judged
    assert ("no majority" in judgement.reason) is not is_judged


@given(votes=st.lists(st.none() | st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.9, 1.0]), min_size=2, max_size=7))
def test_a_score_passes_or_fails_only_with_a_majority_of_all_votes(votes: list[float | None]) -> None:
    found = outcome_of_votes([Judgement(score=one) for one in votes], 0.7)
    passing = sum(one is not None and one >= 0.7 for one in votes)
    failing = sum(one is not None and one < 0.7 for one in votes)
    outcome = None if found.score is None else found.score >= 0.7
    assert outcome == (True if passing * 2 > len(votes) else False if failing * 2 > len(votes) else None)


def test_a_model_that_is_unfit_to_judge_is_refused_unless_allowed() -> None:
    client = Scripted(verdicts(verdict(1, True, QUOTE)))
    client.unfit_to_judge = "it is no better than a coin"
    with pytest.raises(ConfigurationError, match="no better than a coin") as caught:
        Assessor(client)
    assert caught.value.hint is not None
    assert assess(client, allow_unfit=True).judgements[0].met is True


@pytest.mark.parametrize(
    ("own", "used", "same"),
    [
        ("gpt-5", ["gpt-5"], True),
        ("gpt-5", ["openai/GPT-5-2026-01-02"], True),
        ("claude-x-latest", ["claude-x"], True),
        ("gpt-5", ["gpt-5-mini"], False),
        ("gpt-5", [], False),
        (None, ["None"], False),
    ],
)
def test_a_judge_on_the_agents_own_model_is_warned_about(own: str | None, used: list[str], same: bool) -> None:
    client = Scripted({})
    client.model = own
    assert (Assessor(client).same_model(used) is not None) == same


def test_usable_answers_are_cached_and_others_are_not(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    try:
        good, bad = Scripted(verdicts(verdict(1, True, QUOTE))), Scripted("nonsense")
        first = assess(good, cache=cache)
        again = assess(good, cache=cache)
        assert len(good.calls) == 1
        assert first.judgements == again.judgements
        assert (first.usage.input_tokens, again.usage.input_tokens) == (10, None)
        assess(good, "something else", cache=cache)
        assert len(good.calls) == 2
        for _ in range(2):
            assert assess(bad, "another", cache=cache).judgements[0].met is None
        assert len(bad.calls) == 4
    finally:
        cache.close()


def test_a_cached_answer_that_was_edited_is_asked_for_again(tmp_path: Path) -> None:
    client = Scripted(verdicts(verdict(1, True, QUOTE)))
    for _ in range(2):
        cache = Cache(tmp_path)
        try:
            assert assess(client, cache=cache).judgements[0].met is True
        finally:
            cache.close()
        (file,) = tmp_path.iterdir()
        file.write_text(file.read_text().replace(QUOTE, "made up"))
    assert len(client.calls) == 2


def test_what_is_judged_of_the_same_record_is_kept_apart(tmp_path: Path) -> None:
    texts = {"a.txt": "a fine text", "b.txt": "a poor text"}
    client = Scripted(scored(0.9, "a fine text"), scored(0.1, "a poor text"), scored(0.5, QUOTE))

    async def score_each() -> list[float | None]:
        assessor = Assessor(client, cache=Cache(tmp_path))
        abouts: list[dict[str, str] | None] = [{name: text} for name, text in texts.items()]
        seen = talk(("Warm the ocean.", "I warmed it by 2 degrees."))
        records = [make_record(seen, files=texts, about=about) for about in (*abouts, None)]
        return [(await assessor.score(record, "quality")).judgements[0].score for record in records]

    assert run(score_each()) == [0.9, 0.1, 0.5]
    assert run(score_each()) == [0.9, 0.1, 0.5]
    assert len(client.calls) == 3


def test_votes_are_kept_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    try:
        client = Scripted(scored(0.9, QUOTE), scored(0.8, QUOTE), scored(0.1, QUOTE))
        for _ in range(2):
            (judgement,) = run(Assessor(client, cache=cache).score(RECORD, "x", threshold=0.7, votes=3)).judgements
            assert sorted(one.score or 0 for one in judgement.votes) == [0.1, 0.8, 0.9]
        assert len(client.calls) == 3
    finally:
        cache.close()


def test_a_recorded_judge_is_replayed_without_being_asked(tmp_path: Path) -> None:
    def judged(mode: Any, client: Scripted, run_number: int = 1) -> Assessment:
        cassette = Cassette(tmp_path, mode)
        try:
            return run(Assessor(client, cassette=cassette).assess(RECORD, ["warm", "short"], run=run_number))
        finally:
            cassette.close()

    # The second one could not be judged when it was recorded, and so it is when it is played back.
    said = Scripted(verdicts(verdict(1, True, QUOTE), verdict(2, True, "made up")))
    recorded = judged("record", said)
    silent = Scripted(RoleError("must not be asked"))
    played = judged("replay", silent)
    assert silent.calls == []
    assert played == recorded
    assert [one.met for one in played.judgements] == [True, None]
    other_run = judged("replay", silent, run_number=2)
    assert [one.met for one in other_run.judgements] == [None, None]
    assert "gave no answer" in other_run.judgements[0].reason


def test_the_nonce_is_not_part_of_what_is_recorded(tmp_path: Path) -> None:
    client = Scripted(verdicts(verdict(1, True, QUOTE)))
    cassette = Cassette(tmp_path, "record")
    run(Assessor(client, cassette=cassette).assess(RECORD, ["warm"]))
    cassette.close()
    nonce = client.words[0].partition("<<<data ")[2][:16]
    assert len(nonce) == 16
    assert all(nonce not in one.read_text() for one in tmp_path.iterdir())


def test_a_long_transcript_is_judged_by_what_was_shown() -> None:
    record = make_record(talk(("q", "begin " + "x " * 50_000 + "hidden " + "x " * 50_000 + "end")))
    seen = run(Assessor(Scripted(verdicts(verdict(1, True, "x end")))).assess(record, ["a"]))
    assert seen.judgements[0].met is True
    assert "cut to" in seen.notes[0]
    unseen = run(Assessor(Scripted(verdicts(verdict(1, True, "hidden")))).assess(record, ["a"]))
    assert unseen.judgements[0].met is None


def test_the_payload_is_data() -> None:
    client = Scripted(verdicts(verdict(1, True, QUOTE)))
    assess(client, "it is warm")
    payload = json.loads(json.dumps(client.calls[0].payload))
    assert payload["expectations"] == [{"number": 1, "text": "it is warm"}]
    assert payload["record"][1]["text"] == "I warmed it by 2 degrees."


def test_marks_are_neither_recorded_nor_cached_and_a_wrong_one_stays_wrong_when_replayed(tmp_path: Path) -> None:
    marks: list[str] = []

    def answers(wrong: bool) -> FunctionClient:
        def judge(asked: dict[str, Any]) -> str:
            marks.append("0123456789abcdef" if wrong else asked["mark"])
            return json.dumps({"mark": marks[-1], **verdicts(verdict(1, True, QUOTE))})

        return FunctionClient(judge, "house.judge")

    def judged(client: FunctionClient, mode: Any, expectation: str, cache: Cache | None = None) -> Judgement:
        cassette = Cassette(tmp_path / "tape", mode)
        try:
            assessor = Assessor(client, cassette=cassette, cache=cache)
            return run(assessor.assess(RECORD, [expectation])).judgements[0]
        finally:
            cassette.close()

    cache = Cache(tmp_path / "cache")
    try:
        assert judged(answers(False), "record", "it is warm", cache).met is True
        assert judged(answers(True), "record", "it is cold", cache).met is None
        assert len(marks) == 3  # the wrong one was asked for once more
        assert judged(answers(True), "replay", "it is warm").met is True
        refused = judged(answers(False), "replay", "it is cold")
        assert refused.met is None
        assert "does not have the `mark`" in refused.reason
        assert len(marks) == 3
        kept = "".join(one.read_text() for one in tmp_path.rglob("*.jsonl"))
        assert QUOTE in kept
        assert marks[0] not in kept
    finally:
        cache.close()
