"""What comes of a trial: the conversation, what was seen of the agent at work, the verdicts, the outcome.

These are made by the thousand and written to the journal as they are, so they are plain structs, not validated records.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field

from atp.suite.gates import Gate

if TYPE_CHECKING:
    from atp.suite.case import Case
    from atp.suite.suite import Suite

Status = Literal["passed", "failed", "error", "timeout", "skipped", "blocked", "cancelled"]
CaseStatus = Literal["passed", "failed", "error", "timeout", "skipped", "blocked", "cancelled", "inconclusive"]
"""The status of a case: that of a trial, or `inconclusive` where its gate could be shown neither reached nor missed."""
Decision = Literal["passed", "failed", "inconclusive"]
"""What a gate comes to."""
StoppedBy = Literal["decided", "max-runs", "futility", "errors", "budget", "time", "fail-fast", "interrupted"]
"""Why the runs of a case ended, where their number was not fixed beforehand."""
Blame = Literal["agent", "simulator", "judge", "environment", "internal"]
Outcome = Literal["passed", "failed", "unjudged"]
Origin = Literal["listed", "generated", "cycled"]
"""Where a variation of a prompt comes from."""
Moment = Annotated[float, Meta(ge=0, le=253_402_300_799)]
"""Seconds since 1970, up to the year 9999. Only decoding checks the limits: a damaged line has any number."""


class ToolCall(Struct, omit_defaults=True, kw_only=True):
    """A tool that the agent called."""

    name: str
    """The tool's name."""
    arguments: Any = None
    """What it was called with."""
    result: Any = None
    """What it gave back, if the agent says."""
    error: str | None = None
    """Why it failed, if it did."""
    turn: int = 1
    """The turn of the conversation, from 1."""
    duration_ms: float | None = None
    """How long it took, if the agent says."""
    unfinished: bool = False
    """True if the agent reported that the call began, and never its outcome."""

    def is_of(self, tool: str) -> bool:
        """Whether this is a call of `tool`; the tool `server__tool` also goes by `tool`."""
        called = self.name
        return called == tool or (called.endswith(tool) and called[1 : -len(tool)].endswith("__"))


class Artifact(Struct, omit_defaults=True, kw_only=True):
    """Something the agent made and handed over."""

    name: str
    """Its path relative to the workspace, or the name of structured data."""
    kind: Literal["file", "structured", "reference"] = "file"
    """A file's content, data, or only the word that there is a file."""
    text: str | None = None
    """The content of a text file."""
    base64: str | None = None
    """The content of a file that isn't text."""
    data: Any = None
    """Structured data."""
    content_type: str | None = None
    """What kind of content it is."""
    size_bytes: int | None = None
    """How long the content is."""
    sha256: str | None = None
    """The digest of the content."""


class Usage(Struct, omit_defaults=True, kw_only=True):
    """What the agent used, as far as it said. What it left out is unknown, not zero."""

    input_tokens: int | None = None
    """Tokens read by models."""
    output_tokens: int | None = None
    """Tokens written by models."""
    total_tokens: int | None = None
    """All tokens."""
    cache_creation_tokens: int | None = None
    """Tokens written to a cache."""
    cache_read_tokens: int | None = None
    """Tokens read from a cache."""
    steps: int | None = None
    """Reasoning or action steps."""
    tool_calls: int | None = None
    """Calls of tools."""
    llm_calls: int | None = None
    """Calls of models."""
    cost_usd: float | None = None
    """Money."""
    wall_time_seconds: float | None = None
    """The agent's own clock."""

    @property
    def tokens(self) -> int | None:
        """All tokens, as far as they are known: the total, or what was read and written; the larger, given both."""
        read, written, total = self.input_tokens, self.output_tokens, self.total_tokens
        if read is None and written is None:
            return total
        parts = (read or 0) + (written or 0)
        return parts if total is None else max(total, parts)

    def add(self, other: "Usage") -> None:
        """Add the usage of a further turn. If only one of them has a total, the parts of the other are added to it."""
        if other == NOTHING_USED:  # the most frequent, and told at once
            return
        total = None
        if self.total_tokens is not None or other.total_tokens is not None:
            total = (self.tokens or 0) + (other.tokens or 0)
        for name in self.__struct_fields__:
            more = getattr(other, name)
            if more is not None:
                setattr(self, name, (getattr(self, name) or 0) + more)
        self.total_tokens = total


