"""`atp convert`: one format into another."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]

SUITE = """\
test_suite: in
agents: [{name: a, type: prompt, config: {path: agents/a.md}}]
tests: [{id: one, name: One, input: Hello, expectations: [It greets]}]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.yaml").write_text(SUITE)
    return tmp_path


@pytest.mark.parametrize("out", ["out.yaml", "out.YML", "out.jsonl", "out.json", "out.test.md"])
def test_the_extension_tells_the_format(run: Run, here: Path, out: str) -> None:
    done = run("convert", "in.yaml", "-o", out)
    assert done.returncode == 0
    assert done.stdout.startswith(f"wrote {out}")
    shown = json.loads(run("show", "--json", "-n", "x", "--assessor", "y", out).stdout)
    assert [(case["id"], case["name"], case["expectations"]) for case in shown["cases"]] == [
        ("one", "One", ["It greets"])
    ]
    assert shown["diagnostics"] == []


def test_losses_are_listed_on_stderr(run: Run, here: Path) -> None:
    done = run("convert", "in.yaml", "-o", "out.jsonl")
    assert done.returncode == 0
    assert done.stderr == "lost: suite: agents (`a`)\n"
    assert done.stdout == "wrote out.jsonl, 1 thing lost\n"


def test_stdout_gets_the_file_and_nothing_else(run: Run, here: Path) -> None:
    done = run("convert", "in.yaml", "-o", "-", "--to", "jsonl")
    assert done.returncode == 0
    assert done.stdout == '{"id": "one", "name": "One", "input": "Hello", "expectations": ["It greets"]}\n'
    assert sorted(os.listdir(here)) == ["in.yaml"]


def test_text_stays_what_it_is_whatever_the_locale(atp: Run, here: Path) -> None:
    (here / "in.jsonl").write_text('{"id": "é", "input": "漢字"}\n', encoding="utf-8")
    env = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = atp("convert", "in.jsonl", "-o", "-", "--to", "jsonl", env=env)
    assert (done.returncode, done.stdout) == (0, '{"id": "é", "input": "漢字"}\n')
    assert atp("convert", "in.jsonl", "-o", "out.jsonl", env=env).returncode == 0
    assert (here / "out.jsonl").read_text(encoding="utf-8") == done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "-"], "does not show the format"),
        (["-o", "out.txt"], "does not show the format"),
        (["-o", "out.md"], "does not show the format"),
        (["-o", "out.yaml", "--to", "md"], "out.yaml is yaml by its name, and --to says md"),
        (["--to", "md"], "Missing option '-o'"),
        (["-o", "out.toml", "--to", "toml"], "'toml' is not one of"),
    ],
)
def test_bad_usage_ends_with_2(run: Run, here: Path, arguments: list[str], said: str) -> None:
    done = run("convert", "in.yaml", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert sorted(os.listdir(here)) == ["in.yaml"]


def test_several_files_are_bad_usage(run: Run, here: Path) -> None:
    (here / "other.jsonl").write_text('{"id": "a", "input": "b"}\n')
    done = run("convert", ".", "-o", "out.yaml")
    assert done.returncode == 2
    assert "PATH means 2" in done.stderr


def test_nothing_is_overwritten_unless_forced(run: Run, here: Path) -> None:
    out = here / "out.jsonl"
    out.write_text("mine")
    out.chmod(0o640)
    done = run("convert", "in.yaml", "-o", "out.jsonl")
    assert done.returncode == 2
    assert "give --force" in done.stderr
    assert out.read_text() == "mine"
    assert run("convert", "in.yaml", "-o", "out.jsonl", "--force").returncode == 0
    assert out.read_text().startswith("{")
    assert out.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(here)) == ["in.yaml", "out.jsonl"]


def test_a_file_can_be_converted_onto_itself(run: Run, here: Path) -> None:
    assert run("convert", "in.yaml", "-o", "in.yaml", "--force").returncode == 0
    once = (here / "in.yaml").read_text()
    assert run("convert", "in.yaml", "-o", "in.yaml", "--force").returncode == 0
    assert (here / "in.yaml").read_text() == once


def test_mistakes_are_shown_and_nothing_is_written(run: Run, here: Path) -> None:
    (here / "in.yaml").write_text(SUITE.replace("expectations", "expectation"))
    done = run("convert", "in.yaml", "-o", "out.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[unknown-key]" in done.stderr
    assert "in.yaml:3:" in done.stderr
    assert sorted(os.listdir(here)) == ["in.yaml"]


@pytest.mark.parametrize("path", ["missing.yaml", "in.txt"])
def test_an_input_that_is_no_test_file_ends_with_2(run: Run, here: Path, path: str) -> None:
    done = run("convert", path, "-o", "out.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert not (here / "out.jsonl").exists()


def test_the_command_line_may_name_what_the_file_lacks(run: Run, here: Path) -> None:
    (here / "in.yaml").write_text(SUITE.replace("agents: [", "# ["))
    assert run("convert", "in.yaml", "-o", "out.jsonl").returncode == 2
    assert run("convert", "in.yaml", "-o", "out.jsonl", "-n", "agents/a.md").returncode == 0


def test_a_suite_that_the_format_cannot_say_at_all_is_not_written(run: Run, here: Path) -> None:
    (here / "in.jsonl").write_text('{"id": "a", "messages": [{"role": "system", "content": "b"}]}\n')
    done = run("convert", "in.jsonl", "-o", "out.test.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert "lost: case `a`: everything" in done.stderr
    assert not (here / "out.test.md").exists()


def test_a_folder_that_cannot_be_written_to_is_an_error(run: Run, here: Path) -> None:
    (here / "locked").symlink_to("/proc/self")  # locked for root, too
    done = run("convert", "in.yaml", "-o", "locked/out.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "locked/out.jsonl cannot be written" in done.stderr


def test_a_folder_that_is_not_there_is_an_error(run: Run, here: Path) -> None:
    done = run("convert", "in.yaml", "-o", "none/out.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "none/out.jsonl cannot be written: No such file or directory" in done.stderr


def test_only_a_regular_file_is_replaced(run: Run, here: Path) -> None:
    os.mkfifo(here / "out.jsonl")
    done = run("convert", "in.yaml", "-o", "out.jsonl", "--force")
    assert (done.returncode, done.stdout) == (2, "")
    assert "out.jsonl cannot be written: not a regular file" in done.stderr
    assert (here / "out.jsonl").is_fifo()


def test_a_symbolic_link_stays_one(run: Run, here: Path) -> None:
    (here / "real.jsonl").write_text("mine")
    (here / "out.jsonl").symlink_to("real.jsonl")
    assert run("convert", "in.yaml", "-o", "out.jsonl", "--force").returncode == 0
    assert (here / "out.jsonl").is_symlink()
    assert (here / "real.jsonl").read_text().startswith("{")


def test_another_folder_is_pointed_out(run: Run, here: Path) -> None:
    (here / "below").mkdir()
    done = run("convert", "in.yaml", "-o", "below/out.yaml")
    assert done.returncode == 0
    assert done.stderr == "note: paths in it now start from another folder\n"


def test_secrets_do_not_come_out(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hush-hush")
    (here / "in.yaml").write_text(SUITE.replace("Hello", '"Log in with ${MY_TOKEN}"'))
    done = run("convert", "in.yaml", "-o", "out.yaml")
    assert done.returncode == 0
    assert done.stderr == "lost: case `one`: input (a secret: ${INPUT_SECRET} stands there)\n"
    assert "input: Log in with ${INPUT_SECRET}\n" in (here / "out.yaml").read_text()
