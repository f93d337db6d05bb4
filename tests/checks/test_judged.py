"""Checks that somebody else decides: `llm_eval`, `agent`, expectations in words."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.checks.conftest import make_assertion
from tests.roles.support.doubles import Scripted, scored, verdict, verdicts

from atp.base.errors import ConfigurationError
from atp.checks.agent_files import LARGEST_SHOWN
from atp.checks.case_checks import check_case
from atp.checks.evidence import Evidence
from atp.checks.judged import MOST_FILES
from atp.checks.run_check import run_check
from atp.roles.ask import RoleError
from atp.roles.judge.assessor import Assessor
from atp.roles.judge.judges import HOW_TO_SET, Judges
from atp.roles.judge.validator import Validator
from atp.roles.record import EARLIER
from atp.suite.result import Artifact, Event, ToolCall, Transcript, Turn, Verdict

MakeEvidence = Callable[..., Evidence]
ANSWER = "I warmed it by 2 degrees."


def judges(assessor: Scripted | None = None, **named: Scripted) -> Judges:
    """Judges that answer as scripted: the one without a name, and those that assertions name."""

    def find(name: str) -> Scripted:
        if name not in named:
            raise ConfigurationError(f"there is no agent `{name}`", "look in agents/")
        return named[name]

    def find_assessor(name: str | None) -> Assessor:
        if name is None and assessor is None:
            raise ConfigurationError("no model is set for the judge", HOW_TO_SET)
        return Assessor(assessor if name is None and assessor is not None else find(str(name)))

    return Judges(assessor=find_assessor, validator=lambda use: Validator(find(use.removeprefix("agents:"))))


def with_judge(evidence: Evidence, judge: Judges | None) -> Evidence:
    evidence.judge = judge
    return evidence


def judged(given: dict[str, Any], evidence: Evidence, judge: Judges | None) -> Verdict:
    assertion = make_assertion(given)
    return asyncio.run(run_check(assertion, with_judge(evidence, judge)))


def case_verdicts(evidence: Evidence, judge: Judges | None) -> list[Verdict]:
    return asyncio.run(check_case(evidence.case, with_judge(evidence, judge)))


@pytest.mark.parametrize(
    ("given", "score", "outcome"),
    [
        ({}, 0.7, "passed"),
        ({}, 0.69, "failed"),
        ({"threshold": 0.9}, 0.8, "failed"),
        ({"threshold": 0}, 0.0, "passed"),
        ({"negate": True}, 0.8, "failed"),
        ({"negate": True}, 0.2, "passed"),
        ({}, "high", "unjudged"),
        ({"negate": True}, "high", "unjudged"),
    ],
)
def test_llm_eval(evidence: MakeEvidence, given: dict[str, Any], score: Any, outcome: str) -> None:
    judge = judges(Scripted(scored(score, "warmed it")))
    found = judged({"type": "llm_eval", "criteria": "completeness", **given}, evidence(ANSWER), judge)
    assert (found.outcome, found.judged, found.type) == (outcome, True, "llm_eval")
    if outcome != "unjudged":
        assert found.score == pytest.approx(1 - score if given.get("negate") else score)
        assert found.evidence == ["warmed it"]
        assert "so it is" in found.message
    assert judge.usage.input_tokens == (10 if outcome != "unjudged" else 20)


def test_a_message_replaces_the_text_of_a_failure(evidence: MakeEvidence) -> None:
    given = {"type": "llm_eval", "criteria": "x", "message": "be nicer", "critical": True}
    found = judged(given, evidence(ANSWER), judges(Scripted(scored(0.1, "warmed"))))
    assert (found.message, found.critical) == ("be nicer", True)


def test_votes_are_shown(evidence: MakeEvidence) -> None:
    client = Scripted(scored(0.2, "warmed"), scored(0.8, "warmed"), scored(0.9, "warmed"))
    found = judged({"type": "llm_eval", "criteria": "x", "votes": 3}, evidence(ANSWER), judges(client))
    assert (found.outcome, found.score) == ("passed", 0.8)
    assert sorted((one.score, one.outcome) for one in found.parts) == [
        (0.2, "failed"),
        (0.8, "passed"),
        (0.9, "passed"),
    ]


def test_another_judge_may_be_named(evidence: MakeEvidence) -> None:
    judge = judges(Scripted(scored(0.0, "warmed")), other=Scripted(scored(1.0, "warmed")))
    given = {"type": "llm_eval", "criteria": "x", "judge": "other"}
    assert judged(given, evidence(ANSWER), judge).passed
    found = judged({**given, "judge": "nobody"}, evidence(ANSWER), judge)
    assert found.outcome == "unjudged"
    assert "look in agents/" in found.message


def test_an_artifact_may_be_judged(evidence: MakeEvidence, folder: Callable[..., Any]) -> None:
    client = Scripted(scored(0.9, "Dear reader"))
    seen = evidence("done", workspace=folder({"out/a.md": "Dear reader", "b.bin": b"\xff\xfe"}))
    found = judged({"type": "llm_eval", "criteria": "x", "path": "out/*.md"}, seen, judges(client))
    assert (found.outcome, found.where) == ("passed", "artifact out/*.md")
    (words,) = client.words
    assert "out/a.md\nDear reader" in words
    assert "not text" in words
    number = words.partition("Judge text ")[2].split()[0]
    assert f"Text {number}. A file that the agent made" in words


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", "text".encode("utf-16-le"), b"x" * (LARGEST_SHOWN + 1)], ids=["bytes", "utf-16", "large"]
)
@pytest.mark.parametrize("negate", [False, True])
def test_an_artifact_that_no_judge_can_be_shown_is_unjudged(
    evidence: MakeEvidence, folder: Callable[..., Any], content: bytes, negate: bool
) -> None:
    client = Scripted(scored(0.9, "out/a.md"))
    seen = evidence("done", workspace=folder({"out/a.md": content}))
    given = {"type": "llm_eval", "criteria": "x", "path": "out/a.md", "negate": negate}
    found = judged(given, seen, judges(client))
    assert (found.outcome, client.calls) == ("unjudged", [])
    assert "`out/a.md` can't be judged" in found.message


def test_more_files_than_a_judge_can_be_shown_are_unjudged(evidence: MakeEvidence) -> None:
    client = Scripted(scored(0.9, "some text"))
    made = [Artifact(name=f"{number}.md", text="some text") for number in range(MOST_FILES + 1)]
    given = {"type": "llm_eval", "criteria": "x", "path": "*.md"}
    assert judged(given, evidence("x", artifacts=made), judges(client)).outcome == "unjudged"
    assert judged(given, evidence("x", artifacts=made[1:]), judges(client)).outcome == "passed"


@pytest.mark.parametrize("path", [None, "a.md"])
def test_every_version_of_a_file_is_shown(evidence: MakeEvidence, folder: Callable[..., Any], path: str | None) -> None:
    """What the agent hands over must not hide behind a file or an older artifact of the same name."""
    client = Scripted(scored(0.9, "the third"))
    made = [Artifact(name=name, text=text) for name, text in (("a.md", "the first"), ("./a.md", "the second"))]
    made += [Artifact(name="a.md", text="the second"), Artifact(name="a.md", text="the third")]
    seen = evidence("done", workspace=folder({"a.md": "in the workspace"}), artifacts=made)
    given = {"type": "llm_eval", "criteria": "x"} | ({"path": path} if path else {})
    assert judged(given, seen, judges(client)).outcome == "passed"
    (words,) = client.words
    for name, text in (
        ("a.md", "in the workspace"),
        ("a.md (version 2)", "the first"),
        ("a.md (version 3)", "the second"),
        ("a.md (version 4)", "the third"),
    ):
        assert words.count(f"\n{name}\n{text}\n") == 1
    assert words.count("A file that the agent made") == 4
    assert words.partition("Judge text ")[2].count(", text ") == (3 if path else 0)


def test_the_judge_is_told_of_files_that_the_agent_only_names(
    evidence: MakeEvidence, folder: Callable[..., Any]
) -> None:
    client = Scripted(scored(0.9, "out/b.md"))
    made = [Artifact(name=f"out/{name}.md", kind="reference") for name in ("a", "b")]
    seen = evidence("done", workspace=folder({"out/a.md": "Dear reader"}), artifacts=made)
    assert judged({"type": "llm_eval", "criteria": "x"}, seen, judges(client)).outcome == "passed"
    (words,) = client.words
    assert "out/a.md\nDear reader" in words
    assert words.count("the agent named it and did not send it") == 1


def test_a_score_that_passes_a_low_threshold_needs_evidence(evidence: MakeEvidence) -> None:
    given = {"type": "llm_eval", "criteria": "x", "threshold": 0.3}
    assert judged(given, evidence(ANSWER), judges(Scripted(scored(0.4)))).outcome == "unjudged"
    assert judged(given, evidence(ANSWER), judges(Scripted(scored(0.4, ANSWER)))).outcome == "passed"


def turned_round(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The assertion so that it passes when it would fail: negated by itself and by groups."""
    return [
        {**given, "negate": True},
        {"type": "none_of", "assertions": [given]},
        {"type": "all_of", "negate": True, "assertions": [given]},
    ]


