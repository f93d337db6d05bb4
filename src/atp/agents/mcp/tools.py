"""The tools of MCP servers: chosen by `tools` and `exclude`, named `server__tool`, their results as JSON or text."""

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import AgentError
from atp.agents.mcp.connection import LONGEST_NAME, CallRefused
from atp.agents.mcp.settings import ServerSettings, nearest
from atp.agents.tools import CallableTool, ToolError, ToolOutcome, ToolRun, result_text, tool_name
from atp.agents.wire import RAW_LENGTH
from atp.base.text import cut
from atp.models.model import Tool
from atp.usercode.json_values import plain

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from atp.agents.mcp.servers import Server

MOST_TOOLS = 128
"""The largest number of tools that an agent may have: no model takes more."""
LARGEST_RESULT = 8 * 1024 * 1024
"""The longest result, in characters."""


class McpTool(CallableTool):
    """A tool of an MCP server."""

    recorded = True

    def __init__(self, server: "Server", listed: dict[str, Any]) -> None:
        """`listed` is the server's description of the tool. Raises `AgentError`."""
        self._server = server
        self._name = str(listed["name"])
        full = f"{server.settings.name}__{self._name}"
        shown = tool_name(full)
        if len(full) > len(shown):
            raise AgentError(
                f"the tool `{cut(self._name, LONGEST_NAME)}` of the MCP server `{server.settings.name}` has a name "
                "that is too long: models take 64 characters. Give the server a shorter name, or leave the tool out "
                "with `exclude`",
                "environment",
            )
        self.tool = Tool(name=shown, description=listed["description"], parameters=listed["parameters"])

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolOutcome:
        """Call the tool. A dead server is an `AgentError`, not a `ToolError` for the model."""
        try:
            answer = await self._server.call(self._name, arguments, run.request.log)
        except TimeoutError as error:
            raise ToolError(f"no answer within {self._server.settings.seconds:g}s") from error
        except CallRefused as error:
            raise ToolError(cut(str(error), RAW_LENGTH)) from error
        result = read_result(answer)
        if len(text := result_text(result)) > LARGEST_RESULT:
            raise ToolError(f"the result is larger than {LARGEST_RESULT // 1024 // 1024} MB")
        if answer.is_error:
            raise ToolError(text or "the tool failed, and did not say why")
        return ToolOutcome(result=result)


def choose(listed: Iterable[dict[str, Any]], settings: ServerSettings) -> list[dict[str, Any]]:
    """Return the tools of a server that an agent gets. Raises `AgentError`.

    A pattern that matches no tool is an error: the agent would lack a tool, or have a tool that it must not have.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in listed:
        name = str(one["name"])
        if name in found:
            raise AgentError(
                f"the MCP server `{settings.name}` lists the tool `{cut(name, LONGEST_NAME)}` twice", "environment"
            )
        found[name] = one
    names = list(found)
    for key, patterns in (("tools", settings.tools or ()), ("exclude", settings.exclude)):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise AgentError(
                    f"`{key}` of the MCP server `{settings.name}`: it has no tool `{pattern}` "
                    f"({nearest(pattern, names)})",
                    "environment",
                )
    wanted = settings.tools if settings.tools is not None else ("*",)
    return [
        one
        for name, one in found.items()
        if any(fnmatchcase(name, pattern) for pattern in wanted)
        and not any(fnmatchcase(name, pattern) for pattern in settings.exclude)
    ]


def read_result(answer: "CallToolResult") -> Any:
    """Return a result as JSON, if the tool sends JSON, else as text; images and the like are described in words."""
    texts = [one.text for one in answer.content if one.type == "text"]
    further = [_note(one) for one in answer.content if one.type != "text"]
    structured = answer.structured_content
    if structured is None:
        return plain("\n".join([*texts, *further]))
    value = plain(_unwrapped(structured, "\n".join(texts)))
    return "\n".join([result_text(value), *further]) if further else value


def _unwrapped(structured: Any, text: str) -> Any:
    """Unwrap a value that is no object, which MCP sends as `{"result": 5}` with the bare value as text."""
    if not isinstance(structured, dict) or structured.keys() != {"result"}:
        return structured
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    return structured if said == structured else structured["result"]


def _note(part: Any) -> str:
    """Describe content that a model can't be shown; return the text of a resource as it is."""
    match part.type:
        case "image" | "audio":
            return f"[{part.type}: {part.mime_type}, {_size(part.data)} bytes]"
        case "resource_link":
            return f"[resource: {part.uri} ({part.title or part.name})]"
    resource = part.resource
    text = getattr(resource, "text", None)
    if text is not None:
        return f"[resource: {resource.uri}]\n{text}"
    kind = resource.mime_type or "of an unknown type"
    return f"[resource: {resource.uri}, {kind}, {_size(resource.blob)} bytes]"


def _size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64.count("=")
