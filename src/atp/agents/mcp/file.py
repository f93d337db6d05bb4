"""Files that describe an MCP server: `mcps/ID.mcp.yao`, JSON with comments, as Yao has them."""

from pathlib import Path
from typing import Any, TypeVar

from atp.agents.mcp.variables import filled
from atp.agents.prompt.reading import Reading
from atp.base.diagnostics import Diagnostics
from atp.base.jsonc import without_comments
from atp.base.near import near_miss
from atp.base.secrets import SHORTEST_SECRET
from atp.loader.jsonl.nodes import JsonLocator, parse_json
from atp.loader.validate import validate
from atp.suite.record import Record

FOLDER = "mcps"
SUFFIXES = (".mcp.yao", ".mcp.json", ".mcp.jsonc")
_KEYS = ("command", "args", "arguments", "env", "cwd", "url", "headers")
_CHOICES = ("tools", "exclude", "scope", "timeout", "ready_within")
_OWN = (*_KEYS, *_CHOICES, "transport", "authorization_token")
"""Keys that say how to reach a server, and what of it to use."""
_THEIRS = ("id", "name", "label", "description", "version", "tags", "resources", "prompts", "endpoint")
"""Keys of Yao's that say nothing of how to reach a server's tools."""
Shape = TypeVar("Shape", bound=Record)


def find_server_file(server_id: str, folder: Path, root: Path) -> Path | None:
    """The file of a server: beside the agent, below the project's root, or beside the assistant that its id names."""
    parts = server_id.split(".")
    starts = [folder / FOLDER / Path(*parts), root / FOLDER / Path(*parts)]
    if parts[0] in ("agents", "assistants") and len(parts) > 2:
        starts.append(root / "assistants" / Path(*parts[1:-1]) / FOLDER / parts[-1])
    for start in starts:
        for suffix in SUFFIXES:
            path = start.with_name(f"{start.name}{suffix}")
            if path.is_file() and path.resolve().is_relative_to(root):
                return path
    return None


def read_server_file(path: Path, reading: Reading, shape: type[Shape]) -> Shape | None:
    """What a file says of how to reach a server, as far as it can be read; mistakes are noted in it."""
    text = reading.text(path)
    notes = reading.notes(path)
    parsed = None if text is None else parse_json(without_comments(text), notes)
    if parsed is None:
        return None
    data, locate = parsed
    if not isinstance(data, dict):
        hint = 'begin with {"transport": "stdio", "command": "…"}'
        notes.error("wrong-type", "a server must be an object", locate.value(()), hint)
        return None
    known = len(notes)
    own = filled(_own_keys(data, notes, locate), (), reading, notes, locate)
    _take_transport(own, notes, locate)
    _take_token(own, reading)
    made = None if len(notes) > known else validate(shape, own, notes, locate)
    return made if len(notes) == known else None


def _own_keys(data: dict[str, Any], notes: Diagnostics, locate: JsonLocator) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for key, value in data.items():
        if key in _OWN:
            if value is not None:
                own[key] = value
        elif key not in _THEIRS and (meant := near_miss(key, _OWN)):
            notes.error("unknown-key", f"unknown key `{key}`", locate.key((key,)), f"did you mean `{meant}`?")
    return own


def _take_transport(own: dict[str, Any], notes: Diagnostics, locate: JsonLocator) -> None:
    """See that it is one that we speak, and that what it needs is there."""
    transport = own.pop("transport", None)
    needed = {"stdio": "command", "http": "url", "streamable-http": "url", "streamable_http": "url"}
    at = locate.value(("transport",))
    if transport is None:
        return
    if transport == "process":
        hint = "give the agent these tools as `commands`, or prepared answers in `tools`"
        notes.error("bad-value", "`transport: process` calls code inside Yao, which is not here", at, hint)
    elif transport not in needed:
        meant = near_miss(str(transport), needed) if isinstance(transport, str) else None
        hint = f"did you mean `{meant}`?" if meant else "one of: stdio, http"
        notes.error("bad-value", f"`transport` cannot be {transport!r}", at, hint)
    elif needed[transport] not in own:
        key = needed[transport]
        notes.error("missing-key", f"`transport: {transport}` needs `{key}`", at, f"add `{key}`")


def _take_token(own: dict[str, Any], reading: Reading) -> None:
    token = own.pop("authorization_token", None)
    if isinstance(token, str) and token:
        if len(token) >= SHORTEST_SECRET:
            reading.secrets.add(token)
        scheme = token if " " in token else f"Bearer {token}"
        own["headers"] = {"Authorization": scheme, **(own.get("headers") or {})}
