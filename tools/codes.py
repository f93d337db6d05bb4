"""The codes of all diagnostics that ATP can give, read from its source.

`docs/diagnostics.md` has a line for each; a test compares the two.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "atp"
_ERRORS = {
    "error",
    "note",
    "Mistake",
    "GateMistake",
    "_TooMuch",
    "load_error",
    "_refused",
    "report_missing",
    "PydanticCustomError",
}
"""What notes an error: the first argument is its code, or the second, after what it is about."""
_WARNINGS = {"warn", "Unread"}
_BUILT = {"unknown-assertion", "unknown-agent", "unknown-part", "unknown-check"}
"""Codes that are put together, or chosen, before they are noted."""
_INNER = {"reported", "near_miss", "too_short"}
"""Codes that are never shown: the first was reported before, the others are shown as `unknown-key` and `empty`."""


_CODE = re.compile(r"[a-z][a-z0-9_-]*")


def codes() -> dict[str, set[str]]:
    """The severities that each code is given with."""
    found: dict[str, set[str]] = {code: {"error"} for code in _BUILT}
    for path in sorted(SOURCE.rglob("*.py")):
        for code, severity in _noted(ast.parse(path.read_text(encoding="utf-8"))):
            if code not in _INNER:
                found.setdefault(_told(code), set()).add(severity)
    return found


def _told(code: str) -> str:
    """The code as it comes out: pydantic's names have underscores, and one that ends in `_type` is a wrong type."""
    return "wrong-type" if code.endswith("_type") else code.replace("_", "-")


def _noted(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in _ERRORS | _WARNINGS:
                for code in _texts(call.args[isinstance(call.args[0], ast.Name) and len(call.args) > 1]):
                    if _CODE.fullmatch(code):
                        yield code, "warning" if name in _WARNINGS else "error"


def _texts(first: ast.expr) -> Iterator[str]:
    """The text that an argument is, or may be."""
    match first:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))
