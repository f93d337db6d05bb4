"""`atp test`: run tests. Every setting is a flag."""

import asyncio
import gc
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

import click

from atp.base.diagnostics_text import printable, render
from atp.base.exit_codes import INCOMPLETE, PASSED
from atp.engine.prepare.options import settings

if TYPE_CHECKING:
    from atp.engine.run import Run
    from atp.journal.listeners import Listener

Command = TypeVar("Command", bound=Callable[..., Any])

GROUPS: dict[str, tuple[str, ...]] = {
    "What is tested": ("input", "name", "connector", "run", "tags", "only_failed", "order", "update_snapshots"),
    "How often, and what is good enough": (
        *("runs", "min_runs", "max_runs", "pass_rate", "confidence", "margin", "gates"),
    ),
    "Compare with a baseline": ("baseline", "fail_on_regression", "fail_on", "baseline_margin"),
    "Judge, simulator, generator": (
        *("assessor", "simulator", "generator", "role_connector", "judge_each", "judge_cache", "weak_judge"),
        "require_calibration",
    ),
    "Test environment": ("user", "team", "locale", "ctx", "env_file", "before_all", "after_all"),
    "Speed and limits": (
        *("parallel", "timeout", "retries", "fail_fast", "max_errors", "max_time", "budget_usd", "budget_tokens"),
    ),
    "Reports and output": ("output", "reporter", "history", "verbose", "quiet", "json_events"),
    "Plan, resume, record": (
        *("dry_run", "strict", "resume", "resume_from", "record", "replay", "keep_workspaces", "keep_failed"),
    ),
}
"""The flags in `--help`, by what they are about. A setting that is in no group is listed last."""


class _GroupedCommand(click.Command):
    """A command whose help lists its flags in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags, group by group."""
        flags = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        records = {one.name: record for one in flags if (record := one.get_help_record(ctx))}
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Other"):
            formatter.write_dl(list(records.values()))


def settings_options(names: Sequence[str]) -> Callable[[Command], Command]:
    """Add a flag for each of these settings. A flag that isn't given is None."""
    known = settings()

    def add_flags(command: Command) -> Command:
        for name in reversed(names):
            command = setting_option(name, known[name])(command)
        return command

    return add_flags


def setting_option(name: str, about: dict[str, Any]) -> Callable[[Command], Command]:
    """The flag for a setting."""
    flags = about["flags"]
    if not any(flag.startswith("--") for flag in flags):
        flags = [*flags, f"--{name.replace('_', '-')}"]
    if name == "verbose":
        return click.option(*flags, name, count=True, callback=lambda _c, _p, given: given or None, help=about["help"])
    kind = about["field"].annotation
    if kind is bool:
        if not about["only_flag"]:  # a file or the environment may have set it
            flags = [f"{flag}/--no-{flag[2:]}" if flag.startswith("--") else flag for flag in flags]
        return click.option(*flags, name, is_flag=True, default=None, help=about["help"])
    if get_origin(kind) is list:
        return click.option(*flags, name, multiple=True, metavar="TEXT", help=f"{about['help']} (repeatable)")
    return click.option(*flags, name, metavar=_metavar(name), help=about["help"])


def _metavar(name: str) -> str:
    """What kind of thing a flag takes."""
    known = {"timeout": "TIME", "max_time": "TIME", "run": "REGEX", "ctx": "FILE", "env_file": "FILE"}
    known |= {
        "baseline": "NAME",
        "baseline_margin": "SHARE",
        "fail_on": "WHAT",
        "history": "PLACE",
        "order": "ORDER",
        "resume_from": "RUN",
        "tags": "TAGS",
        "budget_usd": "USD",
    }
    numbers = {"runs", "parallel", "retries", "max_errors", "budget_tokens"}
    return "N" if name in numbers else known.get(name, "TEXT")


