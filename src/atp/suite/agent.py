"""Agents: what is tested, and how to reach it.

A kind of agent is one class, an `Adapter` with its `Config`: the fields of `Config` are the keys that a file may give.
The configurations of our own kinds are in this module, their adapters in `atp/agents/`.
"""

import json
import re
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, PrivateAttr, create_model, model_validator
from pydantic_core import PydanticCustomError

from atp.base.diagnostics import Place
from atp.base.near import near_miss
from atp.base.registry import PluginError, Registry
from atp.suite.capabilities import ONLY_ANSWERS, Capabilities
from atp.suite.container import WORKSPACE, Cpus, Memory, Volumes, mount_points
from atp.suite.kinds import OneOf
from atp.suite.matrix import Combination, Matrix, column_name, combinations, labels
from atp.suite.paths import JsonPathText
from atp.suite.record import Amount, Count, Json, JsonObject, OpenRecord, Record, Seconds, Text, Whole
from atp.suite.reference import Entry


class AgentConfig(Record):
    """What the configuration of every kind takes."""

    parallel: Count | None = None
    """At most so many trials of this agent at a time."""

    # In the YAML suite format, a configuration is a dict: of the keys that are given, and those that have a default.

    def _as_dict(self) -> dict[str, Any]:
        own = {name: self.__dict__[name] for name in type(self).model_fields}
        return {name: value for name, value in {**own, **(self.model_extra or {})}.items() if value is not None}

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key."""
        return self._as_dict()[key]

    def __contains__(self, key: object) -> bool:
        """Whether a key has a value."""
        return key in self._as_dict()

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # pydantic's own yields pairs
        """Yield the keys."""
        return iter(self._as_dict())

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._as_dict())

    def __bool__(self) -> bool:
        """Return true, also if there is no key."""
        return True

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self._as_dict().get(key, default)

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self._as_dict().keys()

    def values(self) -> ValuesView[Any]:
        """Return the values."""
        return self._as_dict().values()

    def items(self) -> ItemsView[str, Any]:
        """Return the keys with their values."""
        return self._as_dict().items()


class HttpSpeech(AgentConfig):
    """How to speak to an agent over HTTP, wherever it runs."""

    api_key: str | None = None
    """Sent as a bearer token."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers."""
    timeout: Seconds | None = None
    """For one request."""
    retry: Whole | None = None
    """How often to try again on connection errors, 429 and 502 to 504; otherwise as often as the run says."""
    model: str | None = None
    """With `protocol: openai`: the model's name."""
    body: Json = None
    """With `protocol: json`: the request's body, a template. `{{prompt}}`, `{{messages}}`, `{{task.description}}`,
    `{{session_id}}`, `{{options.x}}`, `{{state}}` and the like are filled in."""
    output_path: JsonPathText | None = None
    """With `protocol: json`: a JSONPath to the answer; otherwise all that comes back is the answer."""
    tool_calls_path: JsonPathText | None = None
    """With `protocol: json`: a JSONPath to the tool calls, objects with `name` and `arguments`."""
    usage_path: JsonPathText | None = None
    """With `protocol: json`: a JSONPath to the usage, an object with `input_tokens`, `output_tokens`, `cost_usd` …"""
    state_path: JsonPathText | None = None
    """With `protocol: json`: a JSONPath to what the next turn gets as `{{state}}`."""
    history: Literal["ignored"] | None = None
    """`ignored`: run cases with earlier messages, too, although the agent is only given the newest one."""


class HttpConfig(HttpSpeech):
    """An agent behind an HTTP address."""

    endpoint: Annotated[str, Field(pattern=r"^https?://.+")]
    """Where requests are posted."""
    protocol: Literal["atp", "openai", "json"] = "atp"
    """ATP's own protocol, OpenAI chat completions, or JSON of the agent's own shape."""
    verify_ssl: bool = True
    """Check the server's certificate."""
    stream_endpoint: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """Where requests go when the answer is to be streamed."""
    health_endpoint: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """An address that answers when the agent is ready."""

    @model_validator(mode="after")
    def _fits_protocol(self) -> "HttpConfig":
        _check_protocol(self)
        return self