NOTHING_USED = Usage()
"""The usage of an agent that reports none."""


class Event(Struct, omit_defaults=True, kw_only=True):
    """Something that happened while the agent worked (an event of the protocol)."""

    type: str
    """`tool_call`, `llm_request`, `reasoning`, `error`, `progress`, `message`."""
    payload: dict[str, Any]
    """As the agent sent it."""
    turn: int = 1
    """The turn of the conversation, from 1."""
    at_ms: float = 0.0
    """When it happened, after the trial's start. When it arrived, if whoever told of it did not say."""


Asker = Literal["agent", "simulator", "judge", "test"]
"""Who asks a model in a trial: the agent under test, a role around it, or a test in Python."""


class ModelCall(Struct, omit_defaults=True, kw_only=True):
    """A request that ATP itself sent to a model, for a prompt agent or a role."""

    role: Asker = "agent"
    """Who asked."""
    turn: int = 1
    """The turn of the conversation, from 1."""
    connector: str
    """The connector that leads to the model."""
    model: str
    """The model's name."""
    at_ms: float = 0.0
    """When it began, after the trial's start."""
    duration_ms: float = 0.0
    """How long it took, with all tries."""
    waited_ms: float = 0.0
    """How long of that it waited: for other requests to the same server, and between tries."""
    retries: list[str] = field(default_factory=list)
    """Why it was sent again, each time."""
    repeated: int = 0
    """How many messages at the beginning of the request are left out: the call before had them, too."""
    request: Any = None
    """The body of the request, without headers, and with long texts cut; nothing if the trial had too much of them."""
    answer: Any = None
    """The body of the response, likewise."""
    error: str | None = None
    """Why there is no answer that can be used."""
    usage: Usage | None = None
    """What the answer used."""


class Turn(Struct, omit_defaults=True, kw_only=True):
    """One exchange: what was said to the agent and what it answered."""

    turn: int
    """From 1."""
    input: Any
    """What was said."""
    output: Any = None
    """The answer: text or any JSON value."""
    duration_ms: float = 0.0
    """How long the answer took."""


def count_unread_calls(output: Any) -> int:
    """How many tool calls an answer has in itself, where nothing reads them: it looks like a reply in parts."""
    calls = output.get("tool_calls") if isinstance(output, dict) else None
    return sum(isinstance(one, dict) and "name" in one for one in calls) if isinstance(calls, list) else 0


class Transcript(Struct, omit_defaults=True, kw_only=True):
    """All that was said and seen in a trial."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    """The conversation, as role/content objects."""
    inherited: int = 0
    """How many of the messages were said before the trial, in the befores it goes on from."""
    turns: list[Turn] = field(default_factory=list)
    """The exchanges."""
    tool_calls: list[ToolCall] = field(default_factory=list)
    """Tools called, in order."""
    events: list[Event] = field(default_factory=list)
    """What else was seen."""
    artifacts: list[Artifact] = field(default_factory=list)
    """What was made."""
    usage: Usage = field(default_factory=Usage)
    """What was used."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Named metrics that the agent gave."""
    logs: list[str] = field(default_factory=list)
    """What the agent printed beside the protocol."""

    @property
    def output(self) -> Any:
        """The last answer."""
        return self.turns[-1].output if self.turns else None

    @property
    def tells_of_actions(self) -> bool:
        """True if the agent told of anything that it did: a tool call, an event, or a count of calls or steps."""
        used = self.usage
        return bool(self.tool_calls or self.events) or used.tool_calls is not None or used.steps is not None


NO_ASSERTIONS = "no assertions"
"""The warning of a trial in which nothing was checked."""


class JudgedBy(Struct, omit_defaults=True, kw_only=True, frozen=True):
    """The judge of a check and what it was asked: what a calibration of the judge holds for."""

    name: str
    """The connector, the agent or the function that judges."""
    model: str | None = None
    """The model, if it is known."""
    digest: str
    """A hash of the judge: its model and settings or its files, the prompt, and the number of votes."""
    criterion: str
    """A hash of the criterion: the words, the least score that passes, whether the check is turned round."""
    asked: str | None = None
    """The criterion as the judge reads it, where the check's name is not all of it."""
    votes: int = 1
    """How many times it is asked."""