@click.command("test", cls=_GroupedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@settings_options(list(settings()))
@click.option("--view", is_flag=True, help="Show the run in the browser while it runs (atp view)")
@click.option("--open", "opens", is_flag=True, help="Open the page of --view, or the HTML report of -o, in the browser")
def command(paths: tuple[str, ...], view: bool, opens: bool, **flags: Any) -> int:
    """Run tests.

    PATH is a file, a folder or a pattern; -i takes those too, and a message. Without either, the test files of this
    folder and those below it are run: *.test.md, *.jsonl, and *.yaml with a `test_suite`. Exit 0: all passed. 1: some
    failed.
    2: nothing could be run. 3: something else broke. 4: a case or a gate is inconclusive. 130:
    interrupted. With --fail-on-regression, also 1: something is
    worse than in the baseline, 2: no case could be compared, 3: runs came to no verdict in either, 4: not shown to be
    within --baseline-margin.
    """
    from atp.base.project import keeping_working_directory
    from atp.cli.streams import stdout_reserved

    texts = tuple(flags.get("input") or ())
    if not texts and not paths:
        paths = _this_folder()
    with stdout_reserved(), keeping_working_directory():
        return _test(texts, paths, flags_given(flags), view=view, opens=opens)


def _this_folder() -> tuple[str, ...]:
    """The working directory as PATH. Raises `UsageError` if there are no test files in it."""
    from atp.base.diagnostics import Diagnostics
    from atp.loader.inputs import find_files

    here, notes = ".", Diagnostics()
    if not find_files([here], notes) and all(one.code == "no-test-files" for one in notes):
        raise click.UsageError(
            "Nothing to test: there are no test files in this folder or below it (*.test.md, *.jsonl, *.yaml with a "
            "`test_suite`).\n  help: give a PATH, or -i with a message; `atp init` writes a suite to start from"
        )
    return (here,)


def _test(texts: tuple[str, ...], paths: tuple[str, ...], flags: dict[str, Any], *, view: bool, opens: bool) -> int:
    from atp.cli.view_beside import ViewBeside
    from atp.engine.prepare.prepare import prepare
    from atp.engine.prepare.sources import Input

    beside = [ViewBeside(opens=opens)] if view else []
    given = Input(texts, paths)
    return run_to_report(lambda: prepare(given, flags, own_process=True), beside, opens=opens and not view)


def run_to_report(prepare: "Callable[[], Run]", beside: "Sequence[Listener]" = (), *, opens: bool = False) -> int:
    """Prepare a run, run it in this process, and write its reports. Returns the exit code.

    `beside` are listeners that are no reports; `opens`: open the HTML report in the browser at the end.
    """
    from atp.base.project import unreadable
    from atp.base.streams import streams_for_user_code
    from atp.cli.browser import html_reports, open_reports
    from atp.engine.signals import ended_by_sigterm, run_to_end
    from atp.engine.trial_timers import TrialTimers
    from atp.loader.load import no_collection
    from atp.report.choose import choose, reads
    from atp.report.protected import files_of_run
    from atp.usercode.importing import limit_imports
    from atp.usercode.watchdog import Watchdog

    limit_imports()
    with no_collection():  # collecting takes a tenth of the start-up
        try:
            # Importing an agent may print something, and start processes, which are then ended.
            with ended_by_sigterm(), streams_for_user_code(), redirect_stdout(sys.stderr):
                run = prepare()
        except OSError as error:
            raise unreadable(error.filename or "the input", error) from error
        if run.warnings:  # with --quiet, too: it is about stdout
            click.echo(render(run.warnings, sys.stderr.isatty(), run.secrets) + "\n", err=True)
        if run.options.dry_run:
            return _show_plan(run)
        read = reads(run.given_input, [unit.source for unit in run.plan.units], files_of_run(run))
        listeners = choose(run.options, read, run.secrets, _command(sys.argv), roles=run.roles)
        if opens and not html_reports(listeners):
            raise click.UsageError("--open has nothing to open: add --view, or -o report.html.")
        gc.freeze()  # what is loaded by now stays
    try:
        watchdog = partial(Watchdog, limit=run.longest_timeout, usual=run.plan.longest_timeout, leave=run.context.leave)
        timers = TrialTimers(watchdog)
        with streams_for_user_code():
            code = run_to_end(
                run.run([timers, *listeners, *beside]), run.stop.interrupt, run.context.leave, timers.watch
            )
    except asyncio.CancelledError:
        click.echo("atp: the run ended early: an agent's code cancelled tasks that aren't its own", err=True)
        click.echo(f"atp: what is done is in the journal. Go on with: {_command(sys.argv)} --resume", err=True)
        return INCOMPLETE
    read.protected.remember_reports()
    for problem in [*run.problems, *run.remarks]:
        click.echo(f"atp: {printable(run.secrets.mask_text(problem))}", err=True)
    if opens:
        open_reports(html_reports(listeners))
    return code


def _show_plan(run: "Run") -> int:
    from atp.engine.prepare.dry_run import DryRun

    dry = DryRun(run)
    for line in map(json.dumps, dry.events()) if run.options.json_events else dry.lines():
        click.echo(run.secrets.mask_text(line))
    run.context.leave()
    return PASSED


def _command(argv: list[str]) -> str:
    """The command line without `--resume`, for a message that says how to resume."""
    words = [word for word in argv[1:] if word != "--resume"]
    return f"atp {shlex.join(words)}"


def flags_given(values: dict[str, Any]) -> dict[str, Any]:
    """The flags on the command line. An empty value (`--budget-usd "$UNSET"`) is kept: validation reports it."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != ()
    }