_KEYS_OF = {
    "atp": ("stream_endpoint",),
    "openai": ("model",),
    "json": ("body", "output_path", "tool_calls_path", "usage_path", "state_path"),
}
"""Keys that only one protocol has a use for."""


def _check_protocol(config: "HttpConfig | DockerConfig") -> None:
    for protocol, keys in _KEYS_OF.items():
        for key in keys:
            if protocol != config.protocol and getattr(config, key, None) is not None:
                raise PydanticCustomError(
                    "protocol_key",
                    "`{key}` goes with `protocol: {protocol}`, not with `{given}`",
                    {"key": key, "protocol": protocol, "given": config.protocol},
                )
    if config.protocol == "json" and config.body is None:
        raise PydanticCustomError("protocol_body", "`protocol: json` needs `body`")


def _has_words(command: str | list[str]) -> str | list[str]:
    if not (command.strip() if isinstance(command, str) else command):
        raise PydanticCustomError("too_short", "a command has at least one word")
    return command


Words = Annotated[Text | list[Text], AfterValidator(_has_words)]
"""A command: a list, or text that is split without a shell."""


class CliConfig(AgentConfig):
    """An agent that is a command."""

    command: Words
    """The command: a list, or text that is split without a shell."""
    args: list[str] = Field(default_factory=list)
    """Further arguments."""
    protocol: Literal["atp", "text"] = "atp"
    """ATP's own protocol, or the prompt on stdin and the answer on stdout."""
    working_dir: str | None = None
    """Where it runs; otherwise in the trial's workspace."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables."""
    inherit_environment: bool = False
    """Hand on all of our environment."""
    history: Literal["ignored"] | None = None
    """`ignored`: run cases with earlier messages, too, although the agent is only given the newest one."""


