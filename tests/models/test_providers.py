"""Other providers, through pydantic-ai: its own test models stand for them."""

import base64
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.agents.support.talk import run
from tests.models.connectors.test_registry import models

from atp.base.errors import ConfigurationError
from atp.models.model import Model, ModelError, ModelRequest, Tool
from atp.models.providers import ProviderModel

SEARCH = Tool(name="search", parameters={"type": "object", "properties": {"q": {"type": "string"}}})


def other(function: Any, stream: Any = None, **connector: Any) -> Model:
    """A model of theirs that answers by a function."""
    found = models(x={"type": "provider", "model": "test", **connector}).get("x", "a test")
    assert isinstance(found, ProviderModel)
    found._model = FunctionModel(function, stream_function=stream)
    return found


def ask(*messages: dict[str, Any], **more: Any) -> ModelRequest:
    return ModelRequest(messages=list(messages) or [{"role": "user", "content": "Hello"}], **more)


def test_pydantic_ais_test_model_answers() -> None:
    async def main() -> None:
        model = models(x={"type": "provider", "model": "test"}).get("x", "a test")
        answer = await model.ask(ask())
        assert (answer.text, answer.finish, answer.model) == ("success (no tool calls)", "stop", "test")
        assert answer.usage.input_tokens
        assert (answer.usage.llm_calls, answer.usage.cost_usd) == (1, None)
        called = await model.ask(ask(tools=[SEARCH]))
        assert [(use.name, use.arguments) for use in called.tool_uses] == [("search", {})]
        assert called.finish == "tool_calls"

    run(main())


def test_a_conversation_in_their_form() -> None:
    heard: list[tuple[list[ModelMessage], AgentInfo]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        heard.append((messages, info))
        return ModelResponse(parts=[TextPart("Fine."), ToolCallPart("search", '{"q": "x"}', "c2")])

    picture = "data:image/png;base64," + base64.b64encode(b"PNG").decode()
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": picture}]},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": '{"q": "y"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]

    async def main() -> None:
        said = await other(answer, temperature=0.5).ask(ask(*messages, tools=[SEARCH], settings={"stop": ["END"]}))
        assert (said.text, said.tool_uses[0].id, said.tool_uses[0].arguments) == ("Fine.", "c2", {"q": "x"})

    run(main())
    (first, second, third), info = heard[0]
    assert [part.part_kind for part in (*first.parts, *second.parts, *third.parts)] == [
        *("system-prompt", "user-prompt", "text", "tool-call", "tool-return")
    ]
    assert first.parts[1].content[1].data == b"PNG"  # type: ignore[union-attr, index, literal-required]
    assert (third.parts[0].tool_name, third.parts[0].content) == ("search", "found")  # type: ignore[union-attr]
    assert info.model_settings == {"max_retries": 0, "temperature": 0.5, "stop_sequences": ["END"]}
    assert [tool.name for tool in info.function_tools] == ["search"]


def test_streamed() -> None:
    async def pieces(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for piece in ("Hel", "lo"):
            yield piece

    async def main() -> None:
        told: list[str] = []
        answer = await other(None, pieces).ask(ask(on_text=told.append))
        assert (answer.text, told) == ("Hello", ["Hel", "lo"])

    run(main())


def test_a_schema_goes_into_the_prompt() -> None:
    answers = ["nonsense", '{"passed": true}']

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert "JSON Schema" in str(messages[0])
        return ModelResponse(parts=[TextPart(answers.pop(0))])

    async def main() -> None:
        schema = {"type": "object", "required": ["passed"]}
        assert (await other(answer).ask(ask(schema=schema))).data == {"passed": True}

    run(main())


@pytest.mark.parametrize(("status", "tries"), [(503, 3), (429, 3), (400, 1)])
def test_errors_of_pydantic_ai(status: int, tries: int) -> None:
    asked: list[int] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(1)
        assert info.model_settings == {"max_retries": 0}  # else the provider's SDK would multiply the requests
        raise ModelHTTPError(status, "m", {"key": "secret-key"}, headers={"retry-after": "0"})

    async def main() -> None:
        with pytest.raises(ModelError, match=f"x: HTTP {status}") as caught:
            await other(answer, key="secret-key", retries=2).ask(ask())
        assert (caught.value.status, len(asked)) == (status, tries)
        assert "secret-key" not in str(caught.value)

    run(main())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("groq:llama", "pydantic-ai-slim"),
        ("unheard-of:x", "Unknown provider"),
        ("openai:gpt-4o", "install the `openai`"),
    ],
)
def test_a_provider_that_is_not_installed(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        models().get(name, "a test")


def test_without_the_package() -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from pathlib import Path\nfrom atp.models.connectors.registry import Models\n"
        "from atp.base.errors import ConfigurationError\n"
        "try: Models(Path(), {}, {}).get('groq:x', 'the judge')\n"
        "except ConfigurationError as error: print(error, '|', error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "the judge needs a model: the connector `groq:x` needs the package pydantic-ai-slim" in done.stdout
    hint = "install ATP with its extra `providers`, from a clone: pip install '/path/to/atp[providers]'"
    assert f"| {hint}" in done.stdout
