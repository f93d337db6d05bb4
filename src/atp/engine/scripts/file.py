"""Files of tests in Python: finding the file that a reference names, and its functions as the cases of a suite.

`scripts:tests.test_expense` is `scripts/tests/test_expense.py` below the working directory, the agent's folder or the
project's root; each of its functions `Test…` or `test_…` is a case. A further step names one of them.
"""

import ast
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from msgspec import Struct
from pydantic import Field, PrivateAttr

from atp.base.diagnostics import Diagnostics, Place, has_errors
from atp.base.errors import ConfigurationError
from atp.engine.keys import content, digest, named_in
from atp.suite.agent import Agent, CustomConfig
from atp.suite.case import Case
from atp.suite.suite import Suite
from atp.usercode.code_path import find_module, find_script
from atp.usercode.importing import loading
from atp.usercode.load import UnusableCode, load_place

OFFERED = ("t", "ctx")
"""The parameters that a test may take."""
NO_AGENT = "script"
"""The name of the placeholder agent where none is under test: such tests name the agents that they call."""
_TESTS = ("Test", "test_")
"""The prefixes of the names of tests."""
_PYTESTS_OWN = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"})
"""Marks that are instructions for pytest; all other marks are tags."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MOST_FILES = 200
"""The most files that imports are followed to."""


class Reading(Struct, kw_only=True):
    """What the source of one test tells without running it."""

    line: int = 1
    """The line of its definition."""
    agents: list[str] = []
    """The agents that the test calls by a literal name: `ctx.agent("a.b")`."""
    validators: list[str] = []
    """The validators that the test names literally: `t.assert_.agent(response, "a.b")`."""
    asserts: bool = False
    """True if the test has an `assert` statement."""
    content: str = ""
    """A hash of the file and of the user's files that it imports."""


class ScriptCase(Case):
    """A test in Python: a function that calls agents and makes its own assertions."""

    function: str
    """The name of the function."""
    content: str
    """A hash of the file and of the files it imports: an edited test has another key."""
    called: dict[str, str] = Field(default_factory=dict)
    """The agents that the test calls by a literal name, with the digest of each once it is resolved."""
    validators: list[str] = Field(default_factory=list)
    """The validators that the test names literally."""
    left_out: str | None = None
    """The reason that a skip mark gives."""
    plain_asserts: bool = False
    """True if the test has `assert` statements, which leave no verdict when they hold."""
    _callable: Callable[..., Any] = PrivateAttr()

    @property
    def mode(self) -> Literal["script"]:
        """`script`: the function leads the conversation."""
        return "script"

    @property
    def input(self) -> Any:
        """None: the input is not known before the test runs."""
        return None

    @property
    def skip_reason(self) -> str | None:
        """The reason that a skip mark gives."""
        return self.left_out

    @property
    def callable(self) -> Callable[..., Any]:
        """The function of the test."""
        return self._callable


def no_agent() -> None:
    """The function of the placeholder agent. Never called: `ScriptRunner.tested` refuses the placeholder."""


def find_tests(name: str, folders: Sequence[Path]) -> tuple[Path, str | None] | None:
    """Find the file of tests that `scripts:a.b` names, and the single test if one is named.

    Returns None if the reference names a generator: a function of a file that isn't named like a test file. Raises
    `ConfigurationError` if a test file has no such function.
    """
    steps = name.split(".")
    if is_test_name(steps[-1]) and (path := find_module(steps, folders)) is not None:
        return path, None
    if len(steps) > 1 and is_test_name(steps[-2]):
        return find_script(f"scripts:{name}", folders)
    if len(steps) > 1 and find_module(steps[:-1], folders) is not None:
        return None
    looked = ", ".join(str(folder) for folder in dict.fromkeys(folders))
    raise ConfigurationError(f"there is no scripts/{'/'.join(steps)}.py", f"it is looked for below {looked}")


def is_test_name(step: str) -> bool:
    """True if a module is named like a test module."""
    step = step.lower().replace("-", "_")
    return step.startswith("test_") or step.endswith("_test")


def script_suite(path: Path, only: str | None, notes: Diagnostics, *, agent_named: bool) -> Suite:
    """Import a file of tests and return its tests, or one of them, as a suite. Mistakes go to `notes`."""
    suite = Suite(name=path.stem, dialect="script", path=str(path))
    for name, first, again in defined_twice(path):
        if name.startswith(_TESTS) and only in (None, name):
            message = f"`{name}` stands in line {first} as well, where it would never run"
            notes.error("duplicate-test", message, Place(again, 1), "rename one of them")
    try:
        with loading(str(path), (path.parent,)):
            module = load_place(str(path), (path.parent,))
    except UnusableCode as error:
        notes.error("no-script-tests", str(error), hint="fix the file")
        return suite
    readings = read_script(path)
    for name, value in vars(module).items():
        if not name.startswith(_TESTS) or only not in (None, name):
            continue
        reading = readings.get(name, Reading())
        if inspect.isfunction(value):
            case = _case(name, value, module, reading, notes)
            if case is not None:
                case.index = len(suite.cases)
                suite.cases.append(case)
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            notes.warn(
                "class-of-tests", f"the class `{name}` is left out", Place(reading.line, 1), "run it with pytest"
            )
    if not suite.cases and not has_errors(notes):
        what = f"`{only}` in {path} is no test" if only else f"there is no test in {path}"
        notes.error("no-script-tests", what, hint="a test is a function called Test… or test_…")
    if not agent_named and not any((folder / "package.yao").is_file() for folder in path.parents):
        suite.agents = [placeholder_agent()]
    return suite