class DockerConfig(HttpSpeech):
    """An agent in a container."""

    image: Text | None = None
    """The image's name."""
    build: Text | None = None
    """A folder with a `Dockerfile` to build the image from."""
    pull: bool = False
    """Fetch the image if it isn't there; with `build`, those that the `Dockerfile` starts from."""
    command: Words | None = None
    """Replaces the image's command: a list, or text that is split without a shell."""
    entrypoint: Words | None = None
    """Replaces the image's entry point, in the same forms."""
    protocol: Literal["atp", "text", "openai", "json"] = "atp"
    """ATP's own protocol, or the prompt on stdin and the answer on stdout; with `port` also OpenAI chat completions
    or JSON of the agent's own shape."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables."""
    volumes: Volumes = Field(default_factory=list)
    """Files and folders to mount, as a list of `host:container[:ro]` or a map of `host: container[:ro]`. `host` is
    relative to the suite's folder, and may begin with `~`."""
    network: Text = "none"
    """The network: `none`, `bridge`, `host`, or the name of one that the engine has."""
    memory: Memory = "2g"
    """The most memory it may use: bytes, or text as `512m`, `1.5g`."""
    cpus: Cpus = 1.0
    """How many processors it may use; at least 0.01."""
    pids: Count = 256
    """How many processes it may have."""
    user: Text | None = None
    """The user in the container; the caller's by default."""
    working_dir: Annotated[str, Field(pattern=r"^/")] | None = None
    """The folder it starts in; `/workspace` by default, with `port` the image's own."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """It is an HTTP agent on this port: started once and shared over trials. Needs a `network`."""
    path: Annotated[str, Field(pattern=r"^/")] | None = None
    """With `port`: the path requests are posted to; `/` by default."""
    health_path: Annotated[str, Field(pattern=r"^/")] | None = None
    """With `port`: a path that answers well when the agent is ready; otherwise any answer will do."""
    ready_within: Seconds | None = None
    """With `port`: how long it may take until it is ready; a minute by default."""

    @model_validator(mode="after")
    def _has_image(self) -> "DockerConfig":
        if (self.image is None) == (self.build is None):
            raise PydanticCustomError("docker_image", "`docker` needs `image` or `build`, one of the two")
        _check_protocol(self)
        wrong = self._wrong_with_port() if self.port is not None else self._wrong_without_port()
        if wrong is not None:
            raise PydanticCustomError("docker_port", "{wrong}", {"wrong": wrong})
        if self.port is None and WORKSPACE in mount_points(self.volumes):
            raise PydanticCustomError(
                "docker_volume",
                "nothing can be mounted on `{point}`, where the trial's own folder is",
                {"point": WORKSPACE, "key": "volumes", "hint": "mount it beside that, or on a folder in it"},
            )
        return self

    def _wrong_with_port(self) -> str | None:
        if self.protocol == "text":
            return "`protocol: text` goes over stdin and stdout, so not with `port`"
        if self.network == "none":
            return "`port` needs a `network`, or nobody can reach it: `bridge`, `host` or one of the engine's"
        return None

    def _wrong_without_port(self) -> str | None:
        if self.protocol in ("openai", "json"):
            return f"`protocol: {self.protocol}` goes over HTTP: say on which `port`"
        for key in ("path", "health_path", "ready_within", "api_key", "headers"):
            if getattr(self, key):
                return f"`{key}` goes with `port`"
        return None


def _wrong_place(config: "LangGraphConfig | CrewAiConfig", path: str, name: str) -> dict[str, str] | None:
    """Code is found in a file, or in a module under a name; both ways at once may lead to two things."""
    has_path, has_module = (getattr(config, key) is not None for key in (path, "module"))
    if has_path and has_module:
        return {"wrong": f"has both `{path}` and `module`", "hint": f"keep `{path}`, or `module` and `{name}`"}
    if has_path or has_module:
        return None
    return {"wrong": f"needs `{path}`, or `module` and `{name}`", "hint": f"add `{path}: file.py:name`"}


class LangGraphConfig(OpenRecord, AgentConfig):
    """A LangGraph graph. Further keys go to the graph's `configurable`."""

    model_config = ConfigDict(extra="allow")

    graph_path: Text | None = None
    """`file.py` or `file.py:name`."""
    module: Text | None = None
    """A module that can be imported, with `graph`."""
    graph: Text | None = None
    """The name of the graph, the `StateGraph` or the factory in `module`."""
    model: str | None = None
    """For the graph's `configurable`."""
    temperature: Amount | None = None
    """For the graph's `configurable`."""
    python: Text | None = None
    """The interpreter of the environment it lives in."""

    @model_validator(mode="after")
    def _has_graph(self) -> "LangGraphConfig":
        if wrong := _wrong_place(self, "graph_path", "graph"):
            raise PydanticCustomError("langgraph_graph", "`langgraph` {wrong}", wrong)
        return self


class CrewAiConfig(AgentConfig):
    """A CrewAI crew or flow."""

    crew_path: Text | None = None
    """`file.py` or `file.py:name`: a crew, a flow, or a function that makes one."""
    module: Text | None = None
    """A module that can be imported, with `crew`."""
    crew: Text | None = None
    """The name of the crew, the flow or the factory in `module`."""
    inputs: JsonObject = Field(default_factory=dict)
    """Further inputs for the kickoff."""
    python: Text | None = None
    """The interpreter of the environment it lives in."""

    @model_validator(mode="after")
    def _has_crew(self) -> "CrewAiConfig":
        if wrong := _wrong_place(self, "crew_path", "crew"):
            raise PydanticCustomError("crewai_crew", "`crewai` {wrong}", wrong)
        return self


NEEDS_ENTRY = ("`custom` needs `entry`", "write `entry: module:function` or `file.py:function`")
"""What is wrong with a `custom` agent that names no code, and how to fix it. Such a file loads, but can't run."""


class CustomConfig(AgentConfig):
    """Python code of the user's. All keys are handed to it."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Json]

    entry: Entry | None = None
    """`module:function` or `path/to/file.py:function`."""
    python: Text | None = None
    """The interpreter of the environment it lives in."""

    @model_validator(mode="after")
    def _has_entry(self) -> "CustomConfig":
        further = (self.model_extra or {}) if self.entry is None else {}
        slip = near_miss("entry", further) or next((key for key in further if key.startswith("entry")), None)
        if slip is not None:
            message = "unknown key `{key}`: did you mean `{meant}`?"
            raise PydanticCustomError("near_miss", message, {"key": slip, "meant": "entry"})
        return self

    def near_misses(self) -> list[tuple[str, str]]:
        """The keys that are handed to the code and look like misspelled keys of ATP's, each with the key meant."""
        free = {*type(self).model_fields, "history"} - self.model_fields_set - self.__pydantic_extra__.keys()
        return [(key, meant) for key in self.__pydantic_extra__ if (meant := near_miss(key, sorted(free)))]


