"""The help of every command, and the completion of a shell."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from atp.cli.main import COMMANDS, EXAMPLES, GROUPS, cli


def _command(words: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """The command that the words call, below groups, too, and the words that are left for it."""
    command: click.Command = cli
    context = click.Context(cli, info_name="atp")
    while isinstance(command, click.Group) and words and (found := command.get_command(context, words[0])):
        context = click.Context(found, parent=context, info_name=words[0])
        command, words = found, words[1:]
    return command, context, words


def test_every_command_is_in_a_group_and_has_two_examples() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS)
    assert {name for name in COMMANDS if len(EXAMPLES.get(name, ())) < 2} == set()


@pytest.mark.parametrize("example", [one for examples in EXAMPLES.values() for one in examples])
def test_examples_are_commands_that_are_understood(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()  # some commands look whether what they are given is there
    (tmp_path / "labels.jsonl").touch()
    name, *words = shlex.split(example.partition(" > ")[0])
    assert name == "atp"
    command, context, rest = _command(words)
    assert command is not cli
    command.make_parser(context).parse_args(list(rest))
    command.parse_args(context, list(rest))


def test_help_shows_groups_and_examples(run: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    out = run("--help").stdout
    for heading in GROUPS:
        assert f"\n{heading}:\n" in out
    assert "\nOther:\n" not in out
    told = run("report", "--help").stdout
    for example in EXAMPLES["report"]:
        assert f"\n    {example}\n" in told


def _complete(tmp_path: Path, words: str, **shell: str) -> list[str]:
    environment = {**os.environ, "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), **shell}
    command = [sys.executable, "-m", "atp"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell(tmp_path: Path, shell: str) -> None:
    script = "\n".join(_complete(tmp_path, "", _ATP_COMPLETE=f"{shell}_source"))
    assert "_ATP_COMPLETE" in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_what_is_completed(tmp_path: Path) -> None:
    assert _complete(tmp_path, "atp rec", _ATP_COMPLETE="bash_complete") == ["plain,recheck"]
    assert "plain,--search" in _complete(tmp_path, "atp report --se", _ATP_COMPLETE="bash_complete")
    assert _complete(tmp_path, "atp test sui", _ATP_COMPLETE="bash_complete") == ["file,sui"]
