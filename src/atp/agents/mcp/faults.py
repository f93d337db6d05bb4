"""What is wrong with what an MCP server answered, in words."""

from typing import TYPE_CHECKING, Any

from atp.base.text import cut

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_LONGEST_NAME = 40


def told(error: BaseException, tools: list[Any]) -> str:
    """What an error of the SDK's says; `tools` are those that the server listed last, as it wrote them."""
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    if isinstance(error, MCPError):
        return f"it answered with the error {error.code}: {error.message}"
    if isinstance(error, ValidationError):
        return _misshapen(error.errors(include_url=False)[0], tools)
    return str(error).partition("\n")[0] or type(error).__name__


def short(name: str) -> str:
    """A name in a message, which must not push out what else there is to say."""
    return cut(name, _LONGEST_NAME)


def _misshapen(error: "ErrorDetails", tools: list[Any]) -> str:
    """pydantic says where something is wrong, but not in which tool."""
    wrong = error["msg"][:1].lower() + error["msg"][1:]
    match error["loc"]:
        case ("tools", int(number), *steps):
            named = _name(tools, number) or f"number {number + 1} of its list"
            field = f", `{_path(steps)}`" if steps else ""
            return f"the tool {named} is not described as MCP has it{field}: {wrong}"
        case ():
            return f"its answer is not one of MCP's: {wrong}"
        case steps:
            return f"its answer is not one of MCP's, `{_path(steps)}`: {wrong}"


def _name(tools: list[Any], number: int) -> str:
    tool = tools[number] if number < len(tools) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    return f"`{short(name)}`" if isinstance(name, str) else ""


def _path(steps: Any) -> str:
    return ".".join(str(step) for step in steps)