class Verdict(Struct, omit_defaults=True, kw_only=True):
    """What a check found."""

    type: str
    """The kind of check."""
    outcome: Outcome
    """Whether it holds, or could not be judged."""
    message: str = ""
    """A sentence: what was expected and what was found, or why it could not be judged."""
    expected: Any = None
    """What was expected, cut to a readable size."""
    found: Any = None
    """What was found, cut to a readable size."""
    where: str | None = None
    """The turn, artifact or path it is about."""
    score: float | None = None
    """From 0 to 1, where the check gives one."""
    weight: float = 1.0
    """How much it counts in the score."""
    critical: bool = False
    """Its failure makes the score 0."""
    name: str | None = None
    """What it is called: an expectation's words, a checkpoint's id, an assertion's value."""
    judged: bool = False
    """A judge decided, not an exact rule."""
    judge: JudgedBy | None = None
    """Who decided, if it was a model, or an agent of the user's."""
    evidence: list[str] = field(default_factory=list)
    """Quotations that a judge gave."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Named metrics that the check measured."""
    parts: list["Verdict"] = field(default_factory=list)
    """The verdicts inside a group."""

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return self.outcome == "passed"


class MadeFile(Struct, omit_defaults=True, kw_only=True):
    """A file that the agent made or changed in its workspace."""

    name: str
    """Its path in the workspace."""
    size: int
    """How long it is, in bytes."""
    sha256: str | None = None
    """The digest of its content; nothing if the file could not be read."""
    kept: bool = False
    """The content is in the run's folder, in `files/<sha256>`."""


class CheckpointResult(Struct, omit_defaults=True, kw_only=True):
    """What became of a checkpoint of a dialogue."""

    id: str
    """The checkpoint's name."""
    reached_at_turn: int | None = None
    """The turn that reached it, if one did."""
    required: bool = True
    """Whether the case fails without it."""
    description: str | None = None
    """What it is, in the words of the case."""
    after: list[str] = field(default_factory=list)
    """The checkpoints that must be reached before it."""
    assertion: Any = None
    """What has to hold, as the case gives it."""

    @property
    def passed(self) -> bool:
        """Whether it was reached."""
        return self.reached_at_turn is not None


class SimulatedTurn(Struct, omit_defaults=True, kw_only=True):
    """Why the simulated user said what it said."""

    turn: int
    """The turn that its message began; one past the last, if it had nothing more to say."""
    reasoning: str = ""
    """Why, in the simulator's words."""
    goal_achieved: bool = False
    """It has what it wanted."""


class SimulatedUser(Struct, omit_defaults=True, kw_only=True):
    """Who the agent talked to in a dialogue."""

    persona: str = ""
    """Who the user is."""
    goal: str = ""
    """What the user wants."""
    turns: list[SimulatedTurn] = field(default_factory=list)
    """Why it said what it said, turn by turn."""


class Rejudged(Struct, omit_defaults=True, kw_only=True):
    """A further judging of the same conversation, by the same judge and without its cache."""

    status: Status = "passed"
    """How the trial would have ended."""
    score: float | None = None
    """From 0 to 100; nothing if there is nothing to score."""
    outcomes: list[Outcome] = field(default_factory=list)
    """What came of each check, in the order of the trial's `verdicts`."""


