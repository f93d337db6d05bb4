"""What code of others may do while it is imported, and how long that may take."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.support.project import Project
from tests.waiting import WAIT_LIMIT

from atp.base.errors import ConfigurationError
from atp.usercode.code_path import load_function

LOADS = """
import sys, time
from atp.usercode.importing import TakesTooLong, limit_imports, loading

limit_imports(0.5)
try:
    with loading():
        while True:
            try:
                time.sleep(60)
            except Exception:
                pass
except TakesTooLong as error:
    print(error)
limit_imports()
with loading():
    print("loaded")
"""


def test_an_import_that_hangs_is_given_up() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADS], check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=WAIT_LIMIT
    )
    assert ran.stdout == "it took longer than 0.5s\nloaded\n"


RAISED = {
    "BaseException": "raise BaseException('why')",
    "GeneratorExit": "raise GeneratorExit('why')",
    "CancelledError": "import asyncio; raise asyncio.CancelledError('why')",
    "BaseExceptionGroup": "raise BaseExceptionGroup('why', [SystemExit(0)])",
    "SystemExit": "raise SystemExit('why')",
}
UNTOLD = {
    "exits": "os._exit(0)",
    "leaves": "sys.exit(0)",
    "interrupts": "raise KeyboardInterrupt",
    "number": "return 5",
}


@pytest.mark.parametrize("name", RAISED)
def test_whatever_an_import_raises_is_an_error_of_the_configuration(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.py").write_text(RAISED[name])
    with pytest.raises(ConfigurationError, match=rf"bad.py can't be imported: {name}: why"):
        load_function("bad.py:run", [tmp_path])


@pytest.mark.parametrize("how", UNTOLD)
def test_an_exception_that_cannot_be_told(tmp_path: Path, how: str) -> None:
    text = f"import os, sys\nclass Bad(Exception):\n    def __str__(self):\n        {UNTOLD[how]}\nraise Bad\n"
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(ConfigurationError, match=r"bad.py can't be imported: Bad: \(its text can't be told\)"):
        load_function("bad.py:run", [tmp_path])


def test_a_fork_while_a_module_is_imported_does_not_run_the_tests_again(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import os
        os.fork()

        def run(prompt):
            with open("asked", "a") as file:
                print(prompt, file=file)
            return prompt
        """,
    )
    ran = project.test(project.cases("a", "b"), "-n", "agent.py:run")
    assert (ran.code, ran.statuses) == (0, {"a": "passed", "b": "passed"})
    assert project.lines("asked") == ["a", "b"]
    assert len(project.runs()) == 1