class PromptConfig(AgentConfig):
    """An agent that is a prompt, in a file."""

    path: Text
    """`agents/x.md`, or a folder with `package.yao`."""
    connector: str | None = Field(default=None, validation_alias=AliasChoices("connector", "model"))
    """The model connector to use."""
    temperature: Amount | None = None
    """The model's temperature, instead of the file's."""
    max_tokens: Count | None = None
    """The longest answer, instead of the file's."""
    options: JsonObject = Field(default_factory=dict)
    """Further settings of the model, over those of the file."""

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the model that are given here."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {**self.options, **{key: value for key, value in own.items() if value is not None}}


def capabilities_of(config: AgentConfig) -> Capabilities:
    """What an agent with this configuration can report and is given, as far as the configuration tells."""
    protocol = getattr(config, "protocol", None)
    if protocol == "text":
        return ONLY_ANSWERS
    if protocol == "openai" or isinstance(config, CrewAiConfig):
        return Capabilities(cost=False)
    if protocol == "json" and isinstance(config, HttpSpeech):
        calls, usage = config.tool_calls_path is not None, config.usage_path is not None
        history = _MESSAGES.search(json.dumps(config.body)) is not None
        return Capabilities(tool_calls=calls, tokens=usage, cost=usage, steps=calls or usage, history=history)
    return Capabilities()


_MESSAGES = re.compile(r"\{\{\s*messages\b")
"""The placeholder of the whole conversation in the `body` of a request."""


class Agent(Record):
    """An agent under test."""

    name: Text
    """What the suite calls it."""
    type: str
    """The kind of agent."""
    description: str | None = None
    """What it is."""
    config: Any
    """How to reach it; its keys depend on the kind."""
    matrix: Matrix | None = None
    """Lists of values to try for keys of `config`. Each combination is tested as an agent of its own, a column of the
    reports. A dot leads into a mapping: `environment.MODEL`."""
    _place: Place = PrivateAttr(default_factory=Place)
    _key_places: dict[str, Place] = PrivateAttr(default_factory=dict)
    _column_values: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _take_first_values(cls, raw: Any) -> Any:
        # A key that only the matrix has may be one that the configuration needs.
        return with_first_values(raw)

    @property
    def column_values(self) -> dict[str, Any]:
        """The values that the agent has of a matrix, by key; empty if the agent is no column."""
        return self._column_values

    @property
    def column_names(self) -> list[str]:
        """The names of the agents that `matrix` makes of this one."""
        texts = labels(self.matrix or {})
        numbers = (one.numbers for one in combinations(self.matrix or {}))
        return [column_name(self.name, [texts[key][number] for key, number in one.items()]) for one in numbers if one]

    def columns(self) -> list[tuple[list[str], "Agent"]]:
        """Return an agent for each combination of `matrix`, with what it differs in; without one, the agent itself.

        Raises pydantic's `ValidationError` for values that the configuration can't have.
        """
        if self.matrix is None:
            return [([], self)]
        texts = labels(self.matrix)
        kind: type[AgentConfig] = type(self.config)
        given = self.config.model_dump(exclude_unset=True, exclude=_fields_of(self.matrix, kind))
        made = []
        for one in combinations(self.matrix):
            config = kind.model_validate(one.put_into(given))
            parts = [texts[key][number] for key, number in one.numbers.items()]
            column = self.model_copy(update={"name": column_name(self.name, parts), "config": config, "matrix": None})
            column._column_values = dict(one.values)
            made.append((parts, column))
        return made

    @property
    def place(self) -> Place:
        """Where the agent is described in its suite; line 0 if it is not in a suite."""
        return self._place

    def place_of(self, key: str | None) -> Place:
        """Where a key of `config` is written in the suite; the place of the agent if that is not known."""
        return self._key_places.get(key or "", self._place)

    def stands_at(self, place: Place, keys: Mapping[str, Place] | None = None) -> None:
        """Set the place, and those of the keys of `config`. The loader calls this: places are not what a file says."""
        self._place = place
        self._key_places = dict(keys or {})