class TrialResult(Struct, omit_defaults=True, kw_only=True):
    """Everything about one trial: one agent × case × variation × run."""

    key: str
    """A hash of what decides the result."""
    case_digest: str | None = None
    """A hash of what the case says, its befores included, and of the files it names."""
    agent_digest: str | None = None
    """A hash of the agent's configuration and of the files it names."""
    judge_digest: str | None = None
    """A hash of the judges that the case needs, if any: their models and settings, or their own files."""
    simulator_digest: str | None = None
    """The same of the simulated user, if there is one."""
    golden_digest: str | None = None
    """A hash of what the golden files of the case had when it was judged, if it has any."""
    agent: str
    """The agent's name."""
    case: str
    """The case's id."""
    index: Annotated[int, Meta(ge=0)] = 0
    """The case's place in its file."""
    variation: int = 0
    """Which variation of the prompt, from 0."""
    origin: Origin | None = None
    """Where a variation's prompt comes from."""
    run: int = 1
    """Which repeat, from 1."""
    status: Status = "passed"
    """How it ended."""
    error: str | None = None
    """Why it is not `passed`, in a sentence."""
    blame: Blame | None = None
    """What broke, if the trial could not be completed or judged."""
    verdicts: list[Verdict] = field(default_factory=list)
    """What the checks found."""
    checkpoints: list[CheckpointResult] = field(default_factory=list)
    """What a dialogue reached, in the order of the case's checkpoints."""
    simulated_user: SimulatedUser | None = None
    """Who the agent talked to, if the case is a dialogue."""
    score: float | None = None
    """From 0 to 100; nothing if there is nothing to score."""
    dimensions: dict[str, float] = field(default_factory=dict)
    """The parts of the score that had data, each from 0 to 1."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The parts that had none, and why; the others' weights are rescaled."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Named metrics that the agent, the checks or the test itself gave; `metrics_of` adds those that ATP measures."""
    transcript: Transcript = field(default_factory=Transcript)
    """What was said and seen."""
    model_calls: list[ModelCall] = field(default_factory=list)
    """The requests that ATP sent to models, those of the roles included."""
    role_usage: Usage | None = None
    """What judging and simulating used. Nothing of it is the agent's, and no limit of the case is about it."""
    started_at: Moment = 0.0
    """Seconds since 1970."""
    duration_ms: float = 0.0
    """How long it took."""
    attempt: int = 1
    """How many times it was tried."""
    retries: list[str] = field(default_factory=list)
    """Why it was tried again, each time."""
    warnings: list[str] = field(default_factory=list)
    """What could not be observed, and where figures disagree."""
    files: list[MadeFile] = field(default_factory=list)
    """The files that the agent made or changed."""
    links: list[str] = field(default_factory=list)
    """The paths in the workspace at which the agent left links, pipes and the like. Nothing of them is kept."""
    workspace: str | None = None
    """The workspace folder, if it was kept."""
    surplus: bool = False
    """True if the case was decided without this trial (`--runs auto`): it counts towards the cost only."""
    masked: bool | None = None
    """Of a result with `***` in it: true if secrets stood there, false if the agent or the test wrote that."""
    rejudged: list[Rejudged] = field(default_factory=list)
    """What further judgings of the same conversation came to, if `atp recheck --runs` asked for them."""


class Quarantined(Struct, omit_defaults=True, kw_only=True):
    """What `quarantine.yaml` says of a case whose failures are taken out of the exit code."""

    owner: str
    """Who looks after the case."""
    reason: str
    """Why the case is known to fail."""
    expires: str
    """The last day on which its failures are excused, as year-month-day."""


class TrialRef(Struct, kw_only=True):
    """Which trial it is: one agent × case × variation × run."""

    key: str
    """A hash of what decides the result."""
    case_digest: str = ""
    """A hash of what the case says, its befores included, and of the files it names."""
    agent: str
    """The agent's name."""
    ad_hoc: bool
    """The agent was named for the run (`-n`), not by the suite."""
    suite: "Suite"
    """The suite that the case belongs to."""
    case: "Case"
    """The case."""
    chain: list[str] | None
    """The prompts that are said in turn, if the case has chains."""
    variation: int
    """Which variation of the prompt, from 0."""
    origin: Origin | None = None
    """Where a variation's prompt comes from."""
    run: int
    """Which repeat, from 1."""
    runs: int
    """How many repeats each variation has."""
    siblings: int
    """How many trials its case has against the agent, this one included."""
    gate: Gate = Gate()
    """What is asked of the case's pass rate."""
    min_runs: int = 0
    """The least number of runs, where it is not fixed beforehand (`--runs auto`): then `runs` is the greatest."""
    other_runs: bool = False
    """True if an earlier part of the run planned another number of runs for the case."""
    quarantine: Quarantined | None = None
    """Why failures of its case are taken out of the exit code, if they are."""

    @property
    def file(self) -> str:
        """The file that the case stands in; empty if there is none."""
        return self.suite.path or ""


