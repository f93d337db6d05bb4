"""Assertions: what must hold after an agent has answered.

A kind of assertion is one class: its fields are the keys that a file may give, its method `check` gives the verdict.
Ours are in `atp/checks/`, a plugin's wherever its entry point says; they are loaded when a file uses their `type`.
"""

from collections.abc import Awaitable, Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import AliasChoices, Field, model_validator
from pydantic_core import PydanticCustomError

from atp.base.registry import PluginError, Registry
from atp.suite.kinds import OneOf
from atp.suite.record import Amount, Record
from atp.suite.result import Verdict


class Need(NamedTuple):
    """Something that an agent must be able to report, or be given, and what for."""

    what: str
    """A field of `Capabilities`."""
    why: str
    """In words, for the message."""


class Decider(NamedTuple):
    """A judge or a validator that must be asked."""

    role: Literal["assessor", "validator"]
    """Which of the two."""
    name: str | None
    """The name of the judge or validator; none means the judge of all that name nobody."""
    why: str
    """What the decider is needed for, in words."""


class Assertion(Record):
    """What every assertion takes beside its own keys."""

    judged: ClassVar[bool] = False
    """Whether a model or the user's code decides, not ATP itself."""

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
    turns: Literal["all", "own"] = "all"
    """What is looked at: the whole conversation, befores included, or only the case's own turns."""

    def check(self, evidence: Any) -> Verdict | Awaitable[Verdict]:
        """Give the verdict on what came of a trial, an `atp.plugins.Evidence`. May be a coroutine function.

        `negate`, `message`, `weight` and `critical` are applied by the caller. An exception makes the check unjudged.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `check`")

    def needs(self, negated: bool) -> Iterable[Need]:
        """What the agent must be able to report, or the assertion would hold because nobody looked.

        `negated` says whether the verdict is turned round, by `negate` or by a group around the assertion.
        """
        return ()

    def deciders(self) -> Iterable[Decider]:
        """The judges and validators that `check` asks."""
        return ()

    @property
    def needs_judge(self) -> bool:
        """True if a model or the user's code has to be asked."""
        return self.judged

    @property
    def config(self) -> dict[str, Any]:
        """The keys of the assertion's kind that the file gives, by their name in the YAML suite format."""
        return self.model_dump(exclude={"type", *Assertion.model_fields}, exclude_unset=True)

    @model_validator(mode="before")
    @classmethod
    def _flatten_config(cls, raw: Any) -> Any:
        # YAML suites nest a kind's keys in `config`, JSONL cases have them flat. Both at once is fine unless
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


def _names(kind: Any) -> tuple[str]:
    if not (isinstance(kind, type) and issubclass(kind, Assertion)):
        raise PluginError(f"{kind!r} is no kind of check", "derive a class from `atp.plugins.Assertion`")
    names = get_args(kind.model_fields["type"].annotation)
    if len(names) != 1:
        raise PluginError(f"the check {kind.__name__} has no name", 'say its name: `type: Literal["polite"]`')
    if kind.check is Assertion.check:
        raise PluginError(f"the check `{names[0]}` can't be made: {kind.__name__} has no method `check`")
    return (names[0],)


ASSERTIONS: Registry[type[Assertion]] = Registry(
    "atp.checks",
    {
        "equals": "atp.checks.output:Equals",
        "contains": "atp.checks.output:Contains",
        "not_contains": "atp.checks.output:NotContains",
        "regex": "atp.checks.output:RegexMatch",
        "json_path": "atp.checks.output:JsonPath",
        "type": "atp.checks.output:TypeIs",
        "json_schema": "atp.checks.output:JsonSchema",
        "tool_called": "atp.checks.tools:ToolCalled",
        "not_tool_called": "atp.checks.tools:NotToolCalled",
        "tool_result": "atp.checks.tools:ToolResult",
        "tool_order": "atp.checks.tools:ToolOrder",
        "artifact_exists": "atp.checks.artifacts:ArtifactExists",
        "behavior": "atp.checks.behavior:Behavior",
        "llm_eval": "atp.checks.judged:LlmEval",
        "agent": "atp.checks.judged:AgentAssertion",
        "script": "atp.checks.script:ScriptAssertion",
        "snapshot": "atp.checks.snapshot:SnapshotAssertion",
        "all_of": "atp.checks.groups:AllOf",
        "any_of": "atp.checks.groups:AnyOf",
        "none_of": "atp.checks.groups:NoneOf",
        "at_least": "atp.checks.groups:AtLeast",
    },
    _names,
)
"""The kinds of assertion by `type`."""

ANY_ASSERTION = OneOf(ASSERTIONS, ASSERTIONS.find)
AnyAssertion = Annotated[Assertion, ANY_ASSERTION]
"""An assertion of any registered kind."""


class Group(Assertion):
    """Assertions around others."""

    inverts: ClassVar[bool] = False
    """Whether the group holds if its parts do not."""

    assertions: list[AnyAssertion] = Field(min_length=1, validation_alias=AliasChoices("assertions", "assert"))
    """The assertions in it."""

    @property
    def negates_parts(self) -> bool:
        """True if the verdicts of the parts are turned round: by `negate` or `none_of`, not by both."""
        return self.negate ^ self.inverts

    def needs(self, negated: bool) -> Iterator[Need]:
        """What the agent must be able to report for the parts."""
        for part in self.assertions:
            yield from part.needs(negated ^ self.inverts ^ part.negate)

    def deciders(self) -> Iterator[Decider]:
        """The judges and validators that the parts ask."""
        for part in self.assertions:
            yield from part.deciders()

    @property
    def needs_judge(self) -> bool:
        """True if any part needs a judge."""
        return any(part.needs_judge for part in self.assertions)


def each_assertion(assertions: Iterable[Assertion]) -> Iterator[Assertion]:
    """Each of the assertions, those in groups included."""
    for assertion in assertions:
        yield assertion
        if isinstance(assertion, Group):
            yield from each_assertion(assertion.assertions)
