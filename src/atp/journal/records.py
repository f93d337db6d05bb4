"""The records of a journal: one JSON object a line, told apart by `type`. docs/journal.md describes each key."""

from typing import Annotated, Any

import msgspec

from atp.stats.comparison import Comparison
from atp.stats.suite_gates import GateResult
from atp.suite.gates import Gate, RunGate
from atp.suite.result import CaseInfo, Decision, Moment, StoppedBy, TrialResult

NAME = "journal.jsonl"
FORMAT = 1
"""The format of journals that this version writes. Readers refuse a higher one."""


class Line(msgspec.Struct, tag_field="type", tag=str.lower):
    """A line of the journal."""


class NamedFile(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A file that the answers of an agent depend on."""

    digest: str
    """Tells whether the content has changed."""
    key: str = ""
    """The key of the agent's configuration that names the file; empty for others, those of a prompt for example."""


class AgentInputs(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What decides the answers of an agent, as far as ATP can see it."""

    digest: str = ""
    """A hash of all of it."""
    config: str = ""
    """A hash of its configuration."""
    variables: str | None = None
    """A hash of the environment variables that its files use."""
    model: str | None = None
    """A hash of the model it runs on and of the model's settings, where ATP asks the model."""
    files: dict[str, NamedFile] = {}
    """The files that it depends on, by their path in the project. Nothing if there are very many."""


class RunInfo(
    Line,
    omit_defaults=True,
    kw_only=True,
    tag="start",
    rename={"id": "run", "identity": "input", "input": "given", "resumed": "kept", "continues": "resumed"},
):
    """What is known when a run starts, or goes on after a break. Listeners get the record that the journal has."""

    format: int = 0
    """The journal's format. Journals from before there was a number have none, and are read as format 1."""
    id: str
    """The run's id."""
    at: Moment
    """Seconds since 1970: when the run started, or last went on."""
    version: str
    """ATP's version."""
    python: str | None = None
    """Python's version."""
    platform: str | None = None
    """The operating system and the machine's kind."""
    host: str | None = None
    """The machine's name."""
    pid: int | None = None
    """The process that runs it, on that machine."""
    ci_job: str | None = None
    """The job of a CI service that runs it: its address, else its id."""
    command: list[str] | None = None
    """The command line of the process."""
    directory: str | None = None
    """The working directory, which paths in the journal start from, as a path from the project's root."""
    commit: str | None = None
    """The commit of git that is checked out where the project is."""
    branch: str | None = None
    """The branch of git; nothing if none is checked out."""
    dirty: bool | None = None
    """Whether files that git knows differ from that commit."""
    identity: list[str]
    """What was given to test, as paths in the project or texts: the same for the same input."""
    input: list[str] = []
    """What was given to test, as it was written."""
    files: list[str] = []
    """The test files, in order."""
    agents: list[str] = []
    """The agents under test."""
    agent_inputs: dict[str, AgentInputs] = {}
    """By agent: what its answers depend on."""
    models: dict[str, str] = {}
    """The models that agents and roles may ask, by connector."""
    options: dict[str, Any] = {}
    """The settings of the run."""
    flags: list[str] | None = None
    """Which of the options the command line, or the caller in code, gave; nothing if that isn't known."""
    cases: int = 0
    """How many cases are planned, each counted once per agent. 0 if another program chooses them one by one."""
    trials: int = 0
    """How many trials are planned."""
    runs: int = 1
    """Runs per case; the most, where cases differ."""
    runs_differ: bool = False
    """Not all cases have as many runs."""
    environment: dict[str, Any] = {}
    """The test environment."""
    connector: str | None = None
    """The connector of the agents under test; None if they use none, or not all the same."""
    parallel: int = 1
    """Trials at a time."""
    gates: list[RunGate] = []
    """What the run must reach, beside its cases."""
    varied: bool = False
    """Some case runs with more than one prompt."""
    continues: bool = False
    """The run goes on with what the lines above tell."""
    resumed: int = 0
    """How many trials are taken over from the lines above."""
    first_started_at: Moment | None = None
    """Of a run that went on: when it first started, in seconds since 1970."""
    adaptive: bool = False
    """The number of runs is not fixed for all cases (`--runs auto`): `runs` and `trials` are the most there may be."""
    duration_before_resume_ms: float = 0.0
    """Of a run that went on: how long it took before, breaks left out."""
    rechecks: str | None = None
    """The id of the run whose conversations were judged again, if no agent was called."""
    notes: list[str] = []
    """What a person should know before the run starts."""
    folder: str = ""
    """The run's folder. Set by whoever writes or reads the journal, never written: folders are moved."""
    started_in: str | None = None
    """The directory of the run, from the working directory, if it is another. Set by readers, never written."""

    @property
    def started_at(self) -> float:
        """Seconds since 1970. Of a run that went on: when it first started."""
        return self.at if self.first_started_at is None else self.first_started_at

    @property
    def given_options(self) -> dict[str, Any]:
        """The settings that the command line, or the caller in code, gave; not those of files and the environment."""
        return {name: value for name, value in self.options.items() if self.flags is None or name in self.flags}


class Skipped(Line, omit_defaults=True, kw_only=True):
    """A case that is left out, as its file asks."""

    case: str
    """The case's id."""
    name: str = ""
    """The case's name."""
    file: str = ""
    """The file it stands in."""
    line: int = 0
    """The line it begins on."""
    tags: list[str] = []
    """Its tags."""
    reason: str | None = None
    """Why, if that is known."""


class Trial(Line, omit_defaults=True, kw_only=True):
    """A trial that ended."""

    result: TrialResult
    """Everything about the trial."""
    file: str = ""
    """The file its case stands in."""
    about: CaseInfo | None = None
    """Its case, on the first of the case's trials."""


class Kept(Line, omit_defaults=True, kw_only=True):
    """A trial that stands above, before the run went on, and is taken over."""

    key: str
    """Its key."""
    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Where its case stands in its file by now."""
    file: str = ""
    """The file its case stands in."""
    about: CaseInfo | None = None
    """Its case, on the first of the case's trials."""


class Case(Line, omit_defaults=True, kw_only=True):
    """The end of a case whose number of runs was not fixed beforehand: what its gate came to. Nobody decides again."""

    agent: str
    """The agent's name."""
    case: str
    """The case's id."""
    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Where the case stands in its file."""
    file: str = ""
    """The file that the case stands in."""
    key: str = ""
    """The key of the case's first trial."""
    decision: Decision = "inconclusive"
    """What the gate came to."""
    stopped_by: StoppedBy | None = None
    """Why there were no further runs; nothing if they could not be judged, because a before did not pass."""
    runs: int = 0
    """The runs that the decision was made by: the first ones. Later ones are surplus."""
    surplus_runs: int = 0
    """The runs beside those that ended, or were under way."""
    estimate: float | None = None
    """The estimate of the long-run pass rate, from 0 to 1."""
    interval: tuple[float, float] | None = None
    """Where that rate lies with 95% confidence, whenever the runs were stopped."""
    gate: Gate = Gate()
    """The pass rate that was asked for, the confidence and the margin."""
    min_runs: int = 0
    """The least number of runs."""
    max_runs: int = 0
    """The greatest number of runs."""

    @property
    def is_final(self) -> bool:
        """True if no further run of the case is needed, and it was not the run that stopped it."""
        return self.stopped_by in ("decided", "max-runs", "futility")


class Before(Line, kw_only=True):
    """A case that was replayed only for others to go on from; its own trials are lines of their own."""

    result: TrialResult
    """Everything about the replay."""
    file: str = ""
    """The file its case stands in."""


class Summary(Line, kw_only=True):
    """The end of a run."""

    at: Moment
    """Seconds since 1970."""
    complete: bool
    """Nothing is left to do."""
    reason: str | None = None
    """Why the run ended early."""
    counts: dict[str, Any] = {}
    """How many cases passed, failed …, as in reports."""
    exit_code: int = 0
    """The exit code that the run itself asks for."""
    exhausted: str | None = None
    """The budget that has to be raised before it is any use to go on."""
    notes: list[str] = []
    """What a person should know when the run has ended."""
    gates: list[GateResult] = []
    """What the gates of the run came to."""
    comparison: Comparison | None = None
    """How the run compares with the baseline that was given."""
