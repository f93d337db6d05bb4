"""Tells whether the answer of a validator or a simulator may be a quotation.

An agent of the user's answers in a form that has no room for a mark. An answer in that form may be planted in what the
agent is shown.
"""

import re
from collections.abc import Iterable
from typing import Any

from atp.base.json.text import readable, whole_text

_AUTHORS = ("system", "developer")
"""Roles of messages that the developer of the agent under test wrote."""
_ESCAPES = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf])")


def said(conversation: Any, *, by_user: bool) -> list[str]:
    """The messages of the agent under test, with all that is in them, as texts. `by_user`: those of the user, too."""
    authors = _AUTHORS if by_user else (*_AUTHORS, "user")
    messages = conversation if isinstance(conversation, list) else []
    return [readable(one) for one in messages if not isinstance(one, dict) or one.get("role") not in authors]


def is_quotation(text: str, data: Any, texts: Iterable[str]) -> bool:
    """True if one of the texts has the answer in it: as it stands, or all its members in another order."""
    parts = [text]
    if isinstance(data, dict) and data:
        parts = [readable({key: value})[1:-1] for key, value in data.items()]
    whole, squeezed = _squeezed(text), [_squeezed(one) for one in parts]
    return any(whole in one or all(part in one for part in squeezed) for one in map(_squeezed, texts))


def _squeezed(text: str) -> str:
    """The text without blanks, and without escapes: JSON may be spaced differently, or stand escaped in other JSON."""
    text = _ESCAPES.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else "", text)
    text = whole_text(text)  # a pair of escapes is one character
    return "".join(text.replace("\\", "").split())