def placeholder_agent() -> Agent:
    """Return the agent that takes the place of the agent under test where none is named."""
    return Agent(name=NO_AGENT, type="custom", config=CustomConfig(entry=f"{__name__}:{no_agent.__name__}"))


def _case(
    name: str, function: Callable[..., Any], module: ModuleType, reading: Reading, notes: Diagnostics
) -> ScriptCase | None:
    place = Place(reading.line, 1)
    marks = [*_marks(module), *_marks(function)]
    if why := _unfit(function) or _not_for_us(marks):
        notes.error("no-script-tests", f"`{name}` {why}", place, "run it with pytest, or name another test")
        return None
    skipping = [one for one in marks if one.name == "skip" or (one.name == "skipif" and any(one.args))]
    case = ScriptCase(
        id=name,
        name=_title(function) or name,
        tags=list(dict.fromkeys(one.name for one in marks if one.name not in _PYTESTS_OWN)),
        skip=bool(skipping),
        left_out=next(filter(None, map(_skip_reason, skipping)), None),
        function=name,
        content=reading.content,
        called=dict.fromkeys(reading.agents, ""),
        validators=reading.validators,
        plain_asserts=reading.asserts,
        place=place,
    )
    case._callable = function
    return case


def _marks(marked: Any) -> list[Any]:
    """Return the marks that pytest's decorators put on a function or module."""
    found = getattr(marked, "pytestmark", ())
    return [one for one in (found if isinstance(found, list) else [found]) if hasattr(one, "name")]


def _skip_reason(mark: Any) -> str | None:
    """Return the reason of a skip mark: `reason=`, or the first argument of `skip`."""
    found = mark.kwargs.get("reason") or (mark.args[0] if mark.name == "skip" and mark.args else None)
    return str(found) if found else None


def _title(function: Callable[..., Any]) -> str:
    """Return the first line of the docstring."""
    return (inspect.getdoc(function) or "").strip().partition("\n")[0].rstrip(".")


def _unfit(function: Callable[..., Any]) -> str | None:
    """Say why a function can't be called as a test, if it can't."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "yields, so that calling it would run nothing of it"
    for one in inspect.signature(function).parameters.values():
        needed = one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if needed and (one.name not in OFFERED or one.kind is one.POSITIONAL_ONLY):
            return f"takes `{one.name}`; a test is given, by name, {' and '.join(OFFERED)}"
    return None


def _not_for_us(marks: list[Any]) -> str | None:
    """Say which mark only pytest can follow, if there is one."""
    for one in marks:
        if one.name in ("xfail", "parametrize", "usefixtures"):
            return f"is marked `{one.name}`, which only pytest understands"
        if one.name == "skipif" and not all(isinstance(condition, bool) for condition in one.args):
            return "is marked `skipif` with a condition that only pytest understands"
    return None


def read_script(path: Path) -> dict[str, Reading]:
    """Parse the functions and classes of a file, by name. The file was imported before, so it parses."""
    tree = ast.parse(path.read_bytes(), str(path))
    content_hash = digest([[os.path.relpath(one, path.parent), *content(one)] for one in _files(path)])
    found = [node for node in ast.walk(tree) if isinstance(node, Definition)]
    return {
        node.name: _read(node, content_hash) for node in reversed(found)
    }  # the outermost definition of a name counts


def defined_twice(path: Path) -> Iterator[tuple[str, int, int]]:
    """Find names that a file defines twice at top level, with both lines: the first definition can never run."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError):
        return  # the import reports it
    lines: dict[str, int] = {}
    for node in tree.body:  # only the top level: of two definitions below an `if`, one may be intended
        if isinstance(node, Definition):
            if node.name in lines:
                yield node.name, lines[node.name], node.lineno
            lines[node.name] = node.lineno


def _read(definition: Definition, content_hash: str) -> Reading:
    reading = Reading(line=definition.lineno, agents=[], validators=[], content=content_hash)
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
    """Return the positional argument of a call if it is literal text."""
    argument = call.args[place] if len(call.args) > place else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def _files(path: Path) -> list[Path]:
    """List the file and, transitively, the files beside it that it imports."""
    found = [path]
    for one in found:  # `found` grows during the loop
        near = (module for name in _imports(one) for module in named_in(name, path.parent))
        found += [module for module in dict.fromkeys(near) if module not in found]
        if len(found) > MOST_FILES:
            break
    return found


def _imports(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError):
        return  # the import reports it
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