def _fields_of(keys: Iterable[str], config: type[AgentConfig]) -> set[str]:
    """The fields that have one of the keys as another spelling."""
    found = set()
    for name, field in config.model_fields.items():
        alias = field.validation_alias
        if isinstance(alias, AliasChoices) and not set(alias.choices).isdisjoint(keys):
            found.add(name)
    return found


def with_first_values(raw: Any) -> Any:
    """Return the data of an agent with the first values of its matrix in its configuration, if it has a matrix."""
    matrix, config = (raw.get("matrix"), raw.get("config", {})) if isinstance(raw, dict) else (None, None)
    if not isinstance(matrix, dict) or not isinstance(config, dict):
        return raw
    if not all(isinstance(key, str) and isinstance(values, list) and values for key, values in matrix.items()):
        return raw  # a mistake, which validation reports
    first = Combination({key: values[0] for key, values in matrix.items()}, dict.fromkeys(matrix, 0))
    return {**raw, "config": first.put_into(config)}


CONFIGURATIONS: dict[str, type[AgentConfig]] = {
    "http": HttpConfig,
    "docker": DockerConfig,
    "cli": CliConfig,
    "langgraph": LangGraphConfig,
    "crewai": CrewAiConfig,
    "custom": CustomConfig,
    "prompt": PromptConfig,
}
"""The configurations of our own kinds, so that a file is validated without loading an adapter and what it imports."""


def _names(adapter: Any) -> tuple[str]:
    name, config = getattr(adapter, "type", None), getattr(adapter, "Config", AgentConfig)
    if not (isinstance(name, str) and name):
        raise PluginError(f"the adapter {adapter!r} has no name", 'say its name: `type = "queue"`')
    if not (isinstance(config, type) and issubclass(config, AgentConfig)):
        raise PluginError(f"the `Config` of the adapter `{name}` is not derived from `AgentConfig`")
    return (name,)


AGENTS: Registry[Any] = Registry(
    "atp.agents",
    {
        "http": "atp.agents.http.adapter:HttpAdapter",
        "docker": "atp.agents.docker:docker_adapter",
        "cli": "atp.agents.command.adapter:CliAdapter",
        "langgraph": "atp.agents.python.kinds:langgraph_adapter",
        "crewai": "atp.agents.python.kinds:crewai_adapter",
        "custom": "atp.agents.python.kinds:custom_adapter",
        "prompt": "atp.agents.prompt.adapter:PromptAdapter",
    },
    _names,
)
"""The kinds of agent by `type`: classes that are called with an agent and an `AdapterContext`, and give an adapter."""


def agent_record(kind: str) -> type[Agent] | None:
    """The class that validates agents of a kind: `Agent` with the configuration of that kind."""
    config = CONFIGURATIONS.get(kind)
    if config is None:
        adapter = AGENTS.find(kind)
        if adapter is None:
            return None
        config = getattr(adapter, "Config", AgentConfig)
    return _with_config(kind, config)


@cache
def _with_config(kind: str, config: type[AgentConfig]) -> type[Agent]:
    stem = config.__name__.removesuffix("Config") or "".join(word.title() for word in kind.split("_"))
    about = (config.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".")
    return create_model(
        f"{stem}Agent",
        __base__=Agent,
        __doc__=f"{about}.",
        __module__=config.__module__,
        type=(Literal[kind], ...),  # type: ignore[arg-type]
        config=(config, ...),
    )


ANY_AGENT = OneOf(AGENTS, agent_record)
AnyAgent = Annotated[Agent, ANY_AGENT]
"""An agent of any registered kind."""


class AgentList(Record):
    """Agents that are described outside of a suite: in `atp.toml`, or in a file of their own."""

    agents: list[AnyAgent] = Field(default_factory=list)
    """The agents."""
