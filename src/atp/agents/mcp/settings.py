"""The settings of MCP servers, read from `mcp` in the head of an agent and from files `mcps/ID.mcp.yao`.

`mcp` is a mapping of names to servers, a list of servers, or either of these below `servers`, as in Yao. Strings may
have variables: `$ENV.NAME`, also in double braces; `$$ENV.NAME` is a plain `$ENV.NAME`. A server is started for a run
or a trial, not for a turn, so variables of a conversation have no value here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator
from pydantic_core import PydanticCustomError

from atp.agents.agent_files import AgentFiles
from atp.agents.stdio import check_startable, split_words
from atp.agents.tools import tool_name
from atp.base.diagnostics import Diagnostics
from atp.base.errors import ConfigurationError
from atp.base.json.comments import without_comments
from atp.base.near import near_miss
from atp.base.secret_values import secret_settings
from atp.base.secrets import SHORTEST_SECRET
from atp.loader.error_messages import unknown_key
from atp.loader.jsonl.nodes import JsonLocator, parse_json
from atp.loader.validate import DataPath, Locator, validate
from atp.suite.record import Json, Record, Seconds, Text

MOST_SERVERS = 16
"""The largest number of servers of an agent."""
CALL_SECONDS = 60.0
"""Seconds that a call of a tool may take by default."""
START_SECONDS = 60.0
"""Seconds that a server may take until it answers by default. Some are fetched from a package index first."""
_NAME = re.compile(r"(?!.*__)[A-Za-z0-9_-]{1,32}")
_LINE_BREAK = re.compile(r"[\r\n\0]")
FOLDER = "mcps"
SUFFIXES = (".mcp.yao", ".mcp.json", ".mcp.jsonc")
_REACH_KEYS = ("command", "args", "arguments", "env", "cwd", "url", "headers")
_CHOICES = ("tools", "exclude", "scope", "timeout", "ready_within")
_FILE_KEYS = (*_REACH_KEYS, *_CHOICES, "transport", "authorization_token")
"""The keys of a server's file that ATP reads."""
_THEIRS = ("id", "name", "label", "description", "version", "tags", "resources", "prompts", "endpoint")
"""The keys of a server's file that only Yao reads."""
_USE = re.compile(r"\$\$(?=ENV\.)|\{\{\s*\$ENV\.([A-Za-z_]\w*)\s*\}\}|\$ENV\.([A-Za-z_]\w*)")
_OTHER = re.compile(r"(?<!\$)\$(?:CTX|SYS)\.\w+")


