"""Finding functions: in files, in modules beside the suite, in what is installed."""

import sys
from pathlib import Path
from typing import Any

import pytest

from atp.base.errors import ConfigurationError
from atp.usercode.code_path import load_function


@pytest.fixture(autouse=True)
def clean_modules() -> Any:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def load(entry: str, base: Path, *search: Path) -> Any:
    return load_function(entry, (base, *search))()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_file_relative_to_the_suite(tmp_path: Path) -> None:
    write(tmp_path / "deep/agent.py", "import helper\ndef f(): return helper.X")
    write(tmp_path / "deep/helper.py", "X = 7")
    assert load("deep/agent.py:f", tmp_path) == 7


def test_file_in_a_further_folder(tmp_path: Path) -> None:
    write(tmp_path / "b/agent.py", "def f(): return 1")
    assert load("agent.py:f", tmp_path / "a", tmp_path / "b") == 1


def test_two_suites_have_a_file_of_the_same_name(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name / "agent.py", f"def f(): return {name!r}")
    assert [load("agent.py:f", tmp_path / name) for name in "aba"] == ["a", "b", "a"]


def test_changed_file_is_loaded_again(tmp_path: Path) -> None:
    file = write(tmp_path / "agent.py", "def f(): return 1")
    assert load("agent.py:f", tmp_path) == 1
    file.write_text("def f(): return 222")
    assert load("agent.py:f", tmp_path) == 222


def test_file_with_dataclasses(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n  x: int = 3\n"
    write(tmp_path / "agent.py", f"{text}def f(): return A().x")
    assert load("agent.py:f", tmp_path) == 3


def test_module_in_the_working_directory_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "here/my_agent.py", "def f(): return 'here'")
    write(tmp_path / "suite/my_agent.py", "def f(): return 'beside'")
    monkeypatch.chdir(tmp_path)
    assert load("my_agent:f", tmp_path / "suite") == "beside"
    monkeypatch.chdir(tmp_path / "here")
    assert load("my_agent:f", tmp_path / "suite") == "here"


def test_modules_of_the_same_name_in_two_suites(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name / "pack/inner.py", f"X = {name!r}")
        write(tmp_path / name / "pack/agent.py", "from pack.inner import X\ndef f(): return X")
    assert [load("pack.agent:f", tmp_path / name) for name in "ab"] == ["a", "b"]


def test_installed_module_and_nested_name(tmp_path: Path) -> None:
    found = load_function("pathlib:Path.cwd", (tmp_path,))
    assert found() == Path.cwd()


def test_python_s_own_modules_are_not_replaced(tmp_path: Path) -> None:
    write(tmp_path / "calendar.py", "raise RuntimeError")
    write(tmp_path / "agent.py", "import calendar\ndef f(): return calendar.isleap(2000)")
    sys.modules.pop("calendar", None)
    assert load("agent:f", tmp_path) is True


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("agent", "names no function"),
        ("agent:", "names no function"),
        (":f", "names no function"),
        ("nowhere.py:f", "the file nowhere.py is not there"),
        ("no_such_module_xyz:f", "No module named 'no_such_module_xyz'"),
        ("good.py:g", "there is no `g`"),
        ("good:f.g", "there is no `f.g`"),
        ("syntax.py:f", "SyntaxError"),
        ("breaks.py:f", "ZeroDivisionError: division by zero"),
        ("exits.py:f", "SystemExit: 2"),
        ("needs.py:f", "ModuleNotFoundError: No module named 'not_installed_xyz'"),
    ],
)
def test_what_is_wrong_is_a_matter_of_configuration(tmp_path: Path, entry: str, words: str) -> None:
    write(tmp_path / "good.py", "def f(): return 1")
    write(tmp_path / "syntax.py", "def f(:")
    write(tmp_path / "breaks.py", "\n1 / 0")
    write(tmp_path / "exits.py", "import sys\nsys.exit(2)")
    write(tmp_path / "needs.py", "import not_installed_xyz")
    with pytest.raises(ConfigurationError) as caught:
        load(entry, tmp_path)
    assert words in str(caught.value)
    if entry.startswith("breaks"):
        assert f"({tmp_path / 'breaks.py'}, line 2)" in str(caught.value)


def test_failed_import_leaves_no_half_module(tmp_path: Path) -> None:
    file = write(tmp_path / "agent.py", "1 / 0")
    with pytest.raises(ConfigurationError):
        load("agent.py:f", tmp_path)
    file.write_text("def f(): return 1")
    assert load("agent.py:f", tmp_path) == 1


def test_what_a_module_prints_when_it_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "agent.py", "print('loading')\ndef f(): return 1")
    load("agent.py:f", tmp_path)
    assert capsys.readouterr() == ("", "loading\n")
