"""The key of a trial: a hash of everything that decides its result, the content of named files included.

An edited case or agent gets another key and runs again; an untouched one keeps its key and does not. No absolute path
is in what is hashed, so that the same project has the same keys in another folder and on another machine.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from atp.agents.adapter import Adapter
from atp.base.errors import ConfigurationError
from atp.base.files import walk_files
from atp.base.project import working_directory
from atp.checks.golden_files import GoldenAgent, golden_names
from atp.checks.script import named_scripts
from atp.engine.named_agent import NamedAgent
from atp.journal.records import AgentInputs, NamedFile
from atp.suite.agent import PromptConfig
from atp.suite.case import Case
from atp.usercode.code_path import find_script, is_script

_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(*parts: Any) -> str:
    """Hash JSON values."""
    text = bytearray()
    for part in parts:
        text += _ENCODER.encode(part)
        text += b"\0"
    return blake2b(text, digest_size=16).hexdigest()


_ABOUT_ALL_RUNS = {"runs", "pass_rate", "confidence", "margin"}
"""Keys of a case that say how often it runs and how its runs are decided on: no result of a trial depends on them."""


def case_text(case: Case) -> msgspec.Raw:
    """Return what a trial's result depends on as JSON. The case's place is left out: cases may be added before it."""
    return msgspec.Raw(case.__pydantic_serializer__.to_json(case, exclude_unset=True, exclude=_ABOUT_ALL_RUNS))


def agent_inputs(named: NamedAgent, adapter: Adapter, root: Path, *, with_model: bool = True) -> AgentInputs:
    """What decides an agent's answers: its configuration, the files it names, and what its adapter names."""
    model = getattr(adapter, "runs_on", None) if with_model else None
    config = named.agent.model_dump(mode="json", exclude={"matrix"})  # a column has the values in its configuration
    if isinstance(named.agent.config, PromptConfig):
        config["config"]["path"] = _place(named.base / named.agent.config.path, root)
        for key in ("temperature", "max_tokens", "options"):  # not there in earlier versions, whose keys stay the same
            if not config["config"][key] and key not in named.agent.config.model_fields_set:
                del config["config"][key]
    keys = {path.resolve(): key for key, path in _named_by_key(config, named.base)}
    files = list(dict.fromkeys([*keys, *(path.resolve() for path in adapter.files if path.is_file())]))
    contents = [[_place(path, root), *content(path)] for path in files]
    config, variables = _portable(config, root), _portable(dict(adapter.variables), root)
    listed = zip(files, contents, strict=True) if len(files) <= MOST_LISTED else ()
    return AgentInputs(
        digest=digest(config, contents, variables, *([model] if model else ())),
        config=digest(config),
        variables=digest(variables) if variables else None,
        model=digest(model) if model else None,
        files={place: NamedFile(digest=str(known[0]), key=keys.get(path, "")) for path, (place, *known) in listed},
    )


MOST_LISTED = 100
"""The files of an agent with more, an image that is built for example, are not listed one by one."""


def _place(path: Path, root: Path) -> str:
    """The path from the project's root; of a file outside, its name: a key must not depend on where a project is."""
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _portable(value: Any, root: Path) -> Any:
    """The value with paths written as `_place` writes them, also inside texts. Other folders keep their paths."""
    if isinstance(value, dict):
        return {key: _portable(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_portable(item, root) for item in value]
    if not isinstance(value, str) or "/" not in value or len(root.parts) < 2:
        return value
    path, colon, function = value.rpartition(":")
    for text, rest in ((value, ""), (path, colon + function)):
        if text.startswith("/") and "\0" not in text and len(text) <= LONGEST_PATH and os.path.isfile(text):
            return _place(Path(text), root) + rest
    return re.sub(rf"(?<![\w./-]){re.escape(str(root))}(?:/|(?![\w.-]))", "", value)


LARGEST = 64 * 2**20
"""Bytes. A larger file is identified by size and modification time."""
LONGEST_PATH = 1024
"""Characters. A longer text in a configuration names no file."""


def named_in(value: Any, base: Path) -> list[Path]:
    """Find every file that a text in a configuration names: a program, a script, a prompt, `file.py:function`."""
    return [path for _, path in _named_by_key(value, base)]


def _named_by_key(value: Any, base: Path, key: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the same files, each with the key that names it: `config.environment.LOG`."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _named_by_key(item, base, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _named_by_key(item, base, f"{key}[{number}]")
    elif isinstance(value, str) and value and len(value) <= LONGEST_PATH and "\0" not in value:
        texts = {value, value.rpartition(":")[0], *value.split()}
        modules = {f"{text.replace('.', '/')}.py" for text in texts if text and "/" not in text}
        places = [folder / text for text in sorted(texts | modules) if text for folder in (base, working_directory())]
        yield from ((key, path) for path in places if path.is_file())


def content(path: Path) -> list[Any]:
    """Identify the content of a file."""
    about = path.stat()
    if about.st_size > LARGEST:
        return [about.st_size, about.st_mtime_ns]
    return [blake2b(path.read_bytes(), digest_size=16).hexdigest()]


class CaseFiles:
    """The files that the results of a suite's cases depend on. Each is read once."""

    def __init__(
        self, folder: Path, fixtures: Path | None, root: Path, golden: Path | None = None, *, updates: bool = False
    ) -> None:
        """Paths in the suite are relative to `folder`. Its golden files are in `golden`.

        `updates`: the run writes golden files.
        """
        self._folder = folder
        self._root = root
        self._golden = golden
        self._updates = updates
        self._known: dict[Path, Any] = {}
        self._fixtures = [self._read(fixtures)] if fixtures is not None else []

    def of(self, case: Case, base: Path) -> list[Any]:
        """Identify the content of the files of a case, golden files left out; `base` is the folder of the agent."""
        found = list(self._fixtures)
        if case.workspace is not None:
            found.append(self._read(self._folder / case.workspace))
        for hook in (case.before_hook, case.after_hook):
            if hook is not None and is_script(hook):
                found += self._script(hook, (self._folder, self._root))
            elif hook is not None:
                found += [self._read(path) for path in named_in(hook, self._folder)]
        for script in named_scripts(case.asserted):
            found += self._script(script, (base, self._folder, self._root))
        for message in case.messages:
            found += [self._read(self._folder / name) for name in message.files]
        return found

    def golden(self, case: Case, agent: GoldenAgent, variations: int) -> list[Any]:
        """The golden files of a case with snapshots, as they are before the run: those of an agent and of variations.

        A run that writes golden files does not depend on what was in them: a run that goes on with it finds others.
        """
        if self._golden is None:
            return []
        if self._updates:
            return [["updates"]]
        names = [name for number in range(variations) for name in golden_names(case, agent, number).values()]
        return [[], *(self._read(self._golden / name) for name in names)]

    def _script(self, name: str, folders: tuple[Path, ...]) -> list[Any]:
        with suppress(ConfigurationError):  # the check, or the plan, reports it
            return [self._read(find_script(name, folders)[0])]
        return []

    def _read(self, path: Path) -> Any:
        if path not in self._known:
            known = _tree(path) if path.is_dir() else content(path) if path.is_file() else []
            self._known[path] = [_place(path, self._root), *known]
        return self._known[path]


def _tree(folder: Path) -> list[Any]:
    return [[name, *content(path)] for name, path in sorted(walk_files(folder)) if path.is_file()]