class CaseInfo(
    Struct,
    omit_defaults=True,
    kw_only=True,
    rename={"required_rate": "pass_rate", "planned": "trials", "planned_runs": "runs"},
):
    """What reports say of a case beside its trials. The journal has it on the line of the first trial."""

    name: str = ""
    """The case's name."""
    line: int = 0
    """The line it begins on."""
    tags: list[str] = field(default_factory=list)
    """Its tags."""
    input: Any = None
    """What is said to the agent."""
    input_data: dict[str, Any] | None = None
    """What its task hands to the agent beside that."""
    expected: Any = None
    """The expected output, if the case gives one."""
    required_rate: float | None = None
    """The share of trials that must pass, if not all (`pass_rate` of the case)."""
    confidence: float | None = None
    """How sure the decision about the pass rate has to be; None if the observed share decides."""
    margin: float = 0.0
    """How far below `required_rate` the long-run rate may lie and still pass."""
    other_runs: bool = False
    """True if the run went on with another number of runs than was planned before."""
    min_runs: int = 0
    """The least number of runs, where it was not fixed beforehand (`--runs auto`); 0 where it was."""
    min_score: float | None = None
    """The least score that passes."""
    user: str | None = None
    """The user that the case itself names."""
    team: str | None = None
    """The team that the case itself names."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The case's free data."""
    quarantine: Quarantined | None = None
    """Why its failures are taken out of the exit code, if they are."""
    planned: int = 1
    """How many trials the case has against an agent."""
    planned_runs: int = 1
    """How many of them each variation has."""


class CaseResult(CaseInfo, omit_defaults=True, kw_only=True, rename={}):
    """All trials of one case against one agent, and what they come to."""

    agent: str
    """The agent's name."""
    case: str
    """The case's id."""
    index: int = 0
    """The case's place in its file."""
    file: str | None = None
    """The file it stands in."""
    reason: str | None = None
    """Why the case failed, where its trials are not the reason."""
    status: CaseStatus = "passed"
    """What its trials come to."""
    decision: Decision | None = None
    """What its gate came to, if it has one with a confidence and some trial was judged."""
    stopped_by: StoppedBy | None = None
    """Why its runs ended, where their number was not fixed beforehand."""
    estimate: float | None = None
    """The estimate of its long-run pass rate, from 0 to 1, where the number of runs was not fixed beforehand."""
    interval: tuple[float, float] | None = None
    """Where that rate lies with 95% confidence, from 0 to 1, whenever the runs were stopped."""
    trials: list[TrialResult] = field(default_factory=list)
    """Its trials: variations × runs, in order."""
    planned: int = 0
    """How many trials it was to have; nothing is the same as all that there are."""
    planned_runs: int = 0
    """How many of them each variation was to have."""

    @property
    def gate(self) -> Gate:
        """What is asked of its pass rate."""
        return Gate(self.required_rate, self.confidence, self.margin)

    @property
    def counted(self) -> list[TrialResult]:
        """Its trials without those that are surplus."""
        return [trial for trial in self.trials if not trial.surplus] if self.min_runs else self.trials

    @property
    def excused(self) -> bool:
        """True if the case did not pass, and is in quarantine: the exit code leaves it out."""
        return self.quarantine is not None and self.status not in ("passed", "skipped")

    @property
    def missing(self) -> int:
        """How many of its trials a stop left out."""
        left = self.planned - len(self.trials)
        return left if left > 0 else 0

    @property
    def variations(self) -> int:
        """How many variations of the prompt it has, those included that a stop left out."""
        planned = self.planned // self.planned_runs if self.planned_runs else 0
        if len(self.trials) <= 1 and planned <= 1:
            return 1
        return max(len({trial.variation for trial in self.trials}), planned, 1)

    @property
    def repeated(self) -> bool:
        """Whether it has, or was to have, more than one trial."""
        return len(self.trials) > 1 or self.planned > 1 or self.min_runs > 0

    @property
    def error(self) -> str | None:
        """Why it is not `passed`: the first trial's reason that has its status, else the first reason."""
        if self.reason is not None:
            return self.reason
        reasons = [trial.error for trial in self.trials if trial.error and trial.status == self.status]
        return next(iter(reasons or [trial.error for trial in self.trials if trial.error]), None)
