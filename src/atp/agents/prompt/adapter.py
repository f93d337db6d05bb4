"""Agents that are prompts: `agents/x.md`, or a folder with `package.yao` and `prompts.yml`.

A model gets the prompts and the conversation. Its tools are Python functions, other agents, MCP servers, and prepared
answers.
"""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Finding, Reply, TurnRequest
from atp.agents.agent_files import AgentFiles
from atp.agents.attachments import Attachments
from atp.agents.prompt.head import Written
from atp.agents.prompt.loop import Loop
from atp.agents.prompt.read import find_prompt, read_prompt
from atp.agents.prompt.tools import make_tools
from atp.agents.prompt.variables import fill
from atp.agents.tools import ToolRun, mcp_servers
from atp.agents.wire import json_text
from atp.base.errors import ConfigurationError
from atp.models.model import Model
from atp.suite.agent import Agent, PromptConfig
from atp.suite.options import Options
from atp.usercode.printed import Printed

_MAKING: contextvars.ContextVar[tuple[Path, ...]] = contextvars.ContextVar("making", default=())
"""The agents whose adapters are being made: each needs the next as a tool."""


class PromptAdapter(Adapter):
    """Runs an agent that is a prompt on a model."""

    type = "prompt"
    Config = PromptConfig
    takes_schema = True

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        config: PromptConfig = agent.config
        if context.services is None:
            raise ConfigurationError("a prompt runs on a model, and there are no models here")
        path = find_prompt(config.path, context.base, context.root)
        with _making(path):
            files = AgentFiles(_root(path, context), context.environment)
            written = read_prompt(path, files)
            if written.head.matrix is not None and not agent.column_values:
                hint = "give the agent of the suite a `matrix`, or name the file with -n"
                message = "`matrix` has no effect here: the suite describes the agent itself"
                files.notes(written.path).warn("no-effect", message, hint=hint)
            own = make_tools(written, files, context, context.services)
            self._tools = mcp_servers(written.head.mcp, written.path, written.locate, files, own, context)
            files.check()
        self._name = agent.name
        self._services = context.services
        self._environment = context.environment
        self._attachments = Attachments((context.base, *context.search))
        self._prompts = written.prompts
        self._settings = {**written.head.settings, **config.settings}
        self._most = written.head.max_steps
        self._connector = config.connector or written.head.connector
        self.description = written.head.description
        """The description in the agent's file."""
        tools = list(own.values())
        named = [file for tool in tools for file in tool.files]
        self.files = tuple(dict.fromkeys([*files.paths, *named, *self._tools.files]))
        """All files that decide what the agent does: its own, linked files, the code of its tools."""
        self.variables = {name: value for one in tools for name, value in one.variables.items()}
        self.variables |= files.variables.used
        """The environment variables that decide what the agent does."""
        self.secrets = frozenset(files.secrets).union(*(tool.secrets for tool in tools))
        """Values that no output may show."""
        self.warnings = files.warnings
        """Warnings about the agent's files."""
        place = "" if config.connector else f"{_connector_place(written, files)}: "
        model = self._services.model(self._connector, f"{place}the agent `{self._name}`")
        self.model = model.name
        """The name of the agent's model."""
        self.connector = model.connector
        """The connector of the agent's model."""
        self.runs_on = {"model": model.name, "settings": model.settings}
        """The facts about the model that decide the agent's answers."""
        self.unfit_to_judge = model.unfit_to_judge
        """Why the model must not judge; None if it may."""
        self.is_only_prompts = not own and not written.head.mcp
        """True if the agent has no tools, so that its files and its model decide its answers."""
        self.uses_workspace = not self.is_only_prompts

    def _model(self, connector: str | None) -> Model:
        return self._services.model(connector, f"the agent `{self._name}`")

    async def start(self) -> None:
        """Start the MCP servers that serve the whole run."""
        await self._tools.start()

    def end_trial(self, task_id: str) -> None:
        """Stop the MCP servers of a trial."""
        self._tools.end_trial(task_id)

    async def close(self) -> None:
        """Stop all MCP servers."""
        await self._tools.close()

    async def check(self) -> list[Finding]:
        """Check that there is a model, without asking it, and that every MCP server starts."""
        model = self._model(self._connector)
        found = Finding(what="model", ok=True, detail=f"{model.name} ({model.connector}), not asked")
        return [found, *await self._tools.check()]

    async def turn(self, request: TurnRequest) -> Reply:
        """Ask the model, and call the tools that it uses."""
        printed = Printed()
        run = ToolRun(request=request, printed=printed, counts=dict(request.state or {}), emit=request.emit)
        named = request.context.get("connector") or request.options.get("connector") or self._connector
        try:
            model = self._model(named)
        except ConfigurationError as error:
            raise AgentError(str(error), "environment") from error
        loop = Loop(model, await self._tools.tools(request), run, self._services.cassette)
        further = {name: value for name, value in request.options.items() if name not in Options.model_fields}
        try:
            return await loop.run(self._messages(request), {**self._settings, **further}, self._most)
        finally:
            for line in printed.finish():
                request.log(line)

    def _messages(self, request: TurnRequest) -> list[dict[str, Any]]:
        before = [
            {**prompt, "content": fill(prompt["content"], self._environment, {**request.options, **request.context})}
            for prompt in self._prompts
        ]
        said = [self._attachments.message(message) for message in request.messages]
        return [*before, *said[:-1], *(_with_task(one, request.task) for one in said[-1:])]


def _with_task(message: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    """Add the task's `input_data` and `expected_artifacts` to the message."""
    further = [f"{name}: {json_text(task[name])}" for name in ("input_data", "expected_artifacts") if task.get(name)]
    if not further or not isinstance(message.get("content"), str):
        return message
    return {**message, "content": "\n\n".join([message["content"], *further])}


def _connector_place(written: Written, files: AgentFiles) -> str:
    """Where the agent's file names its model; the beginning of the file if the file names none."""
    line, column = 1, 1
    if written.locate is not None and written.head.connector:
        for path in (("connector",), ("model",), ("config", "connector"), ("config", "model")):
            at, around = written.locate.value(path), written.locate.value(path[:-1])
            if (at.line, at.column) != (around.line, around.column):  # a missing value is located at the one around it
                line, column = at.line, at.column
                break
    return f"{files.name(written.path)}:{line}:{column}"


def _root(path: Path, context: AdapterContext) -> Path:
    root = context.root.resolve() if context.root is not None else None
    folder = path if path.is_dir() else path.parent
    return root if root is not None and folder.is_relative_to(root) else folder


@contextmanager
def _making(path: Path) -> Iterator[None]:
    """Raise `ConfigurationError` for agents that have each other as tools: they would call each other for ever."""
    others = _MAKING.get()
    if path in others:
        circle = " → ".join(one.name for one in (*others[others.index(path) :], path))
        raise ConfigurationError(f"agents have each other as tools: {circle}", "take one of them out of `agents`")
    token = _MAKING.set((*others, path))
    try:
        yield
    finally:
        _MAKING.reset(token)
