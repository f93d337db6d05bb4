"""A project with prompt agents, and models that play from a script."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from textwrap import dedent
from typing import Any

from tests.agents.support.talk import Talk, make_agent

from atp.agents.adapter import Adapter
from atp.agents.prompt.adapter import PromptAdapter
from atp.agents.prompt.file import agent_of_file
from atp.agents.running import RunningAgent
from atp.base.errors import ConfigurationError
from atp.models.cassettes.cassette import Cassette
from atp.models.model import Model, ModelAnswer, ModelRequest, ToolUse
from atp.suite.agent import Agent
from atp.suite.result import Usage

Says = str | ModelAnswer | Exception


def uses(name: str, arguments: Any = None, text: str = "", **more: Any) -> ModelAnswer:
    """A model's wish to call one tool."""
    return ModelAnswer(
        text=text, tool_uses=[ToolUse(id=f"call-{name}", name=name, arguments=arguments)], finish="tool_calls", **more
    )


class Scripted(Model):
    """Says one thing after the other; what it was asked is in `asked`."""

    def __init__(self, *script: Says, behave: Callable[[ModelRequest], Says] | None = None) -> None:
        self.connector = self.name = "scripted"
        self.settings = {}
        self.asked: list[ModelRequest] = []
        self._left = list(script)
        self._behave = behave

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        await asyncio.sleep(0)
        says = self._behave(request) if self._behave else self._left.pop(0)
        if isinstance(says, Exception):
            raise says
        answer = ModelAnswer(text=says) if isinstance(says, str) else says
        answer.usage = answer.usage if answer.usage != Usage() else Usage(input_tokens=10, output_tokens=2)
        return answer

    @property
    def results(self) -> list[str]:
        """What tools told the model, by the newest question."""
        return [one["content"] for one in self.asked[-1].messages if one["role"] == "tool"]


class Stage:
    """A project folder and what a run provides."""

    def __init__(self, talk: Talk, model: Model | None = None, **models: Model) -> None:
        self.root = talk.folder / "project"
        self.root.mkdir(exist_ok=True)
        self.models: dict[str | None, Model] = {}
        self.models.update(models)
        if model is not None:
            self.models[None] = model
        self.cassette: Cassette | None = None
        self.others: dict[str, Adapter] = {}
        self.asked_for: list[tuple[str | None, str]] = []
        self._talk = talk
        talk.around = replace(talk.around, base=self.root, root=self.root, services=self)

    def model(self, connector: str | None, needed_by: str) -> Model:
        self.asked_for.append((connector, needed_by))
        if connector not in self.models:
            raise ConfigurationError(f"there is no connector `{connector}`", "set one with -c")
        return self.models[connector]

    def running_agent(self, name: str) -> RunningAgent:
        found = RunningAgent(self._adapter(name), name)
        self._talk.beside.append(found)
        return found

    def _adapter(self, name: str) -> Adapter:
        if name in self.others:
            return self.others[name]
        path = self.root / "agents" / f"{name.removeprefix('agents/').removesuffix('.md').replace('.', '/')}.md"
        if not path.is_file():
            raise ConfigurationError(f"there is no agent `{name}`")
        return self._talk.adapter(agent_of_file(path, name, self.root))

    def write(self, **files: str) -> None:
        """Files of the project, by path."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")

    def agent(self, path: str = "agents/x.md", **config: Any) -> Agent:
        raw = {"name": "x", "type": "prompt", "config": {"path": path, **config}}
        return make_agent(raw)

    def make(self, text: str | None = None, path: str = "agents/x.md", **config: Any) -> PromptAdapter:
        """The adapter of an agent, with this text in its file."""
        if text is not None:
            self.write(**{path: text})
        made = self._talk.adapter(self.agent(path, **config))
        assert isinstance(made, PromptAdapter)
        return made

    def refuse(self, text: str | None = None, path: str = "agents/x.md") -> str:
        """Why an adapter can't be made, with the hint."""
        try:
            self.make(text, path)
        except ConfigurationError as error:
            return f"{error} ({error.hint})" if error.hint else str(error)
        raise AssertionError("it was made")

    def tools(self, code: str) -> None:
        """`agents/tools.py`, with functions for commands."""
        self.write(**{"agents/tools.py": code})
