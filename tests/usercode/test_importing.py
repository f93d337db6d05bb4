"""What code of others may do while it is imported, and how long that may take."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.support.project import Project, left_of
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
    with pytest.raises(ConfigurationError, match=r"bad.py can't be imported: Bad: \(str\(\) of the exception failed\)"):
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


STARTS = {
    "process": "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "fork": "import multiprocessing as m, time; m.get_context('fork').Process(target=time.sleep, args=(600,)).start()",
}


@pytest.mark.parametrize("flags", [[], ["--dry-run"], ["-n", "missing.py:run"]], ids=["run", "dry run", "error"])
@pytest.mark.parametrize("how", STARTS)
def test_what_a_module_starts_when_it_is_imported_ends_with_the_run(
    project: Project, how: str, flags: list[str]
) -> None:
    project.write("agent.py", f"{STARTS[how]}\ndef run(prompt):\n    return prompt\n")
    mark = f"importing-{project.folder}"
    ran = project.atp("test", project.cases("a"), "-n", "agent.py:run", *flags, env={"TEST_MARK": mark})
    assert ran.code == (2 if "missing.py:run" in flags else 0), ran.err
    assert left_of(mark) == []
