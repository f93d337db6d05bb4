"""Cases that an agent makes: how it is asked, what is taken for an answer, and that nothing wrong gets in."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.asking import asking
from tests.roles.support.doubles import Scripted

from atp.base.diagnostics import LoadError
from atp.roles.ask import ModelClient, RoleAnswer, RoleCall, RoleClient, RoleError, WrongAnswer
from atp.roles.generate.generator import (
    BATCH,
    SPARE_CALLS,
    CasesRequest,
    GeneratedCases,
    as_jsonl,
    generate,
    read_cases,
)


def case(text: str, **more: Any) -> dict[str, Any]:
    return {"input": text, "assertions": [{"type": "contains", "value": "ok"}], **more}


def wanted(count: int = 3, **more: Any) -> CasesRequest:
    return CasesRequest(label="agents:test.gen", target_agent="expense", count=count, **more)


def made(client: RoleClient, request: CasesRequest | None = None) -> GeneratedCases:
    return asyncio.run(generate(client, request or wanted()))


def test_the_request_of_each_format() -> None:
    client = Scripted([case("a"), case("b"), case("c")])
    made(client, wanted(parameters={"focus": "edge-cases", "level": 2}))
    [call] = client.calls
    told = {"target_agent": "expense", "count": 3, "focus": "edge-cases", "level": 2}
    assert call.role == "generator"
    assert call.metadata == told
    assert call.payload == {"test_mode": "generator", **told}


def test_cases_get_ids_where_they_have_none() -> None:
    found = made(Scripted([case("a"), case("b", id="mine"), case("c", id="")]))
    assert [one["id"] for one in found.cases] == ["gen-001", "mine", "gen-003"]
    assert found.cases[1] == {"id": "mine", **case("b")}
    assert found.warnings == []
    assert found.usage.input_tokens == 10


def test_too_few_are_asked_for_again_with_the_ids_there_are() -> None:
    client = Scripted([case("a", id="x"), case("a", id="again")], [case("b", id="x"), case("c"), case("d")])
    found = made(client)
    assert client.calls[1].payload["count"] == 2
    assert client.calls[1].payload["existing"] == ["x"]
    assert [(one["id"], one["input"]) for one in found.cases] == [("x", "a"), ("x-2", "b"), ("gen-003", "c")]


def test_too_many_are_cut() -> None:
    assert len(made(Scripted([case(str(n)) for n in range(9)])).cases) == 3


def test_fewer_than_wanted_are_a_warning() -> None:
    client = Scripted([case("a")])
    found = made(client)
    assert len(client.calls) == 3
    [warning] = found.warnings
    assert warning.code == "fewer-cases"
    assert warning.message == "agents:test.gen made 1 of 3 cases"
    assert warning.file == "<generator agents:test.gen>"


def test_the_number_of_calls_has_a_bound() -> None:
    client = Scripted(lambda call: [case(f"n{len(call.payload.get('existing', []))}")])
    found = made(client, wanted(100))
    assert len(client.calls) == len(found.cases) == 100 // BATCH + SPARE_CALLS


def test_a_script_is_asked_once() -> None:
    client = Scripted([case("a")])
    assert len(made(client, wanted(again=False)).cases) == 1
    assert len(client.calls) == 1


def test_no_case_at_all_is_an_error() -> None:
    with pytest.raises(WrongAnswer, match="there is no case in its answer"):
        made(Scripted([]))
    with pytest.raises(WrongAnswer, match="the answer is no list of cases: I'd rather not"):
        made(Scripted("I'd rather not"))


def test_a_generator_that_breaks_is_an_error() -> None:
    with pytest.raises(RoleError, match="connection refused"):
        made(Scripted([case("a")], RoleError("connection refused")))


def test_an_unreadable_answer_is_asked_for_again() -> None:
    assert len(made(Scripted("hm", [case("a"), case("b"), case("c")])).cases) == 3


def test_wrong_cases_may_be_fixed_once() -> None:
    wrong = {"id": "two", "input": "b", "asertions": []}
    client = Scripted([case("a"), wrong, {"id": "three"}], [case("b", id="two"), case("c", id="three")])
    found = made(client)
    assert [one["id"] for one in found.cases] == ["gen-001", "two", "three"]
    repair = client.calls[1].payload["repair"]
    assert [one["case"]["id"] for one in repair] == ["two", "three"]
    assert "unknown key `asertions`" in repair[0]["problems"][0]
    assert client.calls[1].payload["existing"] == ["gen-001"]
    assert client.calls[1].payload["count"] == 2


def test_fixed_cases_without_ids_are_taken_in_order() -> None:
    wrong = [{"id": "one", "input": ""}, {"id": "two", "input": 5}]
    found = made(Scripted(wrong, [case("a"), case("b")]), wanted(2))
    assert [(one["id"], one["input"]) for one in found.cases] == [("one", "a"), ("two", "b")]


@pytest.mark.parametrize("answer", [[{"id": "two", "input": ""}], "no", RoleError("gone")])
def test_what_stays_wrong_is_an_error_that_names_the_case(answer: Any) -> None:
    client = Scripted([case("a"), {"id": "two", "input": "b", "skip": "perhaps"}], answer)
    with pytest.raises(LoadError) as raised:
        made(client, wanted(2))
    [one] = raised.value.diagnostics
    assert one.message.startswith("generated case `two`: ")
    assert (one.file, one.line) == ("<generator agents:test.gen>", 2)
    assert len(client.calls) == 2


def test_a_script_with_wrong_cases_is_not_asked_again() -> None:
    client = Scripted([{"id": 7, "input": "a"}])
    with pytest.raises(LoadError, match="generated case `7`"):
        made(client, wanted(1, again=False))
    assert len(client.calls) == 1


A, B = json.dumps(case("a")), json.dumps(case("b"))


@pytest.mark.parametrize(
    "text",
    [
        f"[{A}, {B}]",
        f'{{"cases": [{A}, {B}]}}',
        f'{{"tests": [{A}, {B}]}}',
        f"{A}\n{B}\n",
        f"// first\n{A}\n\n  # second\n{B}",
        f"{json.dumps(case('a'), indent=2)}\n{json.dumps(case('b'), indent=2)}",
        f"\n```jsonl\n{A}\n{B}\n```\n",
        f"```json\n[{A}, {B}]\n```",
    ],
)
def test_answers_of_all_forms(text: str) -> None:
    assert read_cases(RoleAnswer(text=text), "x") == [case("a"), case("b")]


def test_one_case_is_a_list_of_one() -> None:
    assert read_cases(RoleAnswer(text=A), "x") == [case("a")]
    assert read_cases(RoleAnswer(data=case("a")), "x") == [case("a")]


@pytest.mark.parametrize(
    "text",
    [
        *("", "no", "42", '{"a": 1}', "[1, 2]", '[["a"]]', "[NaN]", '{"cases": "many"}'),
        f"Here you are: [{A}, {B}]",
        f"Here you are:\n```jsonl\n{A}\n{B}\n```",
        f"```json\n[{A}]\n```\n```json\n[{B}]\n```",
    ],
)
def test_unusable_answers(text: str) -> None:
    with pytest.raises(WrongAnswer):
        read_cases(RoleAnswer(text=text), "x")


@given(st.lists(st.dictionaries(st.sampled_from(["input", "name", "tags"]), st.text(), min_size=1), min_size=2))
def test_lines_are_read_as_they_were_written(cases: list[dict[str, Any]]) -> None:
    assert read_cases(RoleAnswer(text=as_jsonl(cases)), "x") == cases


def test_half_a_character_is_an_error_of_its_case() -> None:
    with pytest.raises(LoadError, match="generated case `gen-001`"):
        made(Scripted([case("a\ud800")]), wanted(1))


def test_many_cases_are_collected() -> None:
    found = made(Scripted([case(f"n{n}") for n in range(5000)]), wanted(5000))
    assert len({one["id"] for one in found.cases}) == 5000


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_through_a_model(wire: str) -> None:
    async def ask() -> None:
        answers = [{"cases": [case("a", id="one")]}, {"cases": [case("b", id="two")]}]
        async with asking(wire, answers) as asked:
            found = await generate(ModelClient(asked.model), wanted(2, parameters={"focus": "dates"}))
            assert [one["id"] for one in found.cases] == ["one", "two"]
            assert json.loads(asked.server.requests[1].prompt) == {
                "test_mode": "generator",
                "focus": "dates",
                "target_agent": "expense",
                "count": 1,
                "existing": ["one"],
            }

    asyncio.run(ask())


def test_each_call_is_a_conversation_of_its_own() -> None:
    def greedy(call: RoleCall) -> list[dict[str, Any]]:
        call.payload.clear()
        return [case(f"n{len(client.calls)}")]

    client = Scripted(greedy)
    assert len(made(client).cases) == 3
