"""Assertions: what must hold after an agent has answered, typed by kind.

The keys are those of the documents; where two of them spell a key in two ways, both are accepted, never both at once.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator
from pydantic_core import PydanticCustomError

from atp.suite.kinds import Kinds
from atp.suite.matcher import check_matchers, check_no_matchers
from atp.suite.options import Options
from atp.suite.paths import JsonPathText, JsonSchemaObject
from atp.suite.record import (
    Amount,
    Count,
    Fraction,
    Json,
    JsonObject,
    Names,
    Record,
    Regex,
    Text,
    Whole,
    check_sought,
)
from atp.suite.reference import PrefixedAgent, Script


class Assertion(Record):
    """What every assertion takes beside its own keys."""

    judged: ClassVar[bool] = False
    """Whether a model or somebody else's code decides, not ATP itself."""

    type: str
    """The kind of assertion."""
    critical: bool = False
    """If this fails, the score is 0."""
    weight: Amount = 1.0
    """How much it counts in the score beside the others."""
    message: str | None = None
    """Replaces the text of a failure."""
    negate: bool = False
    """Turn the verdict round. What could not be judged stays unjudged."""

    @model_validator(mode="before")
    @classmethod
    def _flatten_config(cls, raw: Any) -> Any:
        # Document 1 nests a kind's keys in `config`, documents 4 and 5 write them flat. Both at once is fine unless
        # they contradict each other.
        if type(raw) is not dict or "config" not in raw:
            return raw
        if not isinstance(config := raw["config"], dict):
            raise PydanticCustomError("dict_type", "`config` must be a mapping", {"key": "config"})
        flat = {key: value for key, value in raw.items() if key != "config"}
        if twice := flat.keys() & config.keys():
            raise PydanticCustomError(
                "given_twice", "`{key}` stands both in `config` and beside it", {"key": min(twice)}
            )
        return flat | config


ASSERTIONS = Kinds[Assertion]("atp.checks")
AnyAssertion = Annotated[Assertion, ASSERTIONS]
"""One assertion of any registered kind."""

Matched = Annotated[Json, AfterValidator(check_matchers)]
"""A JSON value in which an object such as `{"$gt": 3}` is a matcher."""
Contained = Annotated[Json, AfterValidator(check_no_matchers), AfterValidator(check_sought)]
"""A JSON value to look for, not the empty text; matchers have no meaning in it, only `$literal`."""


@ASSERTIONS.register
class Equals(Assertion):
    """The output is this value."""

    type: Literal["equals"]
    """Always `equals`."""
    value: Matched
    """The expected value. Key order and 1 against 1.0 don't matter; true is not 1."""


@ASSERTIONS.register
class Contains(Assertion):
    """The output contains a text, an object's keys and values, or a list's element."""

    type: Literal["contains"]
    """Always `contains`."""
    value: Contained
    """Text is searched in the output's text; an object is a recursive subset; on a list, membership."""
    ignore_case: bool = False
    """Letter case doesn't matter."""


@ASSERTIONS.register
class NotContains(Assertion):
    """The output does not contain it."""

    type: Literal["not_contains"]
    """Always `not_contains`."""
    value: Contained
    """As in `contains`."""
    ignore_case: bool = False
    """Letter case doesn't matter."""


@ASSERTIONS.register
class RegexMatch(Assertion):
    """A regular expression is found in the output's text."""

    type: Literal["regex"]
    """Always `regex`."""
    pattern: Regex = Field(validation_alias=AliasChoices("pattern", "value"))
    """The expression, in Python's syntax."""


@ASSERTIONS.register
class JsonPath(Assertion):
    """The place a JSONPath names exists, or holds a value."""

    type: Literal["json_path"]
    """Always `json_path`."""
    path: JsonPathText
    """RFC 9535, or the short form `a.b`."""
    value: Matched = None
    """The expected value; a list against a single result means one of them. Left out: the place exists."""


TypeName = Literal["string", "number", "integer", "boolean", "object", "array", "null"]


@ASSERTIONS.register
class TypeIs(Assertion):
    """The output, or a place in it, has a JSON type."""

    type: Literal["type"]
    """Always `type`."""
    value: TypeName
    """The expected type."""
    path: JsonPathText | None = None
    """Look there instead of at the whole output."""


@ASSERTIONS.register
class JsonSchema(Assertion):
    """The output's JSON fits a JSON Schema."""

    type: Literal["json_schema"]
    """Always `json_schema`."""
    schema_: JsonSchemaObject = Field(validation_alias=AliasChoices("schema", "value"), serialization_alias="schema")
    """The schema."""
    path: JsonPathText | None = None
    """Look there instead of at the whole output."""


@ASSERTIONS.register
class ToolCalled(Assertion):
    """The agent called a tool."""

    type: Literal["tool_called"]
    """Always `tool_called`."""
    name: Text = Field(validation_alias=AliasChoices("name", "value"))
    """The tool's exact name; `server__tool` also answers to `tool`."""
    arguments: Annotated[JsonObject, AfterValidator(check_matchers)] | None = None
    """A recursive subset of the call's arguments."""
    times: Whole | None = None
    """Exactly so often; left out: at least once."""
    before: Text | None = None
    """And that before the first call of this tool."""
    after: Text | None = None
    """And that after the first call of this tool."""


@ASSERTIONS.register
class NotToolCalled(Assertion):
    """The agent did not call a tool."""

    type: Literal["not_tool_called"]
    """Always `not_tool_called`."""
    name: Text = Field(validation_alias=AliasChoices("name", "value"))
    """The tool's name."""
    arguments: Annotated[JsonObject, AfterValidator(check_matchers)] | None = None
    """Only calls with these arguments count."""


