"""Messages: what was said in a conversation."""

from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import Discriminator, Field, Tag

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
Content = Annotated[Annotated[str, Tag("text")] | Annotated[list[Part], Tag("parts")], Discriminator(_content_form)]


def _address(part: Part) -> str:
    """Where the content of a part is; empty for text."""
    match part:
        case TextPart():
            return ""
        case ImageUrlPart(image_url=ImageAddress(url=url)):
            return url
        case ImageUrlPart(image_url=str(url)):
            return url
        case ImagePart(source=source) | FilePart(source=source) | AudioPart(source=source):
            return source
    raise AssertionError(part)


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
        if not isinstance(self.content, list):
            return []
        return [_address(part) for part in self.content if not isinstance(part, TextPart)]

    @property
    def files(self) -> list[str]:
        """The paths of the files that are attached, as the message names them."""
        return [name for one in self.addresses if (name := attached_file(one)) is not None]

    def wire(self) -> dict[str, Any]:
        """The message as agents get it: only what was said."""
        if self.__pydantic_fields_set__ == _ROLE_AND_CONTENT and isinstance(self.content, str):
            return {"role": self.role, "content": self.content}  # almost all there are, at a tenth of the cost
        return self.model_dump(exclude_none=True)
