"""The options of a run.

A setting is spelled once, here, with its type and its help text. The command line, `atp.toml` or `[tool.atp]`, the
environment (`ATP_…`) and the Python API are made from it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from atp.suite.gates import SuiteGate
from atp.suite.record import Amount, Confidence, Count, Margin, Record, Regex, Runs, Seconds, Share, Text, Whole


def setting(help: str, *flags: str, default: Any = None, factory: Any = None, only_flag: bool = False) -> Any:  # noqa: A002
    """Declare a setting: its help, its short flags, and whether only the command line may set it."""
    extra: Any = {"flags": list(flags), "only_flag": only_flag}
    if factory is not None:
        return Field(default_factory=factory, description=help, json_schema_extra=extra)
    return Field(default=default, description=help, json_schema_extra=extra)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _once_each(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _level(value: Any) -> Any:
    """How often `-v` was given, for a setting that a file or the environment may give as true or false."""
    if isinstance(value, str):
        value = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(
            value.lower(), value
        )
    return int(value) if isinstance(value, bool) else value


Verbosity = Annotated[Whole, BeforeValidator(_level)]


class Options(Record):
    """The options of a run."""

    input: list[Text] = setting(
        "Input: a file, a folder, a pattern, a message, or agents:… / scripts:…", "-i", factory=list, only_flag=True
    )
    name: list[Text] = setting(
        "Agent to test: a name of the suite, module:function, file.py:function, a URL or an id", "-n", factory=list
    )
    output: list[Text] = setting("Write a report there; the extension tells the format", "-o", factory=list)
    reporter: Text | None = setting(
        "Reporter: an agent's id, or report.html, report.markdown, report.json, report.summary", "-r"
    )
    connector: Annotated[list[Text], BeforeValidator(_listed), AfterValidator(_once_each)] = setting(
        "Override the agent's model connector; with several, each agent is tested with each", "-c", factory=list
    )
    user: Text | None = setting("User the tests run as (test-user)", "-u")
    team: Text | None = setting("Team the tests run as (test-team)", "-t")
    locale: Text | None = setting("Locale the tests run in (en-us)")
    ctx: Text | None = setting("JSON or YAML file with the rest of the test environment")
    simulator: Text | None = setting(
        "Agent, connector or function (`scripts:a.b`) that plays the user where a case names none"
    )
    assessor: Text | None = setting("Agent, connector or function (`scripts:a.b`) that judges expectations")
    generator: Text | None = setting("Agent, connector or function (`scripts:a.b`) that makes variations of prompts")
    role_connector: Text | None = setting("Model for the roles (judge, simulator, generator) that name none")
    judge_each: bool = setting("Judge each expectation in a call of its own", default=False)
    judge_cache: bool = setting("Don't judge the same transcript twice", default=True)
    require_calibration: bool = setting(
        "Run nothing unless labels show every judge to be better than chance (atp calibrate)", default=False
    )
    weak_judge: bool = setting("Let a model judge that is known to be unfit for it", default=False)
    record: Text | None = setting("Record what models, tools and roles answer to this folder", only_flag=True)
    replay: Text | None = setting(
        "Play back what was recorded in this folder; call no model, tool or role", only_flag=True
    )
    run: Regex | None = setting("Only cases whose id or name matches this regular expression", only_flag=True)
    tags: Text | None = setting("Only cases with these tags; !tag leaves out (a,!b)", only_flag=True)
    only_failed: bool = setting(
        "Only what did not pass in the last run of the same input", default=False, only_flag=True
    )
    baseline: Text | None = setting("Compare the run with this baseline when it is over", only_flag=True)
    fail_on_regression: bool = setting(
        "With --baseline: exit with 1 when something regressed, as `atp compare` does", default=False, only_flag=True
    )
    fail_on: Literal["regression", "observed"] | None = setting(
        "With --baseline: `observed` fails when anything passed less often, by chance or not", only_flag=True
    )
    baseline_margin: Confidence | None = setting(
        "With --baseline: rates that differ by less are the same (0.05 is 5 points), as `atp compare --margin`",
        only_flag=True,
    )
    order: Literal["failed-first", "slowest-first", "uncertain-first"] | None = setting(
        "Run first what failed, was slow or is in doubt by earlier runs: failed-first, slowest-first, uncertain-first"
    )
    update_snapshots: bool = setting(
        "Write the golden files of snapshots that differ, remove obsolete ones; not when CI is set",
        default=False,
        only_flag=True,
    )
    runs: Runs = setting(
        "Run each trial so often and measure its stability (1); auto: as often as it takes to decide on its pass_rate",
        default=1,
    )
    min_runs: Count = setting("With --runs auto: decide on no case after fewer runs (5)", default=5)
    max_runs: Count = setting("With --runs auto: leave a case inconclusive after so many runs (200)", default=200)
    pass_rate: Share | None = setting("Share of a case's trials that must pass, from 0 to 1 (all)")
    confidence: Confidence | None = setting(
        "How sure it has to be that a case's long-run pass rate reaches its pass_rate (0.95 with --runs auto, else "
        "the observed share decides)"
    )
    margin: Margin | None = setting("With a confidence: how far below its pass_rate a case may lie and still pass (0)")
    gates: list[SuiteGate] = setting(
        'What the cases must reach together: "pass^3 >= 0.8", "cost_usd p95 <= 0.05"', "--gate", factory=list
    )
    timeout: Seconds = setting("Longest a trial may take where its file doesn't say (5m)", default=300.0)
    parallel: Count = setting("Trials at a time (1)", default=1)
    retries: Whole = setting("Tries again after failures of the infrastructure, never of the agent (2)", default=2)
    fail_fast: bool = setting("Stop at the first failure", default=False)
    max_errors: Count | None = setting("Stop after so many errors that aren't the agent's")
    max_time: Seconds | None = setting("Stop the whole run after this time")
    budget_usd: Amount | None = setting("Stop when the run has cost so much")
    budget_tokens: Count | None = setting("Stop when the run has used so many tokens")
    before_all: Text | None = setting("Python function (module:function) called before the run")
    after_all: Text | None = setting("Python function (module:function) called after the run")
    env_file: Text | None = setting("Read environment variables from this file (.env)", only_flag=True)
    resume: bool = setting("Go on with the newest unfinished run of the same input", default=False, only_flag=True)
    resume_from: Text | None = setting("Go on with this run", only_flag=True)
    keep_workspaces: bool = setting("Keep every trial's folder", default=False)
    keep_failed: bool = setting("Keep the folders of trials that did not pass", default=False)
    dry_run: bool = setting("Show the plan, run nothing", default=False, only_flag=True)
    strict: bool = setting("Warnings are errors", default=False)
    history: str | None = setting(
        "Index of all runs: a path, postgresql://…, or off (.atp/history.sqlite); see `atp history`"
    )
    verbose: Verbosity = setting("List every case, those that passed too; -vv: with its conversation", "-v", default=0)
    quiet: bool = setting("Print only the summary", "-q", default=False)
    json_events: bool = setting(
        "Events as JSON lines on stdout, nothing else there", "--json", default=False, only_flag=True
    )

    lower: frozenset[str] = Field(default_factory=frozenset, exclude=True)
    """The settings that come from a file or the environment: a value in a case goes before them."""

    @classmethod
    def from_project(cls, path: str | Path = ".", **given: Any) -> "Options":
        """Return the options that `atp test` has for an input at `path`: `given` before `ATP_…`, before `atp.toml`.

        Raises `LoadError`. `Options(…)` itself reads neither.
        """
        from atp.base.project import find_root
        from atp.engine.prepare.settings import environment, resolve_options

        root = find_root(Path(path))
        return resolve_options(given, root, environment(root, given.get("env_file")), spell=str)

    @property
    def one_connector(self) -> str | None:
        """The connector, if exactly one is named: with several, each agent is tested with each of them."""
        return self.connector[0] if len(self.connector) == 1 else None

    def given(self, name: str) -> bool:
        """True if the command line, or the caller in code, set the option."""
        return name in self.model_fields_set and name not in self.lower

    def choose(self, name: str, in_file: Any) -> Any:
        """Return the option if the caller set it, else what a case or a suite says, else the option all the same."""
        return getattr(self, name) if in_file is None or self.given(name) else in_file


def settings() -> dict[str, dict[str, Any]]:
    """Return every setting with its help and flags, for the command line, the files and the docs."""
    found: dict[str, dict[str, Any]] = {}
    for name, field in Options.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict):
            found[name] = {"help": field.description, "field": field, **extra}
    return found
