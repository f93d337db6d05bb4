"""The commands that run a case or a whole run again.

A command repeats the flags that were given and that a result may depend on. Settings of `atp.toml` and of the
environment apply again by themselves; as flags, they would override the keys of a case. Paths in flags start from the
directory in which the run was started, so a command that is printed in another one begins with `cd`.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from atp.base.project import find_root, runs_folder, working_directory
from atp.base.secrets import Hide
from atp.engine.prepare.columns import split_column
from atp.engine.prepare.options import settings
from atp.engine.prepare.sources import is_reference
from atp.journal.records import RunInfo
from atp.suite.result import CaseResult

_DECIDING = (
    "connector",
    "user",
    "team",
    "locale",
    "ctx",
    "simulator",
    "assessor",
    "generator",
    "role_connector",
    "judge_each",
    "judge_cache",
    "weak_judge",
    "replay",
    "runs",
    "timeout",
    "retries",
    "env_file",
    "before_all",
    "after_all",
)
"""Settings that a trial's result may depend on."""
_OF_RUN = ("run", "tags")
"""Settings that choose among the cases of the input."""
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")


def case_command(case: CaseResult, info: RunInfo, hide: Hide) -> str:
    """The command for one case and agent. Secrets are masked before the text is escaped."""
    words = ["atp", "test", *_input(case, info, hide)]
    if case.file is not None:
        words += ["--run", f"^{_pattern(hide(case.case))}$"]
    words += [word for name in _agents(case, info) for word in ("-n", hide(name))]
    words += _flags(info, _DECIDING, hide)
    return _in_directory(info, words)


def run_name(info: RunInfo) -> str:
    """The argument that `atp report` takes for a run: its id, or its folder if that is in another project."""
    folder = Path(info.folder).resolve()
    if runs_folder(find_root(working_directory())) == folder.parent:
        return info.id
    here = working_directory()
    return shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))


def run_command(info: RunInfo, hide: Hide) -> str:
    """The command for a whole run."""
    words = ["atp", "test"]
    for text in hide(info.input):
        words += [_given_path(text, info)] if os.path.exists(text) else ["-i", text]
    words += [word for name in info.given_options.get("name", ()) for word in ("-n", hide(name))]
    words += _flags(info, (*_OF_RUN, *_DECIDING), hide)
    return _in_directory(info, words)


def _in_directory(info: RunInfo, words: Sequence[str]) -> str:
    command = shlex.join(words)
    return command if info.started_in is None else f"cd {shlex.quote(info.started_in)} && {command}"


def _given_path(path: str, info: RunInfo) -> str:
    """A path as the run was given it: from the directory in which the run was started."""
    return path if info.started_in is None or os.path.isabs(path) else os.path.relpath(path, info.started_in)


def _input(case: CaseResult, info: RunInfo, hide: Hide) -> list[str]:
    """The arguments that name the case's file; its message, if it has no file; for a test in Python, its module."""
    if case.file is not None and not case.file.endswith(".py"):
        return [hide(_given_path(case.file, info))]
    if case.file is None:
        named = [text for text in info.input if text == case.input] or info.input
    else:
        named = [text for text in info.input if is_reference(text)] or info.input
    return [word for text in hide(named) for word in ("-i", text)]


def _agents(case: CaseResult, info: RunInfo) -> Sequence[str]:
    """The names for `-n`: as they were given, of several only the case's; else the agent of a YAML suite.

    Agents that were found without being named, such as a Markdown file's target, are found again.
    """
    given: Sequence[str] = info.given_options.get("name", ())
    if given:
        return [column for name in given if (column := _called(name, case.agent))] or given
    return [case.agent] if case.file is not None and case.file.endswith((".yaml", ".yml")) else ()


def _called(spelled: str, agent: str) -> str | None:
    """The text for `-n` that names the agent, if `spelled` names it, or an agent of which it is a column.

    An agent in a file is called by the file's path, with dots.
    """
    dotted = f".{spelled.removesuffix('.md').replace('/', '.')}" if spelled.endswith(".md") else None
    for name in (agent, *split_column(agent)):
        if spelled == name or (dotted is not None and dotted.endswith(f".{name}")):
            return spelled + agent[len(name) :]
    return None


@cache
def _flag(name: str) -> str:
    return next(iter(settings()[name]["flags"]), f"--{name.replace('_', '-')}")


def _flags(info: RunInfo, names: Sequence[str], hide: Hide) -> Iterator[str]:
    for name in names:
        if (value := info.given_options.get(name)) is None:
            continue
        flag = _flag(name)
        if isinstance(value, bool):
            yield flag if value else f"--no-{flag.removeprefix('--')}"
        else:
            for one in value if isinstance(value, list) else [value]:
                yield from (flag, str(hide(_text(one))))


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _pattern(text: str) -> str:
    """A regular expression for exactly this text, without a character that could steer a terminal."""
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    return "".join(one if one.isprintable() else _escape(one) for one in escaped)


def _escape(one: str) -> str:
    return f"\\U{ord(one):08x}" if ord(one) > 0xFFFF else f"\\u{ord(one):04x}"