def test_an_artifact_that_is_not_there_never_passes(evidence: MakeEvidence) -> None:
    client = Scripted(scored(0.9, "warmed"))
    given = {"type": "llm_eval", "criteria": "x", "path": "a.md"}
    assert judged(given, evidence(ANSWER), judges(client)).outcome == "failed"
    for negated in turned_round(given):
        assert judged(negated, evidence(ANSWER), judges(client)).outcome == "unjudged"
    assert client.calls == []


@pytest.mark.parametrize(
    ("criteria", "score", "outcome"),
    [
        ("it is rude", scored(0.1, "Warm it."), "unjudged"),  # only the user's words
        ("it is rude", scored(0.1, ANSWER), "passed"),
        ("it is rude", scored(0.1, absence=True), "passed"),
        ("it names no price", scored(0.1, absence=True), "unjudged"),  # turned round, a price must be there
        ("it names no price", scored(0.1, ANSWER), "passed"),
        ("it is rude", scored(0.9, "Warm it."), "failed"),
    ],
)
def test_a_negated_score_in_the_agents_favour_needs_evidence(
    evidence: MakeEvidence, criteria: str, score: dict[str, Any], outcome: str
) -> None:
    for given in turned_round({"type": "llm_eval", "criteria": criteria}):
        seen = evidence(turns=[Turn(turn=1, input="Warm it.", output=ANSWER)])
        assert judged(given, seen, judges(Scripted(score))).outcome == outcome