def _no_line_breaks(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if _LINE_BREAK.search(name + value):
            raise PydanticCustomError("mcp_header", "the header `{name}` has a line break in it", {"name": name})
    return headers


class McpServer(Record):
    """A server as an agent's head or a server's file describes it."""

    name: Text | None = None
    """The prefix of its tools' names, for a server in a list; in a mapping the key is the name."""
    server_id: Text | None = None
    """The id of a file `mcps/ID.mcp.yao` that describes the server."""
    command: Text | list[Text] | None = None
    """The command of a server that uses stdin and stdout: a list, or text that is split without a shell."""
    args: list[str] = Field(default_factory=list, validation_alias=AliasChoices("args", "arguments"))
    """Further arguments."""
    env: dict[str, str] = Field(default_factory=dict, validation_alias=AliasChoices("env", "environment"))
    """Environment variables, beside PATH, HOME, LANG and TERM."""
    cwd: Text | None = None
    """The working directory; by default the folder of the describing file, or the workspace with `scope: trial`."""
    url: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """The URL of a server that uses HTTP."""
    headers: Annotated[dict[str, str], AfterValidator(_no_line_breaks)] = Field(default_factory=dict)
    """Headers of every request."""
    tools: Annotated[list[Text], Field(min_length=1)] | None = None
    """The tools that the agent gets: names, and patterns with `*`; all by default."""
    exclude: list[Text] = Field(default_factory=list)
    """The tools that the agent does not get."""
    scope: Literal["run", "trial"] | None = None
    """One server for the whole run, which is the default, or one for each trial."""
    timeout: Seconds | None = None
    """Seconds that a call may take; 60 by default."""
    ready_within: Seconds | None = None
    """Seconds that the server may take until it answers; 60 by default."""
    resources: Json = None
    """Without effect: the model calls tools and reads nothing else."""

    @model_validator(mode="after")
    def _is_one(self) -> "McpServer":
        ways = [key for key in ("server_id", "command", "url") if getattr(self, key) is not None]
        if len(ways) != 1:
            raise PydanticCustomError(
                "mcp_server", "a server has either a `command`, a `url` or the `server_id` of a file that describes it"
            )
        for key, way in (("args", "command"), ("env", "command"), ("cwd", "command"), ("headers", "url")):
            if getattr(self, key) and way != ways[0]:
                raise PydanticCustomError("mcp_key", "`{key}` goes with `{way}`", {"key": key, "way": way})
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What is needed to start a server, or to connect to it."""

    name: str
    """The prefix of the names of the server's tools."""
    argv: tuple[str, ...] = ()
    """The command; empty for a server with a URL."""
    environment: Mapping[str, str]
    """The variables of `env`."""
    folder: Path
    """The working directory, unless `in_workspace`."""
    in_workspace: bool = False
    """True if the server runs in the trial's workspace."""
    url: str | None = None
    headers: Mapping[str, str]
    """Headers of every request."""
    tools: tuple[str, ...] | None = None
    """Names and patterns of the tools that the agent gets."""
    exclude: tuple[str, ...] = ()
    """Names and patterns of the tools that the agent does not get."""
    per_trial: bool = False
    """True if each trial has a server of its own."""
    seconds: float = CALL_SECONDS
    """Seconds that a call may take."""
    ready_within: float = START_SECONDS
    """Seconds that the server may take until it answers."""
    files: tuple[Path, ...] = ()
    """The files that the command names."""


def read_servers(declared: Any, path: Path, locate: Locator | None, files: AgentFiles) -> list[ServerSettings]:
    """Read the servers that the head of an agent declares under `mcp`. Mistakes are added to `files`.

    `path` is the file with the head, `locate` finds places in it.
    """
    if declared is None or locate is None:
        return []
    notes = files.notes(path)
    found: dict[str, ServerSettings] = {}
    entries = list(_entries(declared, ("mcp",), notes, locate))
    if len(entries) > MOST_SERVERS:
        message = f"there are {len(entries)} MCP servers: at most {MOST_SERVERS} are started for an agent"
        notes.error("tool", message, locate.key(("mcp",)), "take some of them out")
        return []
    for entry in entries:
        made = _Entry(entry, path, files, locate).settings()
        if made is None:
            continue
        if made.name in found:
            message = f"two MCP servers are called `{made.name}`"
            notes.error("tool", message, locate.value(entry.path), "give one of them another `name`")
        found[made.name] = made
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Raw:
    """A server as written in the file."""

    name: str | None
    value: dict[str, Any]
    path: DataPath


def _entries(raw: Any, path: DataPath, notes: Diagnostics, locate: Locator) -> Iterator[_Raw]:
    if isinstance(raw, dict) and "servers" in raw and path == ("mcp",):
        for key in raw:
            if key != "servers":
                mistake = unknown_key(key, ["servers"])
                notes.error(mistake.code, mistake.message, locate.key((*path, key)), mistake.hint)
        yield from _entries(raw["servers"], (*path, "servers"), notes, locate)
    elif isinstance(raw, dict):
        for name, value in raw.items():
            if isinstance(value, dict):
                yield _Raw(name, value, (*path, name))
            else:
                hint = "write a name, and below it the server: `weather: {command: …}`"
                notes.error("wrong-type", f"`{name}` must be a server, a mapping", locate.value((*path, name)), hint)
    elif isinstance(raw, list):
        for number, value in enumerate(raw):
            if isinstance(value, dict | str):
                server = value if isinstance(value, dict) else {"server_id": value}
                yield _Raw(None, server, (*path, number))
            else:
                hint = "write `{name: …, command: …}`, or the id of a file `mcps/ID.mcp.yao`"
                notes.error("wrong-type", "a server must be a mapping or an id", locate.value((*path, number)), hint)
    elif raw is not None:
        hint = "write a name, and below it the server: `weather: {command: …}`"
        notes.error("wrong-type", "`mcp` must be a mapping or a list of servers", locate.value(path), hint)


class _Entry:
    """Reads one server."""

    def __init__(self, raw: _Raw, file: Path, files: AgentFiles, locate: Locator) -> None:
        self._raw = raw
        self._file = file
        self._files = files
        self._locate = locate
        self._notes = files.notes(file)

    def settings(self) -> ServerSettings | None:
        """Return the settings, or None after mistakes."""
        value = _filled(self._raw.value, self._raw.path, self._files, self._notes, self._locate)
        self._files.secrets.update(secret_settings(value))
        own = validate(McpServer, value, self._notes, self._locate, self._raw.path)
        name = None if own is None else self._name(own)
        if own is None or name is None:
            return None
        if own.resources is not None:
            message = "`resources` has no effect here: the model calls tools, and reads nothing else"
            self._notes.warn("no-effect", message, self._locate.key((*self._raw.path, "resources")))
        if own.server_id is None:
            return self._made(name, own, own, (self._file.parent,))
        path = _find_server_file(own.server_id, self._file.parent, self._files.root)
        if path is None:
            places = f"{self._files.name(self._file.parent / 'mcps')} and mcps of the project's root"
            self._error(f"there is no MCP server `{own.server_id}`: looked for its file in {places}", None)
            return None
        described = _read_server_file(path, self._files)
        return None if described is None else self._made(name, own, described, (path.parent, self._files.root))

    def _name(self, own: McpServer) -> str | None:
        if self._raw.name is not None and own.name is not None:
            self._error("`name` is given twice: the server's key is its name", "drop `name`")
            return None
        name = self._raw.name or own.name or tool_name(own.server_id or "")
        if not name:
            self._error("the server has no name", "give it a `name`: its tools are called `name__tool`")
            return None
        if not _NAME.fullmatch(name):
            hint = "use at most 32 letters, digits, `-` and single `_`"
            self._error(f"{name!r} is no name for an MCP server", hint)
            return None
        return name

    def _made(
        self, name: str, own: McpServer, described: McpServer, folders: tuple[Path, ...]
    ) -> ServerSettings | None:
        """`own` is the server in the agent's head; `described` says how to reach it, in the head or in a file."""
        per_trial = (own.scope or described.scope) == "trial"
        try:
            argv, files = _argv(described, folders)
            folder = _folder(described, folders)
        except ConfigurationError as error:
            self._error(f"the MCP server `{name}`: {error}", error.hint)
            return None
        tools = own.tools or described.tools
        return ServerSettings(
            name=name,
            argv=argv,
            environment=described.env,
            folder=folder,
            in_workspace=per_trial and described.cwd is None and described.url is None,
            url=described.url,
            headers=described.headers,
            tools=None if tools is None else tuple(tools),
            exclude=tuple(dict.fromkeys([*described.exclude, *own.exclude])),
            per_trial=per_trial,
            seconds=own.timeout or described.timeout or CALL_SECONDS,
            ready_within=own.ready_within or described.ready_within or START_SECONDS,
            files=files,
        )

    def _error(self, message: str, hint: str | None) -> None:
        self._notes.error("tool", message, self._locate.value(self._raw.path), hint)


def _argv(server: McpServer, folders: tuple[Path, ...]) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Return the command, with absolute paths for the files that it names, and these files."""
    if server.command is None:
        return (), ()
    words = [*split_words(server.command, "command"), *server.args]
    if not words:
        raise ConfigurationError("`command` is empty")
    check_startable(words, server.env)
    files: list[Path] = []
    for number, word in enumerate(words):
        if number == 0 and "/" not in word:
            continue  # a program on the PATH
        found = next((path for folder in folders if (path := folder / word).is_file()), None)
        if found is not None:
            words[number] = str(found.absolute())
            files.append(found.absolute())
    return tuple(words), tuple(files)


def _folder(server: McpServer, folders: tuple[Path, ...]) -> Path:
    """Return the working directory: `cwd`, else the last of the folders that paths may start from."""
    if server.cwd is None:
        return folders[-1]
    folder = folders[0] / server.cwd
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {server.cwd}", "`cwd` starts at the folder of the file")
    return folder


def nearest(pattern: str, names: list[str]) -> str:
    """Return a hint for a pattern that matches no tool."""
    meant = near_miss(pattern, names)
    return f"did you mean `{meant}`?" if meant else f"there are: {', '.join(sorted(names)[:20]) or 'none'}"


def _find_server_file(server_id: str, folder: Path, root: Path) -> Path | None:
    """Find the file of a server: beside the agent, below the project's root, or beside the assistant in its id."""
    parts = server_id.split(".")
    starts = [folder / FOLDER / Path(*parts), root / FOLDER / Path(*parts)]
    if parts[0] in ("agents", "assistants") and len(parts) > 2:
        starts.append(root / "assistants" / Path(*parts[1:-1]) / FOLDER / parts[-1])
    for start in starts:
        for suffix in SUFFIXES:
            path = start.with_name(f"{start.name}{suffix}")
            if path.is_file() and path.resolve().is_relative_to(root):
                return path
    return None


def _read_server_file(path: Path, files: AgentFiles) -> McpServer | None:
    """Read a server's file. Returns None after mistakes."""
    text = files.read(path)
    notes = files.notes(path)
    parsed = None if text is None else parse_json(without_comments(text), notes)
    if parsed is None:
        return None
    data, locate = parsed
    if not isinstance(data, dict):
        hint = 'begin with {"transport": "stdio", "command": "…"}'
        notes.error("wrong-type", "a server must be an object", locate.value(()), hint)
        return None
    known = len(notes)
    own = _filled(_own_keys(data, notes, locate), (), files, notes, locate)
    files.secrets.update(secret_settings(own))
    _take_transport(own, notes, locate)
    _take_token(own, files)
    made = None if len(notes) > known else validate(McpServer, own, notes, locate)
    return made if len(notes) == known else None


def _own_keys(data: dict[str, Any], notes: Diagnostics, locate: JsonLocator) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for key, value in data.items():
        if key in _FILE_KEYS:
            if value is not None:
                own[key] = value
        elif key not in _THEIRS and (meant := near_miss(key, _FILE_KEYS)):
            notes.error("unknown-key", f"unknown key `{key}`", locate.key((key,)), f"did you mean `{meant}`?")
    return own


def _take_transport(own: dict[str, Any], notes: Diagnostics, locate: JsonLocator) -> None:
    """Check that the transport is supported, and that the key that it needs is there."""
    transport = own.pop("transport", None)
    needed = {"stdio": "command", "http": "url", "streamable-http": "url", "streamable_http": "url"}
    at = locate.value(("transport",))
    if transport is None:
        return
    if transport == "process":
        hint = "give the agent these tools as `commands`, or prepared answers in `tools`"
        notes.error("bad-value", "`transport: process` calls code inside Yao, which is not here", at, hint)
    elif transport not in needed:
        meant = near_miss(str(transport), needed) if isinstance(transport, str) else None
        hint = f"did you mean `{meant}`?" if meant else "one of: stdio, http"
        notes.error("bad-value", f"`transport` cannot be {transport!r}", at, hint)
    elif needed[transport] not in own:
        key = needed[transport]
        notes.error("missing-key", f"`transport: {transport}` needs `{key}`", at, f"add `{key}`")


def _take_token(own: dict[str, Any], files: AgentFiles) -> None:
    token = own.pop("authorization_token", None)
    if isinstance(token, str) and token:
        if len(token) >= SHORTEST_SECRET:
            files.secrets.add(token)
        scheme = token if " " in token else f"Bearer {token}"
        own["headers"] = {"Authorization": scheme, **(own.get("headers") or {})}


def _filled(value: Any, path: DataPath, files: AgentFiles, notes: Diagnostics, locate: Locator) -> Any:
    """Return the value with its variables replaced. Variables without a value are mistakes."""
    if isinstance(value, dict):
        return {key: _filled(item, (*path, key), files, notes, locate) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, (*path, number), files, notes, locate) for number, item in enumerate(value)]
    if not isinstance(value, str) or "$" not in value:
        return value
    if other := _OTHER.search(value):
        message = f"`{other[0]}` has no value here: a server is not started for one conversation"
        notes.error("unknown-variable", message, locate.value(path), "use `$ENV.NAME`")

    def fill(use: "re.Match[str]") -> str:
        name = use[1] or use[2]
        if name is None:
            return "$"
        found = files.variables.look_up(name, notes, lambda: locate.value(path), path[-1])
        return use[0] if found is None else found

    return _USE.sub(fill, value)
