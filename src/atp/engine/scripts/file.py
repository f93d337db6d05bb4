"""Tests in Python: the file that a reference names, and its functions as the cases of a suite.

`scripts:tests.test_expense` is `scripts/tests/test_expense.py` below the working directory, the agent's folder or the
project's root; each of its functions `Test…` or `test_…` is a case. A further step names one of them.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from atp.base.diagnostics import Diagnostics, Place, has_errors
from atp.base.errors import ConfigurationError
from atp.engine.scripts.reading import Reading, defined_twice, read_script
from atp.suite.agent import CustomAgent, CustomConfig
from atp.suite.case import Case
from atp.suite.suite import Suite
from atp.usercode.code_path import find_module, find_script
from atp.usercode.load import load_place
from atp.usercode.unusable import Unusable

OFFERED = ("t", "ctx")
"""What a test is called with, those of them that it names."""
NOBODY = "script"
"""Stands for the agent under test where none is named: the tests name theirs themselves."""
_TESTS = ("Test", "test_")
"""How tests are called."""
_PYTESTS_OWN = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"})
"""Marks that tell pytest what to do; all others are tags."""


class ScriptCase(Case):
    """A test in Python: a function that talks with agents and says itself what must hold."""

    function: str
    """What it is called in its file."""
    content: str
    """A hash of the file and of those it imports: edited, it is another test."""
    called: dict[str, str] = Field(default_factory=dict)
    """The agents that it calls by a name written in it; once they are found, with what tells each from another."""
    validators: list[str] = Field(default_factory=list)
    """The validators that it asks by a name written in it."""
    left_out: str | None = None
    """Why its mark leaves it out, if that says why."""
    plain_asserts: bool = False
    """It also checks with `assert` statements, which leave no trace when they hold."""
    _callable: Callable[..., Any] = PrivateAttr()

    @property
    def mode(self) -> Literal["script"]:
        """Its function leads the conversation."""
        return "script"

    @property
    def input(self) -> Any:
        """Nothing that could be told before it runs."""
        return None

    @property
    def skip_reason(self) -> str | None:
        """What its mark says."""
        return self.left_out

    @property
    def callable(self) -> Callable[..., Any]:
        """The function itself."""
        return self._callable


def no_agent() -> None:
    """The agent under test where none is named. Nobody gets as far as calling it."""


def find_tests(name: str, folders: Sequence[Path]) -> tuple[Path, str | None] | None:
    """The file of tests that `scripts:a.b` names, and the one test in it if it names one.

    Nothing if it names something else: a function of a file that isn't called like a test file makes cases. Raises
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
    """Whether a module is called like one that holds tests."""
    step = step.lower().replace("-", "_")
    return step.startswith("test_") or step.endswith("_test")


def script_suite(path: Path, only: str | None, notes: Diagnostics, *, agent_named: bool) -> Suite:
    """The tests of a file, or one of them, as a suite. What is wrong is noted. Runs the file's code."""
    suite = Suite(name=path.stem, dialect="script", path=str(path))
    for name, first, again in defined_twice(path):
        if name.startswith(_TESTS) and only in (None, name):
            message = f"`{name}` stands in line {first} as well, where it would never run"
            notes.error("duplicate-test", message, Place(again, 1), "call one of them otherwise")
    try:
        module = load_place(str(path), (path.parent,))
    except Unusable as error:
        notes.error("no-script-tests", str(error), hint="mend the file")
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
        suite.agents = [nobody()]
    return suite


def nobody() -> CustomAgent:
    """Stands for the agent under test where none is named."""
    return CustomAgent(name=NOBODY, type="custom", config=CustomConfig(entry=f"{__name__}:{no_agent.__name__}"))


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
    """The marks that pytest's decorators have put on something."""
    found = getattr(marked, "pytestmark", ())
    return [one for one in (found if isinstance(found, list) else [found]) if hasattr(one, "name")]


def _skip_reason(mark: Any) -> str | None:
    """Why a mark leaves a test out: `reason=`, or what `skip` is given without a name."""
    found = mark.kwargs.get("reason") or (mark.args[0] if mark.name == "skip" and mark.args else None)
    return str(found) if found else None


def _title(function: Callable[..., Any]) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(function) or "").strip().partition("\n")[0].rstrip(".")


def _unfit(function: Callable[..., Any]) -> str | None:
    """Why a function can't be called as a test."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "yields, so that calling it would run nothing of it"
    for one in inspect.signature(function).parameters.values():
        needed = one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if needed and (one.name not in OFFERED or one.kind is one.POSITIONAL_ONLY):
            return f"takes `{one.name}`; a test is given, by name, {' and '.join(OFFERED)}"
    return None


def _not_for_us(marks: list[Any]) -> str | None:
    """A mark that only pytest understands."""
    for one in marks:
        if one.name in ("xfail", "parametrize", "usefixtures"):
            return f"is marked `{one.name}`, which only pytest understands"
        if one.name == "skipif" and not all(isinstance(condition, bool) for condition in one.args):
            return "is marked `skipif` with a condition that only pytest understands"
    return None