def test_the_judge_is_told_of_tool_calls_that_the_agent_did_not_describe(evidence: MakeEvidence) -> None:
    client = Scripted(verdicts(verdict(1, False)))
    seen = evidence(ANSWER, case={"expectations": ["nothing is deleted"], "messages": "Warm it."})
    case_verdicts(seen, judges(client))
    assert "not known" not in client.words[0]
    seen.transcript.usage.tool_calls = 3
    del seen.unreported_calls
    client = Scripted(verdicts(verdict(1, False)))
    case_verdicts(seen, judges(client))
    assert "the agent says it made 3 tool calls but told of none" in client.words[0]


def test_the_judge_sees_what_was_done(evidence: MakeEvidence, folder: Callable[..., Any]) -> None:
    client = Scripted(verdicts(verdict(1, True, "seas warmed")))
    seen = evidence(
        calls=[ToolCall(name="warm_ocean", arguments={"by": 2}, result="3 seas warmed")],
        turns=[Turn(turn=1, input="Warm it.", output="Done.")],
        case={"expectations": ["the ocean is no longer cold"], "intent": "It obeys.", "messages": "Warm it."},
        workspace=folder({"log.txt": "all is well", "seed.txt": "given"}, seeded={"seed.txt"}),
        artifacts=[Artifact(name="plan", kind="structured", data={"steps": 2})],
    )
    (found,) = case_verdicts(seen, judges(client))
    assert found.passed
    (words,) = client.words
    for shown in (
        "Warm it.",
        "Done.",
        "warm_ocean",
        '{"by": 2}',
        "3 seas warmed",
        "It obeys.",
        "all is well",
        '"steps":2',
    ):
        assert shown in words
    assert "given" not in words.split("The record:")[1]


