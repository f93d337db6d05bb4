"""Pictures for the HTML report: those that a case attaches to its messages, and those that an agent made.

Only the case's own messages are looked at for attachments: a file that an agent names is never read.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atp.suite.message import addresses_in, attached_file
from atp.suite.result import CaseResult

LARGEST = 500_000
"""Bytes of a picture that is shown."""
_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""How pictures begin. A file that begins otherwise is not shown, whatever its name is."""


def attached_pictures(case: CaseResult) -> dict[str, str]:
    """The `file://` addresses of pictures in the case's messages, with their content as `data:` addresses."""
    if not isinstance(case.input, list) or not case.file:
        return {}
    folder = Path(case.file).parent
    found = {address: _content(folder / name) for address, name in _attached(case.input)}
    return {address: content for address, content in found.items() if content is not None}


def _attached(messages: list[Any]) -> Iterator[tuple[str, str]]:
    """The address and the path of each file that the messages attach."""
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for address in addresses_in(content):
            if (name := attached_file(address)) is not None:
                yield address, name


def _content(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return picture_address(path.read_bytes())
    except OSError:
        return None


def picture_address(data: bytes) -> str | None:
    """The `data:` address of a picture; None if the data is none that is shown, or too large."""
    if len(data) > LARGEST:
        return None
    kind = next((name for start, name in _KINDS.items() if data.startswith(start)), None)
    if kind is None or (kind == "webp" and data[8:12] != b"WEBP"):
        return None
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
