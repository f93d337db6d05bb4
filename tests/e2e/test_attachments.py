"""Document 5's attachments: a `file://` image beside the test reaches the model, in both wire formats."""

import base64
from typing import Any

import pytest
from tests.engine.support.project import Project
from tests.models.mock_server import Heard, MockModels

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CASE: dict[str, Any] = {
    "id": "T003",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What's in this receipt?"},
                {"type": "image", "source": "file://./fixtures/receipt.png"},
            ],
        }
    ],
    "assertions": [{"type": "contains", "value": "amount"}],
}


def sees(heard: Heard) -> str:
    """A model that can see: it tells the bytes that it got."""
    (message,) = heard.messages
    found = [part for part in message["content"] if part["type"] != "text"]
    assert len(found) == 1
    if heard.format == "openai":
        kind, _, data = found[0]["image_url"]["url"].partition(",")
        assert kind == "data:image/png;base64"
    else:
        source = found[0]["source"]
        assert (source["type"], source["media_type"]) == ("base64", "image/png")
        data = source["data"]
    return f"an amount of {len(base64.b64decode(data))} bytes"


@pytest.mark.parametrize("connector", ["openai.eyes", "anthropic.eyes"])
def test_a_prompt_agent_sees_the_picture(project: Project, connector: str) -> None:
    project.write("tests/fixtures/receipt.png", PICTURE)
    project.write("agents/clerk.md", "You read receipts.\n")
    project.cases(CASE, name="tests/receipt.jsonl")
    with MockModels(sees) as server:
        ran = project.test("tests/receipt.jsonl", "-n", "clerk", "-c", connector, env=server.env)
    assert ran.statuses == {"T003": "passed"}, ran.err
    assert ran.results["T003"]["response"] == f"an amount of {len(PICTURE)} bytes"


def test_a_picture_that_is_not_there_is_not_the_agents_fault(project: Project) -> None:
    project.write("agents/clerk.md", "You read receipts.\n")
    project.cases(CASE, name="tests/receipt.jsonl")
    with MockModels(sees) as server:
        ran = project.test("tests/receipt.jsonl", "-n", "clerk", "-c", "openai.eyes", env=server.env)
    result = ran.results["T003"]
    assert (result["status"], result["blame"], ran.code) == ("error", "environment", 3)
    assert "receipt.png" in result["error"]
    assert server.requests == []


def test_an_edited_picture_is_another_question_to_a_cassette(project: Project) -> None:
    project.write("tests/fixtures/receipt.png", PICTURE)
    project.write("agents/clerk.md", "You read receipts.\n")
    project.cases(CASE, name="tests/receipt.jsonl")
    flags = ("tests/receipt.jsonl", "-n", "clerk", "-c", "openai.eyes")
    with MockModels(sees) as server:
        project.test(*flags, "--record", "tape", env=server.env)
    assert project.test(*flags, "--replay", "tape").statuses == {"T003": "passed"}
    project.write("tests/fixtures/receipt.png", PICTURE + b"more")
    other = project.test(*flags, "--replay", "tape").results["T003"]
    assert (other["status"], other["blame"]) == ("error", "environment")
    assert "messages[1].content[1]" in other["error"]
