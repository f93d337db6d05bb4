"""A case: what is said to an agent, what must hold afterwards, and within which limits."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from atp.base.diagnostics import Place
from atp.suite.assertion import AnyAssertion, Assertion, each_assertion
from atp.suite.matcher import check_matchers
from atp.suite.message import Message
from atp.suite.options import Options
from atp.suite.paths import ArtifactPath
from atp.suite.record import (
    Amount,
    Confidence,
    Count,
    Defaulting,
    Fraction,
    Json,
    JsonObject,
    Margin,
    Names,
    Record,
    Score,
    Seconds,
    Share,
    Text,
    Truth,
)
from atp.suite.reference import BareAgent

Mode = Literal["task", "messages", "chains", "dialogue", "script"]
"""How the conversation with an agent is led. In a `script`, a Python function leads it."""
MOST_TURNS = 20
"""The default of `max_turns`."""


class Task(Record):
    """What the agent should accomplish."""

    description: Annotated[str, Field(min_length=1, max_length=100_000)]
    """A clear instruction for the agent."""
    input_data: JsonObject | None = None
    """Further data for the agent."""
    expected_artifacts: list[ArtifactPath] | None = None
    """Files or outputs the agent should create."""


class Limits(Defaulting):
    """Boundaries of a trial. They are enforced while it runs."""

    max_steps: Count | None = None
    """The most reasoning or action steps; each tool call is at least one."""
    max_tokens: Count | None = None
    """The most tokens for model calls."""
    timeout_seconds: Seconds | None = 300
    """The longest a trial may take. If it is not given, the suite and `--timeout` decide."""
    allowed_tools: list[Text] | None = None
    """The only tools the agent may use."""
    budget_usd: Amount | None = None
    """The most it may cost."""

    def fill(self, wider: "dict[str, Any]") -> None:
        """Take the limits that are not set here from wider ones."""
        if wider:
            own = self.given()
            for name, value in wider.items():
                if name not in own:
                    setattr(self, name, value)


class Weights(Record):
    """How much each dimension counts in the score. Together they make 1."""

    quality_weight: Fraction = 0.4
    """Output quality: the judged and behavioural checks."""
    completeness_weight: Fraction = 0.3
    """Task completion: passed checks and expected artifacts."""
    efficiency_weight: Fraction = 0.2
    """Steps used of those allowed."""
    cost_weight: Fraction = 0.1
    """Money or tokens spent of those allowed."""

    @model_validator(mode="after")
    def _sum_to_one(self) -> "Weights":
        total = self.quality_weight + self.completeness_weight + self.efficiency_weight + self.cost_weight
        if abs(total - 1) > 0.01 + 1e-9:
            raise PydanticCustomError(
                "weights_sum",
                "the four scoring weights must sum to 1.0, they sum to {total}",
                {"total": f"{total:.6g}"},
            )
        return self


class Simulator(Record):
    """The agent that plays the user in a dialogue."""

    use: BareAgent | None = None
    """The simulator agent's id, without a prefix, or `scripts.file.function`; `--simulator` gives the default."""
    options: Options | None = None
    """Handed to the simulator; `metadata` holds `persona` and `goal`."""


class Checkpoint(Record):
    """Something that must happen in a dialogue."""

    id: Text
    """Its name within the case."""
    description: str | None = None
    """What it means."""
    assertion: AnyAssertion = Field(validation_alias=AliasChoices("assertion", "assert"))
    """Holds on the turn that reaches the checkpoint."""
    after: list[Text] = Field(default_factory=list)
    """Checkpoints that must be reached first."""
    required: bool = True
    """Whether the case fails without it."""

    @field_validator("assertion")
    @classmethod
    def _is_no_snapshot(cls, assertion: Assertion) -> Assertion:
        # A checkpoint is tried on every turn, so which answer a golden file should have is not known.
        if any(one.type == "snapshot" for one in each_assertion([assertion])):
            raise PydanticCustomError(
                "snapshot_checkpoint",
                "a `snapshot` can't be a checkpoint",
                {"hint": "put it into the `assertions` of the case; they look at the last answer"},
            )
        return assertion


def _listed(value: Any) -> Any:
    """Accept one object for a list of one."""
    return [value] if isinstance(value, dict) else value


def _messages(value: Any) -> Any:
    """Accept text and a single message for a conversation (`input` of the JSONL format)."""
    if not isinstance(value, str | dict | list):
        raise PydanticCustomError("messages_type", "expected text, a message or a list of messages")
    return [{"role": "user", "content": value}] if isinstance(value, str) else _listed(value)


