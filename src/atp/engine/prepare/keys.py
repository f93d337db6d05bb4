"""A trial's key: a hash of what decides its result.

An edited case or agent gets another key and runs again; an untouched one keeps its key and does not.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from atp.agents.adapter import Adapter
from atp.engine.prepare.agents import NamedAgent
from atp.engine.prepare.named_files import content, named_in
from atp.suite.agent import PromptConfig
from atp.suite.case import Case


def digest(*parts: Any) -> str:
    """A short hash of JSON values."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(msgspec.json.encode(part, order="deterministic"))
        found.update(b"\0")
    return found.hexdigest()


def case_text(case: Case) -> msgspec.Raw:
    """All that a case says, as JSON, but not where it stands: cases may be added before it."""
    return msgspec.Raw(case.__pydantic_serializer__.to_json(case, exclude_unset=True))


def agent_digest(named: NamedAgent, adapter: Adapter | None = None) -> str:
    """The agent's configuration, the content of the files it names, and what else its adapter says decides."""
    config = named.agent.model_dump(mode="json")
    files = named_in(config, named.base)
    if adapter is None:
        return digest(config, [content(path) for path in files])
    files = list(dict.fromkeys([*files, *adapter.files]))
    return digest(config, [content(path) for path in files if path.is_file()], dict(adapter.variables))


def role_digest(named: NamedAgent, adapter: Adapter, root: Path) -> str:
    """The same for who plays a role, wherever the project stands: what it answered is kept for others to replay."""
    config = named.agent.model_dump(mode="json")
    if isinstance(named.agent.config, PromptConfig):
        config["config"]["path"] = _inside(named.base / named.agent.config.path, root)
    files = dict.fromkeys(path.resolve() for path in [*named_in(config, named.base), *adapter.files] if path.is_file())
    contents = [[_inside(path, root), *content(path)[1:]] for path in files]
    return digest(config, contents, dict(adapter.variables))


def _inside(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
