"""A person talks with an agent, and what was said becomes a test case."""

import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from atp.agents.registry import make_adapter
from atp.base.diagnostics import Diagnostics, LoadError
from atp.base.errors import ConfigurationError
from atp.base.files import write_file
from atp.base.project import find_root
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.prepare.agents import Project, find_agent
from atp.engine.prepare.identity import Identities
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Trial
from atp.engine.prepare.settings import connectors, environment, resolve_options
from atp.engine.prepare.sources import in_memory
from atp.engine.role_clients import RoleClients
from atp.engine.trial.conversation import Conversation
from atp.engine.trial.watch import Watch
from atp.engine.trial.workspace import Workspace
from atp.loader.load import dialect_of
from atp.loader.markdown.names import slug, stem
from atp.loader.writing import write
from atp.suite.case import Case
from atp.suite.result import ToolCall, Transcript
from atp.suite.suite import Suite
from atp.usercode.environment import lent


class Chat:
    """A conversation with one agent. Use it as an async context manager."""

    def __init__(self, name: str, flags: Mapping[str, Any], folder: Path) -> None:
        """`folder` is where the agent works. Raises `LoadError` when there is no such agent."""
        self.root = find_root(Path.cwd())
        env = environment(self.root, None)
        options = resolve_options(flags, self.root, env)
        self._roles = RoleClients(options, self.root, env, connectors(self.root))
        around = {"environment": env, "root": self.root, "services": self._roles}
        self._roles.act_with(make_adapter, around)
        self.transcript = Transcript()
        self._lent = ExitStack()
        self._lent.enter_context(lent(env))
        self._tested = self._find(name, Project(self.root, env))
        self._conversation = self._open(options, folder)

    def _find(self, name: str, project: Project) -> AgentUnderTest:
        notes = Diagnostics()
        named = find_agent(name, None, project, notes)
        if named is not None:
            try:
                return AgentUnderTest(named.agent, self._roles.reach(named), named.base, "", ad_hoc=True)
            except ConfigurationError as error:
                notes.error("agent-configuration", f"agent `{name}`: {error}", hint=error.hint)
        raise LoadError(notes)

    def _open(self, options: Options, folder: Path) -> Conversation:
        case = Case(id="chat", name="chat")
        suite = Suite(name="chat", dialect="message", cases=[case])
        trial = Trial(
            agent=self._tested.name,
            ad_hoc=True,
            suite=suite,
            tested=self._tested,
            case=case,
            source=in_memory(suite, lambda _: True),
            chain=None,
            variation=0,
            run=1,
            runs=1,
            key="chat",
            timeout=options.timeout,
            context=Identities(options).of(case),
            connector=options.connector if options.given("connector") else None,
            siblings=1,
        )
        watch = Watch(case.limits, self.transcript)
        return Conversation(trial, watch, Workspace(folder.parent, folder.name), "chat")

    async def __aenter__(self) -> "Chat":
        await self._tested.begin_trial(self._conversation.session)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tested.close()
        await self._roles.close()
        self._lent.close()

    async def say(self, text: str) -> tuple[Any, list[ToolCall]]:
        """Say something: the answer, and the tools that were called for it. Raises `AgentError`."""
        seen = len(self.transcript.tool_calls)
        await self._conversation.say([{"role": "user", "content": text}])
        return self.transcript.output, self.transcript.tool_calls[seen:]

    @property
    def target(self) -> str | None:
        """The agent's file below `agents/`, if it has one there: what a Markdown file calls its target."""
        file = f"agents/{self._tested.name.replace('.', '/')}.md"
        return file if (self.root / file).is_file() else None

    def take_back(self, messages: int) -> None:
        """Forget what came after so many messages, because no answer did."""
        del self.transcript.messages[messages:]


def why_not_saved(path: Path) -> str | None:
    """Why a conversation can't be saved there, if it can't: better heard before it than after it."""
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


def save(transcript: Transcript, path: Path, name: str, target: str | None = None) -> str:
    """Write a conversation as a case, to a new file or at the end of one. Returns the case's id.

    Its last answer is not part of it: that is what the case asks for again. The tools that were called then are
    expected again, too.
    """
    markdown = dialect_of(path) == "markdown"
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    id_ = _free_id(slug(name) or "chat", there)
    title = name if id_ == slug(name) else f"{name} {id_.rpartition('-')[2]}"
    case = _as_chain(transcript, id_, title) if markdown else _as_history(transcript, id_, title)
    dialect: Literal["markdown", "jsonl"] = "markdown" if markdown else "jsonl"
    # With its path, it needs no heading of its own: the file's name is its name.
    suite = Suite(name=stem(str(path)), path=str(path), dialect=dialect, cases=[case], target=target)
    text = write(suite, dialect).text
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


def _last_tools(transcript: Transcript) -> list[str]:
    last = transcript.turns[-1].turn
    return list(dict.fromkeys(call.name for call in transcript.tool_calls if call.turn == last))


def _as_chain(transcript: Transcript, id_: str, name: str) -> Case:
    expected = [f"the `{tool}` function was called" for tool in _last_tools(transcript)]
    chains = [_prompts(transcript)]
    return Case(id=id_, name=name, path=[name], chains=chains, expectations=[*expected, "no errors"])


def _as_history(transcript: Transcript, id_: str, name: str) -> Case:
    last = max(number for number, one in enumerate(transcript.messages) if one["role"] == "user")
    checks = [{"type": "tool_called", "name": tool} for tool in _last_tools(transcript)]
    found: dict[str, Any] = {"id": id_, "name": name, "messages": transcript.messages[: last + 1]}
    return Case.model_validate({**found, "assertions": checks} if checks else found)
