"""Images, documents and recordings in messages, in the form of OpenAI's chat completions."""

import base64
import mimetypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from atp.agents.adapter import AgentError
from atp.suite.message import attached_file

LARGEST = 64 * 1024 * 1024


class Attachments:
    """Translates the parts of messages to those of the chat API. Files are read from the folders of the test."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)

    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message in the form of the API."""
        sent = {key: value for key, value in message.items() if key != "metadata"}
        # An agent's own message must not make ATP read files.
        if isinstance(sent.get("content"), list) and sent.get("role") not in ("assistant", "tool"):
            sent["content"] = [self._part(part) for part in sent["content"]]
        return sent

    def _part(self, part: dict[str, Any]) -> dict[str, Any]:
        match part.get("type"):
            case "image":
                return {"type": "image_url", "image_url": {"url": self._address(part["source"], part)}}
            case "image_url":
                image = part["image_url"]
                image = {"url": image} if isinstance(image, str) else image
                return {"type": "image_url", "image_url": {**image, "url": self._address(image["url"], part)}}
            case "file":
                name = part.get("name") or Path(part["source"].partition(",")[0]).name
                return {"type": "file", "file": {"filename": name, "file_data": self._data(part)}}
            case "audio":
                head, _, content = self._data(part).partition(",")
                kind = head.removeprefix("data:").partition(";")[0].partition("/")[2].removeprefix("x-")
                form = {"mpeg": "mp3", "wave": "wav"}.get(kind, kind)
                return {"type": "input_audio", "input_audio": {"data": content, "format": form}}
            case _:
                return part

    def _data(self, part: dict[str, Any]) -> str:
        address = self._address(part["source"], part)
        if not address.startswith("data:"):
            raise AgentError(f"{part['source']}: the chat API takes only files and pictures by address", "environment")
        return address

    def _address(self, source: str, part: dict[str, Any]) -> str:
        """Return the source, or a `data:` URL with the content of the file that the source names."""
        name = attached_file(source)
        if name is None:
            return source
        path = next((one for folder in self._folders if (one := folder / name).is_file()), None)
        if path is None:
            raise AgentError(f"the file {name}, which a message names, is not there", "environment")
        try:
            if path.stat().st_size > LARGEST:
                raise AgentError(f"the file {name}, which a message names, is larger than 64 MB", "environment")
            content = base64.b64encode(path.read_bytes()).decode()
        except OSError as error:
            raise AgentError(f"the file {name} can't be read: {error.strerror}", "environment") from error
        kind = part.get("mime_type") or mimetypes.guess_type(name)[0] or "application/octet-stream"
        return f"data:{kind};base64,{content}"
