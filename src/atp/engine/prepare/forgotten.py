"""What to say to somebody who named no agent, or only the file of one."""

import ast
from collections.abc import Sequence
from pathlib import Path

NAME_ONE = "name one with -n (`-n my_agent.py:answer`, `-n http://…`, an agent's id), or as `name` in atp.toml"


def function_meant(name: str, folders: Sequence[Path]) -> str | None:
    """For the name of a Python file alone: the same with its first function that could be an agent."""
    if not name.endswith(".py"):
        return None
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        return None
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError):
        return None  # what is wrong with it is told once a function of it is named
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    usable = [node.name for node in found if not node.name.startswith("_") and _takes_something(node)]
    return f"{name}:{usable[0]}" if usable else None


def _takes_something(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = node.args
    return bool(given.posonlyargs or given.args or given.vararg)
