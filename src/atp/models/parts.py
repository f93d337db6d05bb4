"""What messages are made of, in the form of OpenAI's chat completions, and the same as Anthropic's blocks."""

import base64
import binascii
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from atp.models.model import ModelError

KNOWN = ("text", "image_url", "file", "input_audio", "refusal")


def check_parts(content: Any) -> None:
    """Raise `ModelError` if a content has parts that no model takes."""
    if content is None or isinstance(content, str):
        return
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in KNOWN:
            raise ModelError(f"a message has a part of the kind `{kind}`, which models don't take")


def blocks(content: Any) -> list[dict[str, Any]]:
    """Anthropic's blocks for a content; blank text, which it refuses, is left out. Raises `ModelError`."""
    check_parts(content)
    if content is None or isinstance(content, str):
        content = [{"type": "text", "text": content or ""}]
    found = [_block(part) for part in content]
    return [block for block in found if block["type"] != "text" or block["text"].strip()]


def _block(part: dict[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "image_url":
            image = part["image_url"]
            return {"type": "image", "source": _source(image["url"] if isinstance(image, dict) else image)}
        case "file":
            return _document(part["file"])
        case "input_audio":
            raise ModelError("a message has a recording in it, which Anthropic's models don't take")
        case kind:  # text, or a refusal, which is text too
            return {"type": "text", "text": str(part.get(kind) or "")}


def _source(url: str) -> dict[str, Any]:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, content = read_data_url(url)
    return {"type": "base64", "media_type": kind, "data": base64.b64encode(content).decode()}


def _document(file: dict[str, Any]) -> dict[str, Any]:
    name = file.get("filename")
    title = {"title": name} if name else {}
    kind, content = read_data_url(str(file.get("file_data", "")))
    if kind == "application/pdf":
        source = {"type": "base64", "media_type": kind, "data": base64.b64encode(content).decode()}
        return {"type": "document", "source": source, **title}
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(
            f"the file {name or 'in a message'} is neither text nor PDF ({kind}): Anthropic's models take no other"
        ) from error
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **title}


def read_data_url(url: str) -> tuple[str, bytes]:
    """The kind and the content of a `data:` address. Raises `ModelError`."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        raise ModelError("a file in a message is given without its content, as a `data:` address has it")
    kind, *options = head.removeprefix("data:").split(";")
    content = unquote_to_bytes(data)
    if "base64" in options:
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise ModelError(f"a file in a message can't be read: {error}") from error
    return kind or "text/plain", content


def arguments_of(given: Any) -> Any:
    """A call's arguments, which come as JSON in a text; what is no JSON object stays the text that it is."""
    if not isinstance(given, str):
        return given
    try:
        value = msgspec.json.decode(given) if given.strip() else {}
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return given
    return value if isinstance(value, dict) else given