@ASSERTIONS.register
class ToolResult(Assertion):
    """A tool that the agent called gave a result."""

    type: Literal["tool_result"]
    """Always `tool_result`."""
    name: Text
    """The tool's name."""
    value: Matched = None
    """The expected result, an object being a recursive subset."""
    contains: Contained = None
    """Found in the result, as in `contains`."""
    pattern: Regex | None = Field(default=None, validation_alias=AliasChoices("pattern", "matches"))
    """Found in the result's text."""
    path: JsonPathText | None = None
    """Look there in the result."""
    status: Literal["success", "error"] | None = None
    """How the call ended."""


@ASSERTIONS.register
class ToolOrder(Assertion):
    """Tools were called in this order; others may stand between them."""

    type: Literal["tool_order"]
    """Always `tool_order`."""
    tools: list[Text] = Field(min_length=1, validation_alias=AliasChoices("tools", "value", "tool_order"))
    """The tools, first to last."""


@ASSERTIONS.register
class ArtifactExists(Assertion):
    """The agent made a file or artifact."""

    type: Literal["artifact_exists"]
    """Always `artifact_exists`."""
    path: Text
    """Its path in the workspace or its name; may be a glob."""
    contains: Annotated[str, AfterValidator(check_sought)] | None = None
    """Text that stands in it."""
    matches: Regex | None = None
    """A regular expression found in it."""
    json_schema: JsonSchemaObject | None = None
    """A JSON Schema its content fits."""
    min_bytes: Whole | None = None
    """It is at least this long."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    """The digest of its content."""


@ASSERTIONS.register
class Behavior(Assertion):
    """How the agent worked: a named check, rules about tools, or both."""

    type: Literal["behavior"]
    """Always `behavior`."""
    check: Literal["no_repeated_actions", "efficient_tool_use", "no_errors"] | None = None
    """The named check."""
    max_repeats: Whole = 0
    """For `no_repeated_actions`: how many repeats are allowed."""
    max_redundant_calls: Whole = 0
    """For `efficient_tool_use`: how many repeated calls are allowed."""
    allow_recovered: bool = False
    """For `no_errors`: an error that the agent recovered from doesn't count."""
    must_use_tools: Names | None = None
    """Each of these was called."""
    forbidden_tools: Names | None = None
    """None of these was called."""
    min_tool_calls: Whole | None = None
    """At least so many calls."""
    max_tool_calls: Whole | None = None
    """At most so many calls; `efficient_tool_use` takes the case's `max_steps` otherwise."""
    tool_order: Names | None = None
    """These were called in this order, others between them allowed."""

    @model_validator(mode="after")
    def _says_something(self) -> "Behavior":
        rules = (self.must_use_tools, self.forbidden_tools, self.min_tool_calls, self.max_tool_calls, self.tool_order)
        if self.check is None and all(rule is None for rule in rules):
            raise PydanticCustomError("missing_check", "`behavior` needs a `check` or a rule about tools")
        return self


CRITERIA = ("factual_accuracy", "completeness", "coherence", "relevance")
"""The criteria document 1 names; any other text is a criterion in the user's own words."""


@ASSERTIONS.register
class LlmEval(Assertion):
    """A model scores the output from 0 to 1."""

    judged: ClassVar[bool] = True

    type: Literal["llm_eval"]
    """Always `llm_eval`."""
    criteria: Text
    """`factual_accuracy`, `completeness`, `coherence`, `relevance`, or free text."""
    threshold: Fraction = 0.7
    """The least score that passes."""
    judge: Text | None = None
    """The agent or connector that judges."""
    votes: Count = 1
    """How many times to ask; the majority decides."""
    path: Text | None = None
    """Judge this artifact instead of the output."""


@ASSERTIONS.register
class AgentAssertion(Assertion):
    """An agent of the user's decides."""

    judged: ClassVar[bool] = True

    type: Literal["agent"]
    """Always `agent`."""
    use: PrefixedAgent
    """The validator agent, as `agents:` and its id."""
    options: Options | None = None
    """Handed to the validator; `metadata.criteria` says what to look for."""
    value: Json = None
    """The expected value; left out: the case's `expected`."""


@ASSERTIONS.register
class ScriptAssertion(Assertion):
    """A Python function of the user's decides."""

    judged: ClassVar[bool] = True

    type: Literal["script"]
    """Always `script`."""
    script: Script = Field(validation_alias=AliasChoices("script", "use"))
    """`scripts:a.b` or `scripts.a.b`: function `b` of `scripts/a.py`."""
    options: Options | None = None
    """Handed to the function in its context."""
    value: Json = None
    """The expected value; left out: the case's `expected`."""


class Group(Assertion):
    """Assertions around others."""

    assertions: list[AnyAssertion] = Field(min_length=1, validation_alias=AliasChoices("assertions", "assert"))
    """The assertions in it."""


@ASSERTIONS.register
class AllOf(Group):
    """All of them hold."""

    type: Literal["all_of"]
    """Always `all_of`."""


@ASSERTIONS.register
class AnyOf(Group):
    """At least one of them holds."""

    type: Literal["any_of"]
    """Always `any_of`."""


@ASSERTIONS.register
class NoneOf(Group):
    """None of them holds."""

    type: Literal["none_of"]
    """Always `none_of`."""


@ASSERTIONS.register
class AtLeast(Group):
    """At least `k` of them hold."""

    type: Literal["at_least"]
    """Always `at_least`."""
    k: Count
    """How many must hold."""

    @model_validator(mode="after")
    def _reachable(self) -> "AtLeast":
        if self.k > len(self.assertions):
            raise PydanticCustomError(
                "unreachable", "`k` is {k}, but there are only {n} assertions", {"k": self.k, "n": len(self.assertions)}
            )
        return self
