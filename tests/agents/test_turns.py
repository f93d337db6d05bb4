"""The text of messages and of answers."""

import json
from typing import Any

import pytest

from atp.suite.message import addresses_in, answer_text, content_text

TEXT = {"type": "text", "text": "look"}
IMAGE = {"type": "image", "source": "file://x.png"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("look", "look"),
        (None, ""),
        ([TEXT, TEXT], "look\nlook"),
        ([TEXT, IMAGE], "look"),
        ([IMAGE], ""),
        ([{**TEXT, "cache": True}], "look"),
        ([{"type": "flight", "price": 100}], '[{"type": "flight", "price": 100}]'),
        ({"a": "é"}, '{"a": "é"}'),
    ],
)
def test_the_text_of_a_message_is_without_its_attachments(content: Any, text: str) -> None:
    assert content_text(content) == text


@pytest.mark.parametrize(
    "output",
    [
        [{"type": "flight", "price": 100}],
        [{"type": "file", "name": "a.txt"}],
        [{**TEXT, "note": "100"}],
        [{"type": "text", "content": "100"}],
        [{"type": "text", "text": 100}],
        [{"type": "output_text", "text": "100"}, TEXT],
        [{"type": ["text"]}],
        [],
        {"type": "text"},
        0,
        False,
    ],
)
def test_nothing_of_an_answer_that_is_data_is_left_out(output: Any) -> None:
    assert json.loads(answer_text(output)) == output


def test_an_answer_in_parts_of_text_is_text() -> None:
    assert answer_text([TEXT, TEXT]) == "look\nlook"


def test_addresses_of_attachments() -> None:
    by_object = {"type": "image_url", "image_url": {"url": "http://a/b", "detail": "low"}}
    parts = [TEXT, IMAGE, by_object, {"type": "image_url", "image_url": "c"}, {"type": "file"}, {"source": "d"}, 3]
    assert addresses_in(parts) == ["file://x.png", "http://a/b", "c"]
    assert addresses_in("text") == addresses_in(None) == []