def test_the_judge_sees_what_befores_did_marked_as_such(evidence: MakeEvidence) -> None:
    client = Scripted(verdicts(verdict(1, True, "seas warmed")))
    seen = evidence("Done.", case={"expectations": ["the ocean is no longer cold"]})
    seen.earlier = Transcript(tool_calls=[ToolCall(name="warm_ocean", arguments={"by": 2}, result="3 seas warmed")])
    (found,) = case_verdicts(seen, judges(client))
    assert found.passed
    before, _, after = client.words[0].split("The record:")[1].partition("warm_ocean")
    assert EARLIER in before
    assert "3 seas warmed" in after


def test_a_judge_may_be_asked_about_the_cases_own_turns(evidence: MakeEvidence) -> None:
    client = Scripted(verdicts(verdict(1, True, "Done")), verdicts(verdict(1, True, "seas warmed")))
    expectations = ["it is done politely (turns: own)", "the ocean is warm now", "do_a was not called (Turns: own)."]
    seen = evidence("Done.", case={"expectations": expectations})
    seen.earlier = Transcript(tool_calls=[ToolCall(name="warm_ocean", result="3 seas warmed"), ToolCall(name="do_a")])
    found = case_verdicts(seen, judges(client))
    assert [(one.name, one.outcome) for one in found] == [(words, "passed") for words in expectations]
    own, whole = client.words
    assert "warm_ocean" in whole
    assert "warm_ocean" not in own
    assert "it is done politely" in own
    assert "turns: own" not in own


def test_only_what_has_no_exact_meaning_is_judged(evidence: MakeEvidence) -> None:
    client = Scripted(verdicts(verdict(1, False, "warmed it"), verdict(2, True, "2 degrees")))
    expectations = [
        "it is short",
        "the warm_ocean function was called",
        "it gives a number",
        "the cool_ocean function was called",
    ]
    seen = evidence(ANSWER, calls=["warm_ocean"], case={"expectations": expectations})
    found = case_verdicts(seen, judges(client))
    assert [(one.type, one.name, one.outcome, one.judged) for one in found] == [
        ("expectation", "it is short", "failed", True),
        ("expectation", "the warm_ocean function was called", "passed", False),
        ("expectation", "it gives a number", "passed", True),
        ("expectation", "the cool_ocean function was called", "failed", False),
    ]
    assert found[0].evidence == ["warmed it"]
    assert len(client.calls) == 1
    assert "warm_ocean function" not in client.words[0]


def test_no_judge_is_needed_for_exact_expectations(evidence: MakeEvidence) -> None:
    seen = evidence(ANSWER, calls=["warm_ocean"], case={"expectations": ["the warm_ocean function was called"]})
    assert [one.outcome for one in case_verdicts(seen, None)] == ["passed"]


def test_judged_checks_are_done_after_exact_ones_and_in_spite_of_them(evidence: MakeEvidence) -> None:
    client = Scripted(scored(0.9, "warmed"))
    assertions = [{"type": "llm_eval", "criteria": "x"}, {"type": "contains", "value": "nothing like it"}]
    found = case_verdicts(evidence(ANSWER, case={"assertions": assertions}), judges(client))
    assert [(one.type, one.outcome) for one in found] == [("llm_eval", "passed"), ("contains", "failed")]


@pytest.mark.parametrize("judge", [None, judges()])
def test_without_a_judge_it_is_unjudged_and_says_how_to_set_one(evidence: MakeEvidence, judge: Judges | None) -> None:
    case = {"expectations": ["it is short"], "assertions": [{"type": "llm_eval", "criteria": "x", "negate": True}]}
    found = case_verdicts(evidence(ANSWER, case=case), judge)
    assert [one.outcome for one in found] == ["unjudged", "unjudged"]
    assert all("--assessor" in one.message and "atp.toml" in one.message for one in found)


def test_a_judge_that_breaks_leaves_expectations_unjudged(evidence: MakeEvidence) -> None:
    for error in (RoleError("connection refused"), ZeroDivisionError("our own bug")):
        seen = evidence(ANSWER, case={"expectations": ["it is short", "it is kind"]})
        found = case_verdicts(seen, judges(Scripted(error)))
        assert [one.outcome for one in found] == ["unjudged", "unjudged"]
        assert str(error) in found[0].message


