"""`atp chat`: a conversation of a person with an agent, which can be saved as a test case."""

import json
import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from atp.base.files import write_file
from atp.base.secrets import Hide, hider
from atp.checks.tools import arguments_of
from atp.engine.prepare.prepare import prepare_sources
from atp.engine.prepare.sources import Input, in_memory
from atp.engine.run_context import RunContext
from atp.engine.trial.conversation import Conversation, Watch
from atp.engine.trial.workspace import WorkFolder, Workspace
from atp.loader.load import dialect_of
from atp.loader.markdown.names import slug, stem
from atp.loader.writing import write
from atp.suite.case import Case
from atp.suite.result import ToolCall, Transcript
from atp.suite.suite import Suite


class Chat:
    """A conversation with one agent: a run with a single trial, in which a person says what the case would say.

    Use it as an async context manager.
    """

    def __init__(self, name: str, flags: Mapping[str, Any], folder: Path) -> None:
        """`folder` is where the agent works. Raises `LoadError` when there is no such agent."""
        context = RunContext.of_project(Path.cwd(), {**flags, "name": [name]})
        suite = Suite(name="chat", dialect="message", cases=[Case(id="chat", name="chat")])
        self._run = prepare_sources(Input(("chat",)), [in_memory(suite, context.filter.wants)], [], context)
        self._trial = next(self._run.plan.trials())
        self.transcript = Transcript()
        self.hide: Hide = hider(context.secrets)
        """Masks the secrets that are known to the agent."""
        watch = Watch(self._trial.case.limits, self.transcript)
        self._conversation = Conversation(self._trial, watch, Workspace(WorkFolder(folder.parent), folder.name), "chat")
        self._open = AsyncExitStack()

    async def __aenter__(self) -> "Chat":
        await self._open.enter_async_context(self._run.context.opened())
        self._open.push_async_callback(self._run.close_agents)
        try:
            await self._trial.tested.begin_trial(self._conversation.session)
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def say(self, text: str) -> tuple[Any, list[ToolCall]]:
        """Send a message. Returns the answer, and the tools that were called for it. Raises `AgentError`."""
        seen = len(self.transcript.tool_calls)
        await self._conversation.say([{"role": "user", "content": text}])
        return self.transcript.output, self.transcript.tool_calls[seen:]

    @property
    def target(self) -> str | None:
        """The agent's file below `agents/`, if there is one: the `target` of a Markdown file."""
        file = f"agents/{self._trial.tested.name.replace('.', '/')}.md"
        return file if (self._run.root / file).is_file() else None

    @property
    def gets_history(self) -> bool:
        """True if a test can hand the agent the earlier messages of the conversation."""
        return self._trial.tested.gets_history

    def take_back(self, messages: int) -> None:
        """Remove the messages after the first `messages`, because no answer came."""
        del self.transcript.messages[messages:]


def why_not_saved(path: Path) -> str | None:
    """Why a conversation can't be saved there, if it can't; checked before the conversation begins."""
    try:
        if path.exists():
            path.read_text(encoding="utf-8")
        elif not path.parent.is_dir():
            return "its folder is not there"
    except UnicodeDecodeError:
        return "what is there is not UTF-8"
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(path.resolve().parent, os.W_OK) else "its folder can't be written to"


def save(transcript: Transcript, path: Path, name: str, target: str | None = None, hide: Hide = str) -> str:
    """Write a conversation as a case, to a new file or at the end of one. Returns the case's id.

    The last answer is left out: the case asks for it again. The tools that were called for it are expected again, with
    the same arguments.
    """
    markdown = dialect_of(path) == "markdown"
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    id_ = _free_id(slug(name) or "chat", there)
    title = name if id_ == slug(name) else f"{name} {id_.rpartition('-')[2]}"
    case = _as_chain(transcript, id_, title) if markdown else _as_history(transcript, id_, title)
    dialect: Literal["markdown", "jsonl"] = "markdown" if markdown else "jsonl"
    # A suite with a path is written without a heading: its name is that of the file.
    suite = Suite(name=stem(str(path)), path=str(path), dialect=dialect, cases=[case], target=target)
    text = hide(write(suite, dialect).text)
    if there and markdown:
        text = text.split("---\n", 2)[2]
    if there and not there.endswith("\n"):
        there += "\n"
    write_file(path, there + ("\n" if there and markdown else "") + text)
    return id_


def _free_id(wanted: str, text: str) -> str:
    taken, number, found = set(re.findall(r"[\w-]+", text.casefold())), 1, wanted
    while found in taken or f"# {found}" in text.casefold():
        number += 1
        found = f"{wanted}-{number}"
    return found


def _prompts(transcript: Transcript) -> list[str]:
    return [str(one["content"]) for one in transcript.messages if one["role"] == "user"]


def _last_calls(transcript: Transcript) -> list[tuple[str, dict[str, Any] | None]]:
    """The tools that were called for the last answer, each with its arguments, and each call once."""
    last = transcript.turns[-1].turn
    found = [(call.name, arguments_of(call)) for call in transcript.tool_calls if call.turn == last]
    calls = [(name, arguments if isinstance(arguments, dict) else None) for name, arguments in found]
    return [call for number, call in enumerate(calls) if call not in calls[:number]]


def _as_chain(transcript: Transcript, id_: str, name: str) -> Case:
    expected = []
    for tool, arguments in _last_calls(transcript):
        how = f" with `{json.dumps(arguments, ensure_ascii=False)}`" if arguments else ""
        expected.append(f"the `{tool}` function was called{how}")
    chains = [_prompts(transcript)]
    return Case(id=id_, name=name, path=[name], chains=chains, expectations=[*expected, "no errors"])


def _as_history(transcript: Transcript, id_: str, name: str) -> Case:
    last = max(number for number, one in enumerate(transcript.messages) if one["role"] == "user")
    checks = [
        {"type": "tool_called", "name": tool, **({"arguments": _literal(arguments)} if arguments else {})}
        for tool, arguments in _last_calls(transcript)
    ]
    found: dict[str, Any] = {"id": id_, "name": name, "messages": transcript.messages[: last + 1]}
    return Case.model_validate({**found, "assertions": checks} if checks else found)


def _literal(value: Any) -> Any:
    """Return a value as an assertion compares it: an object with a `$` key would be taken for a matcher."""
    if isinstance(value, dict):
        if any(key.startswith("$") for key in value):
            return {"$literal": value}
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list) else value
