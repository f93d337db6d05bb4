"""What a file of tests in Python says without being run: where its tests stand, whom they call, what it imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from atp.engine.prepare.keys import digest
from atp.engine.prepare.named_files import content, named_in

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MOST_FILES = 200
"""How many files that import each other are followed."""


class Reading(Struct, kw_only=True):
    """What one test says."""

    line: int = 1
    """Where it begins."""
    agents: list[str] = []
    """Agents that are called by a name written in it: `ctx.agent("a.b")`."""
    validators: list[str] = []
    """Validators that are asked by a name written in it: `t.assert_.agent(response, "a.b")`."""
    asserts: bool = False
    """It has an `assert` statement."""
    content: str = ""
    """A hash of the file, and of those of the user's own that it imports."""


def read_script(path: Path) -> dict[str, Reading]:
    """The functions and classes of a file by name. What can't be read has failed to be imported before."""
    tree = ast.parse(path.read_bytes(), str(path))
    seen = digest([content(one) for one in _files(path)])
    found = [node for node in ast.walk(tree) if isinstance(node, Definition)]
    return {node.name: _read(node, seen) for node in reversed(found)}  # the outermost of a name is the one that counts


def defined_twice(path: Path) -> Iterator[tuple[str, int, int]]:
    """The names that a file defines again, so that the first can never be called; with the lines of both."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError):
        return  # importing it says so
    lines: dict[str, int] = {}
    for node in tree.body:  # below an `if`, only one of two may come to be
        if isinstance(node, Definition):
            if node.name in lines:
                yield node.name, lines[node.name], node.lineno
            lines[node.name] = node.lineno


def _read(definition: Definition, seen: str) -> Reading:
    reading = Reading(line=definition.lineno, agents=[], validators=[], content=seen)
    for node in ast.walk(definition):
        if isinstance(node, ast.Assert):
            reading.asserts = True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            _read_call(node, node.func, reading)
    return reading


def _read_call(call: ast.Call, called: ast.Attribute, reading: Reading) -> None:
    asserting = isinstance(called.value, ast.Attribute) and called.value.attr == "assert_"
    if asserting and called.attr.lower() == "agent" and (name := _literal(call, 1)):
        reading.validators.append(name.removeprefix("agents:"))
    elif not asserting and called.attr == "agent" and (name := _literal(call, 0)):
        reading.agents.append(name.removeprefix("agents:"))


def _literal(call: ast.Call, place: int) -> str | None:
    """The text that is written at a place of a call's arguments."""
    argument = call.args[place] if len(call.args) > place else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def _files(path: Path) -> list[Path]:
    """The file and those beside it that it imports, and so on."""
    found = [path]
    for one in found:  # grows while it is gone through
        near = (module for name in _imports(one) for module in named_in(name, path.parent))
        found += [module for module in dict.fromkeys(near) if module not in found]
        if len(found) > MOST_FILES:
            break
    return found


def _imports(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError):
        return  # importing it says so
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