class Case(Record):
    """One test case, whichever dialect it was written in."""

    index: int = Field(default=0, exclude=True)
    """Its place in the file, from 0."""
    id: Text
    """Unique within the suite."""
    name: str = ""
    """For people; the id if there is none."""
    path: list[str] = Field(default_factory=list)
    """The headings it stands under, outermost first, its own last."""
    description: str | None = None
    """Details for people."""
    intent: str | None = None
    """What it is meant to prove, for the assessor."""
    tags: list[Text] = Field(default_factory=list)
    """For choosing cases."""
    skip: Truth = False
    """Leave it out, and say so."""
    agents: Names | None = None
    """Only against these agents of the suite."""

    task: Task | None = None
    """A task to accomplish."""
    messages: Annotated[list[Message], BeforeValidator(_messages)] = Field(
        default_factory=list, validation_alias=AliasChoices("messages", "input")
    )
    """A conversation so far, whose last message the agent answers; in a dialogue, the first turn."""
    chains: list[list[str]] = Field(default_factory=list)
    """Prompt chains: each is a variation, its prompts are said one after the other."""
    simulator: Simulator | None = None
    """A simulated user."""
    checkpoints: list[Checkpoint] = Field(default_factory=list)
    """What the dialogue must reach."""
    max_turns: Count | None = None
    """The most turns of a dialogue (20)."""

    assertions: Annotated[list[AnyAssertion], BeforeValidator(_listed)] = Field(
        default_factory=list, validation_alias=AliasChoices("assertions", "assert")
    )
    """What must hold afterwards, decided exactly or by a named judge."""
    expectations: list[Text] = Field(default_factory=list)
    """What must hold afterwards, in words, decided by the assessor."""
    expected: Json = None
    """The expected output, used when there are no assertions."""

    befores: list[int] = Field(default_factory=list)
    """The cases that come before it, by index, as written."""
    before_sequence: list[int] = Field(default_factory=list)
    """The cases that are replayed before it, their own befores included, in order."""
    iterations: Count | None = None
    """How many variations of the prompt to run."""
    runs: Count | None = None
    """How many times to repeat each trial."""

    limits: Limits = Field(default_factory=Limits, validation_alias="constraints")
    """Boundaries, the suite's defaults included."""
    timeout: Seconds | None = Field(default=None, exclude=True)
    """Short for the limit `timeout_seconds`, where the loader puts it."""
    scoring: Weights | None = None
    """Weights of the score."""
    min_score: Score | None = None
    """The least score that passes."""
    pass_rate: Share | None = None
    """The share of trials that must pass; otherwise all of them."""
    confidence: Confidence | None = None
    """How sure it has to be that the long-run pass rate reaches `pass_rate`; otherwise the observed share decides."""
    margin: Margin | None = None
    """With `confidence`: how far below `pass_rate` the long-run rate may lie and still pass (0)."""

    user: Text | None = None
    """The user it runs as."""
    team: Text | None = None
    """The team it runs as."""
    locale: Text | None = None
    """The locale it runs in."""
    metadata: JsonObject = Field(default_factory=dict)
    """Free data, handed to the agent."""
    options: Options | None = None
    """Handed to the agent."""
    workspace: Text | None = None
    """A folder whose files each trial starts with."""
    before_hook: Text | None = Field(default=None, validation_alias=AliasChoices("before_hook", "before"))
    """A Python function called before each trial."""
    after_hook: Text | None = Field(default=None, validation_alias=AliasChoices("after_hook", "after"))
    """A Python function called after each trial."""
    tools: frozenset[str] = Field(default_factory=frozenset, exclude=True, repr=False)
    """The tools of the agents under test, as far as files name them. Set if there are expectations, before the plan."""
    place: Place = Field(default_factory=Place, exclude=True, repr=False)
    """Where it stands in its file."""

    @field_validator("expected")
    @classmethod
    def _matchers_exist(cls, expected: Any, info: ValidationInfo) -> Any:
        # Alone it means `equals`, with its matchers; beside assertions it may be data for a script.
        return expected if info.data.get("assertions") else check_matchers(expected)

    @property
    def skip_reason(self) -> str | None:
        """Why the case is skipped, if known. Files give no reason."""
        return None

    @property
    def mode(self) -> Mode:
        """How the conversation with the agent is led."""
        if self.simulator is not None or self.checkpoints:
            return "dialogue"
        if self.task is not None:
            return "task"
        return "messages" if self.messages else "chains"

    @property
    def says_nothing(self) -> bool:
        """True if the case has no prompt, only expectations about what its befores left."""
        return self.mode == "chains" and not self.chains

    @property
    def only_before(self) -> bool:
        """True if the case has a prompt but expects nothing: it is only run as a before of other cases."""
        return bool(self.chains) and self.mode == "chains" and not self.expectations and not self.assertions

    @property
    def input(self) -> Any:
        """The prompt in the shortest form of the JSONL format: text, or a list of messages."""
        if self.task is not None:
            return self.task.description
        messages = self.messages
        if not messages:
            return self.chains[0] if self.chains else None
        if len(messages) == 1 and messages[0].role == "user" and isinstance(content := messages[0].content, str):
            return content
        return [message.wire() for message in messages]

    @property
    def asserted(self) -> list[Assertion]:
        """The assertions of the case and of its checkpoints."""
        if not self.checkpoints:
            return self.assertions
        return [*self.assertions, *(checkpoint.assertion for checkpoint in self.checkpoints)]

    @property
    def constraints(self) -> Limits:
        """The limits, by their name in the YAML suite format."""
        return self.limits
