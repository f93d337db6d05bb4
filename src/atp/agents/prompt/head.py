"""The head of a prompt agent: the keys in the frontmatter of `agents/x.md`, or in `package.yao`."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field, model_validator
from pydantic_core import PydanticCustomError

from atp.agents.tools import tool_name
from atp.base.diagnostics import Diagnostics, Place
from atp.loader.validate import DataPath, Locator, validate
from atp.suite.matcher import check_no_matchers
from atp.suite.paths import JsonSchemaObject
from atp.suite.record import Amount, Count, Json, JsonObject, Record, Text
from atp.suite.reference import Entry

MOST_STEPS = 20
"""Calls of the model in one turn, if the agent doesn't say otherwise."""


_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CannedAnswer(Record):
    """A prepared answer. One of `result`, `error` and `results` must be given."""

    result: Json = None
    """The result of every call."""
    error: Text | None = None
    """The error of every call."""
    results: Annotated[list[Json], Field(min_length=1)] | None = None
    """The results of the calls, in order; `{"error": "…"}` is an error, `{"result": …}` a result of any form."""

    @property
    def given(self) -> list[str]:
        """The keys of the answer that are given."""
        return [name for name in ("result", "error", "results") if name in self.model_fields_set]


def _check_answer(answer: CannedAnswer, may_be_missing: bool) -> None:
    if len(answer.given) > 1:
        key = answer.given[1]
        raise PydanticCustomError(
            "given_twice", "give one of `result`, `error` and `results`, not two", {"key": key, "hint": f"drop `{key}`"}
        )
    if not answer.given and not may_be_missing:
        raise PydanticCustomError("no_answer", "it has no answer: give `result`, `error` or `results`")


class CannedCase(CannedAnswer):
    """A prepared answer to certain calls."""

    arguments: Annotated[JsonObject, AfterValidator(check_no_matchers)]
    """A recursive subset of the call's arguments."""

    @model_validator(mode="after")
    def _has_one_answer(self) -> "CannedCase":
        _check_answer(self, may_be_missing=False)
        return self


class CannedTool(CannedAnswer):
    """A tool with prepared answers. It stands in for a command, an agent or an MCP tool of the same name."""

    description: str | None = None
    """The description for the model; by default that of the tool that it stands in for."""
    parameters: JsonSchemaObject | None = None
    """The JSON Schema of its arguments; by default that of the tool that it stands in for."""
    when: list[CannedCase] = Field(default_factory=list)
    """Answers to certain calls: the first that matches. Other calls get the answer beside `when`."""

    @model_validator(mode="after")
    def _has_one_answer(self) -> "CannedTool":
        _check_answer(self, may_be_missing=bool(self.when))
        return self


class PromptHead(Record):
    """The settings of a prompt agent, beside its prompts."""

    name: Text | None = None
    """The name for people."""
    description: str | None = None
    """The purpose of the agent; the description of the tool for an agent that uses it as one."""
    connector: Text | None = Field(default=None, validation_alias=AliasChoices("connector", "model"))
    """The model to use."""
    temperature: Amount | None = None
    """The model's temperature."""
    max_tokens: Count | None = None
    """The longest answer."""
    options: JsonObject = Field(default_factory=dict, validation_alias=AliasChoices("options", "settings"))
    """Further settings of the model."""
    commands: list[Entry] = Field(default_factory=list)
    """Python functions as tools: `module:function` or `file.py:function`."""
    agents: list[Text] = Field(default_factory=list)
    """Other agents as tools, by id or path."""
    mcp: Json = None
    """MCP servers as tools."""
    tools: dict[str, CannedTool] = Field(default_factory=dict)
    """Tools with prepared answers, by name."""
    max_steps: Count = MOST_STEPS
    """How often the model may be called in one turn."""
    matrix: Json = None
    """Lists of values to try, by key: `model`, `temperature`, `max_tokens`, `options.top_p` …"""
    type: Text | None = None
    """The kind of agent, if not a prompt."""
    config: Json = None
    """The configuration of that kind."""

    @model_validator(mode="after")
    def _settings_once(self) -> "PromptHead":
        for key in ("temperature", "max_tokens"):
            if getattr(self, key) is not None and key in self.options:
                raise PydanticCustomError("given_twice", "`{key}` is given twice, also in `options`", {"key": key})
        return self

    @property
    def tool_names(self) -> list[str]:
        """The names of the agent's tools, but for those that only a running MCP server knows."""
        return [*map(command_name, self.commands), *map(tool_name, self.agents), *self.tools]

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the model."""
        own = {key: value for key in ("temperature", "max_tokens") if (value := getattr(self, key)) is not None}
        return {**self.options, **own}


def command_name(entry: str) -> str:
    """The name of the tool that a function is."""
    return tool_name(entry.rpartition(":")[2].rpartition(".")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The content of a prompt agent's files."""

    path: Path
    """The file with the head. Paths in the head start at the file's folder."""
    head: PromptHead
    """The agent's settings."""
    prompts: list[dict[str, str]] = field(default_factory=list)
    """The messages before each conversation. Their variables are replaced at each turn."""
    locate: Locator | None = None
    """Finds places in the head; None without a head."""


def read_head(raw: dict[str, Any], notes: Diagnostics, locate: Locator) -> PromptHead:
    """Read the head of an agent. Mistakes are added to `notes`."""
    tools = raw.get("tools")
    if not isinstance(tools, dict):
        return validate(PromptHead, raw, notes, locate) or PromptHead()
    # Each tool on its own, so that the hint for a misspelt key names the keys of a tool.
    head = (
        validate(PromptHead, {key: value for key, value in raw.items() if key != "tools"}, notes, locate)
        or PromptHead()
    )
    for name, table in tools.items():
        here = ("tools", name)
        if not _TOOL_NAME.fullmatch(name):
            message = f"{name!r} is no name that models take for a tool"
            notes.error("tool", message, locate.key(here), "use at most 64 letters, digits, `_` and `-`")
        if not isinstance(table, dict):
            notes.error("wrong-type", f"`{name}` must be a mapping", locate.value(here), "write `result: …` below it")
        elif (made := validate(CannedTool, table, notes, locate, here)) is not None:
            head.tools[name] = made
    return head


class Wrapped:
    """The locator of data that is validated inside other data, such as `{"agents": [data]}`, which no file contains."""

    def __init__(self, locate: Locator, depth: int) -> None:
        """`depth` is the number of keys and indexes around the data."""
        self._locate = locate
        self._depth = depth

    def key(self, path: DataPath) -> Place:
        """The place of a key in the file."""
        return self._locate.key(path[self._depth :])

    def value(self, path: DataPath) -> Place:
        """The place of a value in the file."""
        return self._locate.value(path[self._depth :])
