"""A trial's key: a hash of what decides its result.

An edited case or agent gets another key and runs again; an untouched one keeps its key and does not.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from atp.run.resolve import NamedAgent
from atp.suite.case import Case


def digest(*parts: Any) -> str:
    """A short hash of JSON values."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part if isinstance(part, bytes) else msgspec.json.encode(part, order="deterministic"))
        found.update(b"\0")
    return found.hexdigest()


def case_digest(case: Case) -> bytes:
    """All that a case says, but not where it stands: cases may be added before it."""
    return case.__pydantic_serializer__.to_json(case, exclude_unset=True)


def agent_digest(named: NamedAgent) -> str:
    """The agent's configuration and the content of the files it names."""
    config = named.agent.model_dump(mode="json")
    return digest(config, [_content(path) for path in _named_files(config, named.base)])


def _named_files(value: Any, base: Path) -> list[Path]:
    """Every text in a configuration that names a file: a program, a script, a prompt, `file.py:function`."""
    if isinstance(value, dict):
        return [path for item in value.values() for path in _named_files(item, base)]
    if isinstance(value, list):
        return [path for item in value for path in _named_files(item, base)]
    if not isinstance(value, str) or not value or len(value) > 1024 or "\0" in value:
        return []
    texts = {value, value.rpartition(":")[0], *value.split()}
    modules = {f"{text.replace('.', '/')}.py" for text in texts if text and "/" not in text}
    places = [folder / text for text in sorted(texts | modules) if text for folder in (base, Path.cwd())]
    return [path for path in places if path.is_file()]


def _content(path: Path) -> list[Any]:
    about = path.stat()
    if about.st_size > 64 * 2**20:  # a large program: its stamp has to do
        return [str(path), about.st_size, about.st_mtime_ns]
    return [str(path), blake2b(path.read_bytes(), digest_size=16).hexdigest()]
