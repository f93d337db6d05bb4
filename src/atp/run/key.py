"""A trial's key: a hash of what decides its result.

An edited case or agent gets another key and runs again; an untouched one keeps its key and does not.
"""

from hashlib import blake2b
from typing import Any

import msgspec

from atp.run.named_files import content, named_in
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
    return digest(config, [content(path) for path in named_in(config, named.base)])