def test_a_cancelled_judge_is_cancelled(evidence: MakeEvidence) -> None:
    class Hangs(Scripted):
        async def ask(self, call: Any) -> Any:
            await asyncio.sleep(60)

    case = {"expectations": ["it is short"], "assertions": [{"type": "llm_eval", "criteria": "x"}]}
    seen = with_judge(evidence(ANSWER, case=case), judges(Hangs()))

    async def impatient() -> None:
        await asyncio.wait_for(check_case(seen.case, seen), 0.2)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())


def test_a_judge_on_the_agents_own_model_and_a_cut_record_are_warned_about(evidence: MakeEvidence) -> None:
    client = Scripted(verdicts(verdict(1, True, "xxx"), verdict(2, True, "xxx")))
    client.model = "gpt-x"
    events = [Event(type="llm_request", payload={"model": "openai/gpt-x"})]
    judge = judges(client)
    case_verdicts(evidence("x" * 50_000, case={"expectations": ["a b", "c d"]}, events=events), judge)
    assert len(judge.warnings) == 2
    assert "cut to" in judge.warnings[0]
    assert "own model" in judge.warnings[1]


@pytest.mark.parametrize(
    ("answer", "negate", "outcome"),
    [
        ({"passed": True, "score": 0.9}, False, "passed"),
        ({"passed": False, "reason": "rude"}, False, "failed"),
        ({"passed": False}, True, "passed"),
        ({"passed": True, "score": 3}, False, "unjudged"),
        ("great", True, "unjudged"),
    ],
)
def test_a_validator_of_the_users(evidence: MakeEvidence, answer: Any, negate: bool, outcome: str) -> None:
    client = Scripted(answer, own=True)
    judge = judges(my=client)
    options = {"mode": "strict", "metadata": {"criteria": "polite"}}
    given = {"type": "agent", "use": "agents:my", "options": options, "negate": negate}
    found = judged(given, evidence(ANSWER, case={"expected": "warm"}), judge)
    assert (found.outcome, found.judged, found.where) == (outcome, True, "agents:my")
    call, *again = client.calls
    assert len(again) == (answer == "great")
    assert call.payload["output"] == ANSWER
    assert call.payload["criteria"] == "polite"
    assert call.payload["expected"] == "warm"
    assert call.options == {"mode": "strict"}
    assert judge.usage.input_tokens == 10 * len(client.calls)


@pytest.mark.parametrize(
    ("given", "criteria"),
    [
        ({"value": "is polite"}, "is polite"),
        ({"value": "is polite", "options": {"metadata": {"criteria": "is short"}}}, "is short"),
        ({"value": {"tone": "warm"}}, {"tone": "warm"}),
        ({}, None),
    ],
)
def test_a_validator_looks_for_the_value_if_there_are_no_other_criteria(
    evidence: MakeEvidence, given: dict[str, Any], criteria: Any
) -> None:
    client = Scripted({"passed": True}, own=True)
    assert judged({"type": "agent", "use": "agents:my", **given}, evidence(ANSWER), judges(my=client)).passed
    (call,) = client.calls
    assert call.payload["criteria"] == criteria
    assert call.payload.get("expected") == given.get("value")


def test_the_value_of_a_validator_is_its_criteria_if_it_has_no_others(evidence: MakeEvidence) -> None:
    client = Scripted({"passed": True}, {"passed": True}, own=True)
    given = {"type": "agent", "use": "agents:my", "value": "be kind"}
    judged(given, evidence(ANSWER), judges(my=client))
    judged({**given, "options": {"metadata": {"criteria": "polite"}}}, evidence(ANSWER), judges(my=client))
    assert [call.payload["criteria"] for call in client.calls] == ["be kind", "polite"]


def test_a_validator_that_is_not_there_is_unjudged(evidence: MakeEvidence) -> None:
    found = judged({"type": "agent", "use": "agents:no.one"}, evidence(ANSWER), judges())
    assert found.outcome == "unjudged"
    assert "no.one" in found.message


def test_a_turn_of_a_dialogue_is_judged_by_what_was_said_so_far(evidence: MakeEvidence) -> None:
    client = Scripted(scored(0.9, "first answer"))
    turns = [Turn(turn=1, input="a", output="first answer"), Turn(turn=2, input="b", output="second answer")]
    seen = with_judge(evidence(turns=turns), judges(client)).of_turn(1)
    assert judged({"type": "llm_eval", "criteria": "x"}, seen, seen.judge).passed
    assert "second answer" not in client.words[0]
