"""The key of a trial: a hash of everything that decides its result, the content of named files included.

An edited case or agent gets another key and runs again; an untouched one keeps its key and does not.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from atp.agents.adapter import Adapter
from atp.base.errors import ConfigurationError
from atp.checks.script import named_scripts
from atp.engine.prepare.agents import NamedAgent
from atp.suite.agent import PromptConfig
from atp.suite.case import Case
from atp.usercode.code_path import find_script


def digest(*parts: Any) -> str:
    """Hash JSON values."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(msgspec.json.encode(part, order="deterministic"))
        found.update(b"\0")
    return found.hexdigest()


def case_text(case: Case) -> msgspec.Raw:
    """Return the case as JSON, without its place: cases may be added before it."""
    return msgspec.Raw(case.__pydantic_serializer__.to_json(case, exclude_unset=True))


def agent_digest(named: NamedAgent, adapter: Adapter | None = None) -> str:
    """Hash the configuration of an agent, the files it names, and the files and variables that its adapter names."""
    config = named.agent.model_dump(mode="json")
    files = named_in(config, named.base)
    if adapter is None:
        return digest(config, [content(path) for path in files])
    files = list(dict.fromkeys([*files, *adapter.files]))
    return digest(config, [content(path) for path in files if path.is_file()], dict(adapter.variables))


def role_digest(named: NamedAgent, adapter: Adapter, root: Path) -> str:
    """Hash the agent of a role independently of the project's place: recorded answers are replayed elsewhere."""
    config = named.agent.model_dump(mode="json")
    if isinstance(named.agent.config, PromptConfig):
        config["config"]["path"] = _inside(named.base / named.agent.config.path, root)
    files = dict.fromkeys(path.resolve() for path in [*named_in(config, named.base), *adapter.files] if path.is_file())
    contents = [[_inside(path, root), *content(path)[1:]] for path in files]
    return digest(config, contents, dict(adapter.variables))


def _inside(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


LARGEST = 64 * 2**20
"""Bytes. A larger file is identified by size and modification time."""


def named_in(value: Any, base: Path) -> list[Path]:
    """Find every file that a text in a configuration names: a program, a script, a prompt, `file.py:function`."""
    if isinstance(value, dict):
        return [path for item in value.values() for path in named_in(item, base)]
    if isinstance(value, list):
        return [path for item in value for path in named_in(item, base)]
    if not isinstance(value, str) or not value or len(value) > 1024 or "\0" in value:
        return []
    texts = {value, value.rpartition(":")[0], *value.split()}
    modules = {f"{text.replace('.', '/')}.py" for text in texts if text and "/" not in text}
    places = [folder / text for text in sorted(texts | modules) if text for folder in (base, Path.cwd())]
    return [path for path in places if path.is_file()]


def content(path: Path) -> list[Any]:
    """Identify the content of a file."""
    about = path.stat()
    if about.st_size > LARGEST:
        return [str(path), about.st_size, about.st_mtime_ns]
    return [str(path), blake2b(path.read_bytes(), digest_size=16).hexdigest()]


class CaseFiles:
    """The files that the results of a suite's cases depend on. Each is read once."""

    def __init__(self, folder: Path, fixtures: Path | None, root: Path) -> None:
        """Paths in the suite are relative to `folder`."""
        self._folder = folder
        self._root = root
        self._known: dict[Path, Any] = {}
        self._fixtures = [self._read(fixtures)] if fixtures is not None else []

    def of(self, case: Case, base: Path) -> list[Any]:
        """Identify the content of the files of a case; `base` is the folder of the agent."""
        found = list(self._fixtures)
        if case.workspace is not None:
            found.append(self._read(self._folder / case.workspace))
        for hook in (case.before_hook, case.after_hook):
            if hook is not None:
                found += [self._read(path) for path in named_in(hook, self._folder)]
        for script in named_scripts(case.asserted):
            with suppress(ConfigurationError):  # the check reports it
                found.append(self._read(find_script(script, (base, self._folder, self._root))[0]))
        for message in case.messages:
            if isinstance(message.content, list):
                found += [self._read(path) for path in self._attached(message.content)]
        return found

    def _attached(self, parts: list[Any]) -> Iterator[Path]:
        for part in parts:
            source = getattr(part, "source", None)
            if isinstance(source, str) and source.startswith("file://"):
                yield self._folder / unquote(source.removeprefix("file://"))

    def _read(self, path: Path) -> Any:
        if path not in self._known:
            self._known[path] = _tree(path) if path.is_dir() else content(path) if path.is_file() else str(path)
        return self._known[path]


def _tree(folder: Path) -> list[Any]:
    files = [Path(here, name) for here, _, names in os.walk(folder) for name in names]
    return [content(path) for path in sorted(files) if path.is_file()]
