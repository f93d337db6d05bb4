"""Messages: what was said in a conversation."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import Discriminator, Field, SerializeAsAny, Tag

from atp.suite.record import Json, JsonObject, Record, Text

FILE = "file://"
"""What the address of an attached file begins with."""
Role = Literal["system", "developer", "user", "assistant", "tool"]


# What may be text or more is told apart by its form, so that a mistake in it isn't also reported as "not a text".


def _content_form(value: Any) -> str:
    return "parts" if isinstance(value, list) else "text"


def _address_form(value: Any) -> str:
    return "object" if isinstance(value, dict | Record) else "text"


class TextPart(Record):
    """A piece of text in a message."""

    type: Literal["text"]
    """Always `text`."""
    text: str
    """The text."""


class ImagePart(Record):
    """A picture, by address or from a file."""

    type: Literal["image"]
    """Always `image`."""
    source: Text
    """`file://` with a path relative to the test file, `http(s)://`, or a `data:` address."""
    mime_type: str | None = None
    """The kind of picture, when the source doesn't tell."""


class ImageAddress(Record):
    """Where an `image_url` part points."""

    url: Text
    """`http(s)://`, `data:` or `file://`."""
    detail: str | None = None
    """How closely the model should look: `low`, `high`, `auto`."""


class ImageUrlPart(Record):
    """A picture in the spelling of OpenAI's messages."""

    type: Literal["image_url"]
    """Always `image_url`."""
    image_url: Annotated[
        Annotated[Text, Tag("text")] | Annotated[ImageAddress, Tag("object")], Discriminator(_address_form)
    ]
    """The address, or an object with `url` and `detail`."""


class FilePart(Record):
    """A document."""

    type: Literal["file"]
    """Always `file`."""
    source: Text
    """`file://` with a path relative to the test file, `http(s)://`, or a `data:` address."""
    name: str | None = None
    """The name the agent sees."""
    mime_type: str | None = None
    """The kind of document, when the source doesn't tell."""


class AudioPart(Record):
    """A recording."""

    type: Literal["audio"]
    """Always `audio`."""
    source: Text
    """`file://` with a path relative to the test file, `http(s)://`, or a `data:` address."""
    mime_type: str | None = None
    """The kind of recording, when the source doesn't tell."""


Part = Annotated[TextPart | ImagePart | ImageUrlPart | FilePart | AudioPart, Field(discriminator="type")]
Content = SerializeAsAny[  # as what it is: else each message that is written asks for its form once more
    Annotated[Annotated[str, Tag("text")] | Annotated[list[Part], Tag("parts")], Discriminator(_content_form)]
]


ATTACHMENT_TYPES = ("image", "image_url", "file", "audio")
"""Types of the parts of a message that have no text."""


def content_text(content: Any) -> str:
    """The text of a message's content as JSON values: a string, parts of text and attachments, or any JSON value."""
    return _joined_text(content, lambda part: part.get("type") in ATTACHMENT_TYPES or _is_text(part))


def answer_text(output: Any) -> str:
    """The text of an agent's answer: a string, parts of text, or any JSON value.

    A list of objects with a `type` may be any data of the agent's, so nothing in it is left out.
    """
    return _joined_text(output, lambda part: _is_text(part) and len(part) == 2)


def _joined_text(content: Any, is_part: Callable[[dict[str, Any]], bool]) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and content and all(isinstance(part, dict) and is_part(part) for part in content):
        return "\n".join(part["text"] for part in content if _is_text(part))
    return json.dumps(content, ensure_ascii=False)


def _is_text(part: dict[str, Any]) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def addresses_in(content: Any) -> list[str]:
    """The addresses of what is attached in a message's content as JSON values, as they are written."""
    found: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") in ATTACHMENT_TYPES:
            address = part.get("source") or part.get("image_url")
            address = address.get("url") if isinstance(address, dict) else address
            found += [address] if isinstance(address, str) else []
    return found


def attached_file(address: str) -> str | None:
    """The path in a `file://` address; None for any other address."""
    return unquote(address.removeprefix(FILE)) if address.startswith(FILE) else None


_ROLE_AND_CONTENT = {"role", "content"}


class Message(Record):
    """One message of a conversation."""

    role: Role
    """Who speaks."""
    content: Content | None = None
    """What is said: text, or a list of parts. An assistant's message that only calls tools has none."""
    name: str | None = None
    """The speaker's name, or the tool's."""
    tool_calls: list[JsonObject] | None = None
    """The tools an assistant's message called."""
    tool_call_id: str | None = None
    """Which call a tool's message answers."""
    metadata: Json = None
    """Free data for the agent."""

    @property
    def text(self) -> str:
        """The words of the message, without pictures and files."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if isinstance(part, TextPart))
        return self.content or ""

    @property
    def addresses(self) -> list[str]:
        """The addresses of what is attached, as they are written."""
        return addresses_in([part.model_dump() for part in self.content]) if isinstance(self.content, list) else []

    @property
    def files(self) -> list[str]:
        """The paths of the files that are attached, as the message names them."""
        if not isinstance(self.content, list):
            return []
        return [name for one in self.addresses if (name := attached_file(one)) is not None]

    def wire(self) -> dict[str, Any]:
        """The message as agents get it: only what was said."""
        if self.model_fields_set == _ROLE_AND_CONTENT and isinstance(content := self.content, str):
            return {"role": self.role, "content": content}  # almost all there are, at a tenth of the cost
        return self.model_dump(exclude_none=True)
