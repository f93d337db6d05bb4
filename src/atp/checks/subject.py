"""What a check looks at: the agent's answer, a tool's result, an artifact's content."""

from typing import Any

from atp.base.canonical_json import canonical
from atp.base.found_json import MISSING, find_json, read_whole
from atp.checks.lazy import lazy


class Subject:
    """A value, with its text and the JSON in it worked out when they are needed, and once."""

    def __init__(self, value: Any, name: str, where: str) -> None:
        self.value = value
        """Text or any JSON value; nothing is an empty answer."""
        self.name = name
        """What it is, in a sentence: `the output`."""
        self.where = where
        """Its place, for a verdict."""

    @lazy
    def text(self) -> str:
        """The text; of a JSON value, its canonical text."""
        if isinstance(self.value, str):
            return self.value
        return "" if self.value is None else canonical(self.value)

    @lazy
    def json(self) -> Any:
        """The JSON value, or the JSON found in the text, or `MISSING`."""
        if isinstance(self.value, str):
            return find_json(self.value)
        return MISSING if self.value is None else self.value

    @lazy
    def json_text(self) -> str | None:
        """The canonical text of a JSON object or list, also of one that was given as text; else nothing."""
        if not isinstance(self.value, str):
            return None if self.value is None else self.text
        read = read_whole(self.value) if self.value.lstrip()[:1] in ("{", "[") else MISSING
        return None if read is MISSING else canonical(read)

    @property
    def is_text(self) -> bool:
        """Whether it is text, with or without JSON in it."""
        return isinstance(self.value, str)
