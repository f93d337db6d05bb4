"""A suite: the cases of a file and what they share."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, PrivateAttr

from atp.base.diagnostics import Place
from atp.suite.agent import AnyAgent
from atp.suite.case import Case, Limits, Weights
from atp.suite.gates import SuiteGate
from atp.suite.record import Confidence, Count, Defaulting, Margin, Record, Score, Seconds, Share, Text

Dialect = Literal["yaml", "markdown", "jsonl", "message", "script"]


class Defaults(Defaulting):
    """What the cases of a suite take where they say nothing themselves."""

    runs_per_test: Count | None = 1
    """How many times to run each test."""
    timeout_seconds: Seconds | None = 300
    """The longest a trial may take."""
    constraints: Limits | None = None
    """Limits, merged field by field."""
    scoring: Weights | None = None
    """Weights, replaced as a whole."""
    min_score: Score | None = None
    """The least score that passes."""
    pass_rate: Share | None = None
    """The share of trials that must pass."""
    confidence: Confidence | None = None
    """How sure it has to be that the long-run pass rate reaches `pass_rate`; otherwise the observed share decides."""
    margin: Margin | None = None
    """With `confidence`: how far below `pass_rate` the long-run rate may lie and still pass (0)."""

    def limits(self) -> dict[str, Any]:
        """The limits that are given. A timeout in `constraints` goes before the one beside it."""
        given = self.given()
        wide = {"timeout_seconds": given["timeout_seconds"]} if "timeout_seconds" in given else {}
        return wide | (self.constraints.given() if self.constraints is not None else {})


def _version(value: Any) -> Any:
    # `version: 1.0` without quotes is a number to YAML.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class Suite(Record):
    """All that a file says."""

    name: Text = Field(validation_alias=AliasChoices("test_suite", "name"))
    """What the suite is called."""
    dialect: Dialect = "yaml"
    """The format it was written in."""
    path: str | None = None
    """The file it came from."""
    version: Annotated[Text, BeforeValidator(_version)] = "1.0"
    """The version of the suite's format."""
    description: str | None = None
    """What it is for."""
    defaults: Defaults = Field(default_factory=Defaults)
    """What cases take where they say nothing themselves."""
    gates: list[SuiteGate] = Field(default_factory=list)
    """What the cases must reach together."""
    agents: list[AnyAgent] = Field(default_factory=list)
    """The agents under test."""
    target: str | None = None
    """Markdown: the path of the agent under test."""
    assessor: str | None = None
    """Markdown: the path of the agent that judges expectations."""
    generator: str | None = None
    """Markdown: the agent that makes variations of prompts."""
    iterations: Count | None = None
    """Markdown: how many variations of each case to run."""
    cases: list[Case] = Field(default_factory=list, validation_alias=AliasChoices("tests", "cases"))
    """The cases in file order."""
    secrets: frozenset[str] = Field(default_factory=frozenset, exclude=True, repr=False)
    """Values that no output may show."""
    _target_place: Place = PrivateAttr(default_factory=Place)

    @property
    def target_place(self) -> Place:
        """Where `target` stands in the file; line 0 if the suite was not read from a file."""
        return self._target_place

    def target_stands_at(self, place: Place) -> None:
        """Set the place of `target`. The loader calls this, because the place is not part of what a file says."""
        self._target_place = place

    @property
    def test_suite(self) -> str:
        """The suite's name, by its key in the YAML suite format."""
        return self.name

    @property
    def tests(self) -> list[Case]:
        """The cases, by their key in the YAML suite format."""
        return self.cases
