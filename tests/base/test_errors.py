"""One family of errors: everything that a user can cause is an `atp.Error`, with a hint where there is one."""

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest

import atp

CONTROL_FLOW = 27
"""How many exceptions are caught inside ATP, or mean something to pytest, and never reach a user. May only shrink."""


def outside_the_family() -> set[str]:
    """The classes of ATP that derive directly from one of Python's exceptions, without private ones."""
    found: set[str] = set()
    for path in Path(atp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(_is_exception(base) for base in node.bases):
                found.add(node.name)
    return {name for name in found if not name.startswith("_")}


def _is_exception(base: ast.expr) -> bool:
    known = getattr(builtins, base.id, None) if isinstance(base, ast.Name) else None
    return isinstance(known, type) and issubclass(known, BaseException)


def test_errors_that_a_user_can_cause_are_in_the_family() -> None:
    others = outside_the_family() - {"Error"}
    assert len(others) <= CONTROL_FLOW, f"derive it from atp.base.errors.Error, or make it private: {sorted(others)}"


@pytest.mark.parametrize(
    "name", ["AgentError", "ConfigurationError", "LoadError", "ModelError", "NotJudged", "ScriptError"]
)
def test_errors_can_be_imported_from_atp(name: str) -> None:
    assert issubclass(getattr(atp, name), atp.Error)


def test_an_error_has_a_message_and_a_hint() -> None:
    error = atp.ConfigurationError("there is no agent", "name one")
    assert (str(error), error.hint) == ("there is no agent", "name one")


def test_the_errors_are_loaded_when_they_are_asked_for() -> None:
    script = "import atp, sys; atp.Error; print(*(name for name in sys.modules if name.startswith('atp')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"atp", "atp.base", "atp.base.errors"}
