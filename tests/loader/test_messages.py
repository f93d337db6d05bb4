"""What a case says to the agent: it has words, whichever way they are written."""

import pytest
from tests.loader.shop import Expect


@pytest.mark.parametrize(
    "said",
    [
        '«empty»""',
        '«empty»" "',
        "«empty»[]",
        '«missing-key»{"role": "user"}',
        '{"role": "user", "content": «empty»null}',
        '[{"role": "user", "content": «empty»""}]',
        '[{"role": "user", "content": «empty»[]}]',
        '[{"role": "user", "content": "a"}, «missing-key»{"role": "tool", "tool_call_id": "1"}]',
        '[«missing-key»{"role": "assistant"}, {"role": "user", "content": "a"}]',
        '[«missing-key»{"role": "assistant", "tool_calls": []}, {"role": "user", "content": "a"}]',
    ],
)
def test_nothing_said_is_an_error(expect: Expect, said: str) -> None:
    expect(f'{{"id": "one", "input": {said}}}', "jsonl")
    expect(f'{{"id": "one", "messages": {said}}}', "jsonl")


@pytest.mark.parametrize(
    "said",
    [
        '[{"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "user", "content": "a"}]',
        '[{"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}, {"role": "user", "content": "a"}]',
        '[{"role": "tool", "content": ""}, {"role": "user", "content": "a"}]',
        '{"role": "user", "content": [{"type": "image", "source": "file://a.png"}]}',
    ],
)
def test_what_may_go_without_words(expect: Expect, said: str) -> None:
    expect(f'{{"id": "one", "input": {said}}}', "jsonl")


@pytest.mark.parametrize("description", ["«empty»''", "«empty»'  '", '«empty»"\\n\\t"'])
def test_a_task_says_something(expect: Expect, description: str) -> None:
    expect(
        "test_suite: s\nagents: [{name: a, type: custom, config: {}}]\n"
        f"tests: [{{id: t, name: T, task: {{description: {description}}}}}]\n"
    )


@pytest.mark.parametrize("said", ["5", "true", "1.5"])
def test_what_is_said_is_text_or_messages(expect: Expect, said: str) -> None:
    (one,) = expect(f'{{"id": "one", "input": «wrong-type»{said}}}', "jsonl").diagnostics
    assert one.message.startswith("`input` must be text, a message or a list of messages, found ")
    assert one.hint is not None
    assert one.hint.startswith("write the user's words")
