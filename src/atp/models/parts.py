"""The parts of messages, in the form of OpenAI's chat completions, which all formats are translated from."""

import base64
import binascii
from typing import Any
from urllib.parse import unquote_to_bytes

from atp.base.json.found import MISSING, SearchCutShort, read_whole
from atp.models.model import ModelError

KNOWN = ("text", "image_url", "file", "input_audio", "refusal")


def check_parts(content: Any) -> None:
    """Raise `ModelError` if a message's content has parts that no model takes."""
    if content is None or isinstance(content, str):
        return
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in KNOWN:
            raise ModelError(f"a message has a part of the kind `{kind}`, which models don't take")


def read_data_url(url: str) -> tuple[str, bytes]:
    """The media type and the content of a `data:` URL. Raises `ModelError`."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        raise ModelError("a file in a message must be given with its content, as a `data:` URL")
    kind, *options = head.removeprefix("data:").split(";")
    content = unquote_to_bytes(data)
    if "base64" in options:
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise ModelError(f"a file in a message can't be read: {error}") from error
    return kind or "text/plain", content


def read_content(message: dict[str, Any]) -> Any:
    """The content of an answer, with the texts of its parts joined, and behind it the refusal, if there is one."""
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        texts = [part.get(part.get("type")) for part in content if isinstance(part, dict) and _has_words(part)]
        content = "".join(text for text in texts if isinstance(text, str))
    if not refusal or not isinstance(content, str | None):
        return content
    return f"{content}\n{refusal}" if content else refusal


def _has_words(part: dict[str, Any]) -> bool:
    return part.get("type") in ("text", "refusal")


def decode_arguments(arguments: Any) -> Any:
    """The arguments of a tool call, decoded if they are JSON text. Other text stays text; null and blank text are `{}`.

    Raises `SearchCutShort` for JSON that can be read in two ways, with a key twice for example.
    """
    value = arguments
    if isinstance(arguments, str):
        value = read_whole(arguments) if arguments.strip() else None
    return {} if value is None else arguments if value is MISSING else value


def read_arguments(arguments: Any) -> Any:
    """The arguments of a tool call, decoded if they are the JSON text of an object; all others stay as they are.

    So does an object that can be read in two ways: checks leave it unjudged.
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        value = decode_arguments(arguments)
    except SearchCutShort:
        return arguments
    return value if isinstance(value, dict) else arguments
