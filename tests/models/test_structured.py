"""Answers as data, over both formats."""

from typing import Any

import pytest
from tests.agents.support.talk import run
from tests.models.asking import FORMATS, asking
from tests.models.mock_server import Answer, Says, calls, fails, injected

from atp.models.model import BadAnswer, ModelError, Tool

pytestmark = pytest.mark.parametrize("format_", FORMATS)
SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["passed", "reason"],
    "additionalProperties": False,
}
GOOD = {"passed": True, "reason": "Grüße"}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_schema_is_sent_to_servers_that_accept_it(format_: str, streamed: bool) -> None:
    async def main() -> None:
        async with asking(format_, GOOD) as asked:
            pieces: list[str] = []
            answer = await asked.ask(schema=SCHEMA, on_text=pieces.append if streamed else None)
            assert (answer.data, answer.finish, answer.tool_uses) == (GOOD, "stop", [])
            assert asked.server.requests[0].schema == SCHEMA
            assert "JSON Schema" not in asked.server.requests[0].system
            assert bool(pieces) is streamed

    run(main())


def test_a_server_that_knows_no_schemas_is_asked_in_words_and_that_is_remembered(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, GOOD, takes_schemas=False) as asked:
            for _ in range(2):
                messages = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "It."}]
                assert (await asked.ask(messages=messages, schema=SCHEMA)).data == GOOD
            first, second, third = asked.server.requests
            assert first.schema == SCHEMA
            assert second.schema is third.schema is None
            assert second.system.startswith("Judge.")
            assert '"required": ["passed", "reason"]' in second.system

    run(main())


def test_another_refusal_is_not_taken_for_one_of_the_schema(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, [fails(400, "too long"), fails(400, "too long"), GOOD]) as asked:
            assert "HTTP 400: too long" in str(await asked.fail(schema=SCHEMA))
            assert (await asked.ask(schema=SCHEMA)).data == GOOD
            assert asked.server.requests[2].schema == SCHEMA

    run(main())


@pytest.mark.parametrize("native", [True, False])
def test_the_connector_knows_better(format_: str, native: bool) -> None:
    async def main() -> None:
        async with asking(format_, [fails(400, "no"), GOOD], native_schema=native) as asked:
            error = await asked.fail(schema=SCHEMA)
            assert (error.status, len(asked.server.requests)) == (400, 1)
            assert (asked.server.requests[0].schema is not None) is native

    run(main())


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ({"passed": "yes", "reason": ""}, "$.passed: it is not of type 'boolean'"),
        ({"passed": True}, "'reason' is a required property"),
        ("I think it passed.", "it is not JSON and nothing else"),
        (Says(text='{"passed": tr', finish="length"), "`max_tokens` is too low"),
        ("", "it is empty"),
    ],
)
def test_a_bad_answer_is_repaired_once(format_: str, first: Answer, problem: str) -> None:
    async def main() -> None:
        async with asking(format_, [first, GOOD], prices={"input": 1, "output": 1}) as asked:
            answer = await asked.ask(schema=SCHEMA)
            assert answer.data == GOOD
            assert answer.usage.llm_calls == 2
            assert problem in asked.server.requests[1].prompt
            assert answer.usage.total_tokens is not None
            assert answer.usage.cost_usd == pytest.approx(answer.usage.total_tokens / 1e6)

    run(main())


def test_an_answer_that_is_bad_twice_is_an_error(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, "It passed, trust me.") as asked:
            error = await asked.fail(schema=SCHEMA)
            assert isinstance(error, BadAnswer)
            assert str(error) == (
                "tested: the answer doesn't have the requested form, also when asked again: it is not JSON and nothing "
                "else; it was: It passed, trust me."
            )
            assert error.usage is not None
            assert (error.usage.llm_calls, len(asked.server.requests)) == (2, 2)

    run(main())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('```json\n{"passed": true, "reason": "Grüße"}\n```', True),
        ('Here it is: {"passed": true, "reason": "Grüße"} as asked.', False),
        ('The agent wrote\n```json\n{"passed": true, "reason": "Grüße"}\n```\nNo.', False),
        ('First {"passed": false, "reason": "a"} but then {"passed": true, "reason": "b"}', False),
        ('```\n{"passed": false, "reason": "a"}\n```\nor\n```\n{"passed": true, "reason": "b"}\n```', False),
        (injected().text, False),
        ('{"passed": NaN, "reason": ""}', False),
    ],
)
def test_an_answer_is_json_as_a_whole_or_in_one_fence(format_: str, text: str, found: bool) -> None:
    async def main() -> None:
        async with asking(format_, text, takes_schemas=False) as asked:
            if found:
                assert (await asked.ask(schema=SCHEMA)).data == GOOD
            else:
                assert isinstance(await asked.fail(schema=SCHEMA), BadAnswer)

    run(main())


def test_tools_may_come_before_the_answer(format_: str) -> None:
    tool = Tool(name="final_answer", description="Not the one that takes the answer")

    async def main() -> None:
        async with asking(format_, [calls(("final_answer", {"q": 1})), GOOD]) as asked:
            first = await asked.ask(schema=SCHEMA, tools=[tool])
            assert [(use.name, use.arguments) for use in first.tool_uses] == [("final_answer", {"q": 1})]
            assert (first.data, first.finish) == (None, "tool_calls")
            assert (await asked.ask(schema=SCHEMA, tools=[tool])).data == GOOD

    run(main())


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "integer"}}, {"enum": [[1, 2]]}])
def test_a_schema_of_another_type_than_object_goes_into_the_prompt(format_: str, schema: dict[str, Any]) -> None:
    async def main() -> None:
        async with asking(format_, "[1, 2]") as asked:
            assert (await asked.ask(schema=schema)).data == [1, 2]
            assert asked.server.requests[0].schema is None

    run(main())


def test_an_invalid_schema_is_an_error(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, GOOD) as asked:
            with pytest.raises(ModelError, match="not a JSON Schema"):
                await asked.ask(schema={"type": "objekt"})
            assert asked.server.requests == []

    run(main())


@pytest.mark.parametrize(
    ("change", "strict"),
    [
        ({}, True),
        ({"additionalProperties": True}, False),
        ({"required": ["passed"]}, False),
        ({"$defs": {"open": {"type": "object", "properties": {}}}}, False),
        ({"properties": {"passed": {}, "reason": {"type": "object"}}}, False),
        ({"properties": {"passed": {}, "reason": {"anyOf": [{"type": "string"}, SCHEMA]}}}, True),
        ({"properties": {"passed": {}, "reason": {"anyOf": [{"type": "string"}, {"type": "object"}]}}}, False),
    ],
)
def test_strict_only_where_the_schema_keeps_its_rules(format_: str, change: dict[str, Any], strict: bool) -> None:
    good = {**GOOD, "reason": {}} if change.get("properties", {}).get("reason") == {"type": "object"} else GOOD

    async def main() -> None:
        async with asking(format_, good) as asked:
            assert (await asked.ask(schema={**SCHEMA, **change})).data == good
            if format_ == "openai":
                assert asked.server.requests[0].body["response_format"]["json_schema"]["strict"] is strict

    run(main())


def test_two_answers_in_one_message_are_no_answer(format_: str) -> None:
    both = calls(("final_answer", {"passed": True, "reason": "x"}), ("final_answer", {"passed": False, "reason": "y"}))

    async def main() -> None:
        async with asking(format_, [both, GOOD]) as asked:
            answer = await asked.ask(schema=SCHEMA)
            assert (answer.data or answer.tool_uses) == (GOOD if format_ == "anthropic" else answer.tool_uses)

    run(main())
