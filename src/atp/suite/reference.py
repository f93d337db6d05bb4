"""References to agents and scripts, in the spelling that each key requires by the rules of the JSONL format."""

import re
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _prefixed_agent(text: str) -> str:
    if not text.startswith("agents:") or not text.removeprefix("agents:").strip():
        raise PydanticCustomError(
            "reference", "expected `agents:` and an agent's id, like `agents:{id}`", {"id": text or "my.validator"}
        )
    return text


def _bare_agent(text: str) -> str:
    if text.startswith("scripts:") and text != "scripts:":
        words = "expected no prefix: a function of `scripts/` is `{id}` here"
        raise PydanticCustomError("reference", words, {"id": text.replace(":", ".", 1)})
    if text.startswith(("agents:", "scripts:")) or not text.strip():
        bare = text.partition(":")[2] or "my.simulator"
        raise PydanticCustomError("reference", "expected an agent's id without a prefix, like `{id}`", {"id": bare})
    return text


def _script(text: str) -> str:
    name = text.removeprefix("scripts:") if text.startswith("scripts:") else text.removeprefix("scripts.")
    if name == text or len(parts := name.split(".")) < 2 or not all(parts):
        raise PydanticCustomError("reference", "expected `scripts:file.function` or `scripts.file.function`")
    return text


def _entry(text: str) -> str:
    if not re.fullmatch(r".*[^:\s]:[^\W\d]\w*(\.[^\W\d]\w*)*", text.strip()):
        raise PydanticCustomError("reference", "expected `module:function` or `path/to/file.py:function`")
    return text


PrefixedAgent = Annotated[str, AfterValidator(_prefixed_agent)]
"""`agents:` and an agent's id."""
BareAgent = Annotated[str, AfterValidator(_bare_agent)]
"""An agent's id without a prefix."""
Script = Annotated[str, AfterValidator(_script)]
"""`scripts:a.b` or `scripts.a.b`: function `b` of `scripts/a.py`."""
Entry = Annotated[str, AfterValidator(_entry)]
"""`module:function` or `path/to/file.py:function`."""
