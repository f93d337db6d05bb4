"""`protocol: openai`: an agent that is asked like a model, in OpenAI's chat completions."""

from typing import Any

from atp.agents.adapter import AdapterContext, AgentError, Reply, TurnRequest
from atp.agents.attachments import Attachments
from atp.agents.reply import read_tool_calls, read_usage
from atp.agents.wire import RAW_LENGTH, ProtocolError, read_json, write_json
from atp.base.text import cut
from atp.models.client import error_text
from atp.models.parts import read_content
from atp.suite.agent import HttpSpeech
from atp.suite.options import Options
from atp.suite.result import Usage


class ChatDialect:
    """Writes requests and reads answers of OpenAI's chat completions."""

    accept = "application/json"
    streams = False
    uses_workspace = False

    def __init__(self, config: HttpSpeech, context: AdapterContext) -> None:
        self._model = config.model
        self._attachments = Attachments((context.base, *context.search))

    def body(self, request: TurnRequest) -> bytes:
        """Return the whole conversation, with those options that ATP does not know (`temperature`, …)."""
        sent = {name: value for name, value in request.options.items() if name not in Options.model_fields}
        if self._model is not None:
            sent["model"] = self._model
        sent["messages"] = [self._attachments.message(message) for message in request.messages]
        return write_json(sent)

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """Return the first choice."""
        answer = read_json(raw, "the answer")
        if isinstance(answer, dict) and answer.get("error") and not answer.get("choices"):
            raise AgentError(f"agent error: {cut(error_text(answer), RAW_LENGTH)}")
        message = _message(answer)
        calls = message.get("tool_calls")
        if calls is None and message.get("function_call"):
            calls = [message["function_call"]]
        usage = _usage(answer["usage"]) if answer.get("usage") is not None else None
        return Reply(output=read_content(message), tool_calls=read_tool_calls(calls, request.turn), usage=usage)


def _message(answer: Any) -> dict[str, Any]:
    try:
        message = answer["choices"][0]["message"]
    except (KeyError, IndexError, TypeError) as error:
        raise ProtocolError("the answer has no `choices[0].message`") from error
    if not isinstance(message, dict):
        raise ProtocolError("`choices[0].message` is not an object")
    return message


def _usage(raw: Any) -> Usage:
    usage, further = read_usage(raw, "usage")
    details = further.get("prompt_tokens_details")
    if isinstance(details, dict) and details.get("cached_tokens") is not None:
        cached, _ = read_usage({"cache_read_tokens": details["cached_tokens"]}, "usage")
        usage.cache_read_tokens = cached.cache_read_tokens
    return usage
