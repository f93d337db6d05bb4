"""`atp report`: reports on a run that is over, or under way."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics_text import printable

if TYPE_CHECKING:
    from atp.base.secrets import Secrets
    from atp.history.calibrations import Calibrations
    from atp.journal.recorded_run import RecordedRun
    from atp.report.part_of_run import PartOfRun


@click.command("report")
@click.argument("run", default="last", metavar="[RUN]")
@click.option(
    "-o", "--output", multiple=True, metavar="FILE", help="Write a report there; the extension tells the format"
)
@click.option("-r", "--reporter", metavar="TEXT", help="Reporter: an agent's id, or report.json, report.summary …")
@click.option("-k", "--search", metavar="QUERY", help="Only cases that match: 'status:failed tag:refund cost>0.01'")
@click.option("-v", "--verbose", count=True, help="List every case, those that passed too; -vv: with its conversation")
@click.option("--open", "opens", is_flag=True, help="Open the HTML report of -o in the browser")
@click.option("--project", default=".", metavar="PATH", type=click.Path(exists=True), help="The run's project (.)")
def command(run: str, search: str | None, project: str, *, opens: bool, **flags: Any) -> int:
    """Report on an earlier run, from its journal alone.

    RUN is a run's id, the beginning of one, `last`, `last~1` (the one before), `commit:SHA` (the newest run of that
    commit), or the path of its folder; `atp runs` lists them. Without -o and -r, its summary is printed, with -k the
    cases that match, too. Exit 0 when all is written, 2 when there is no such run or no case matches, 3 when a report
    can't be written.

    QUERY is what the search of the HTML report takes: texts ("no rate"), status: tag: tool: blame: id: name: agent:
    file: error:, numbers (cost tokens turns duration score, as in duration>1m30s), and - before what must not match.
    """
    from atp.cli.streams import stdout_reserved

    if opens and not any(Path(one).suffix.lower() in (".html", ".htm") for one in flags["output"]):
        raise click.UsageError("--open has nothing to open: add -o report.html.")
    flags["output"] = list(flags["output"])
    with stdout_reserved():
        return _report(run, Path(project), search, {name: value for name, value in flags.items() if value}, opens=opens)


def _report(name: str, project: Path, search: str | None, flags: dict[str, Any], *, opens: bool) -> int:
    from atp.base.project import project_at
    from atp.base.secrets import masking
    from atp.cli.browser import html_reports, open_reports
    from atp.engine.prepare.settings import environment, environment_secrets, resolve_options
    from atp.engine.run_context import RunContext
    from atp.engine.signals import run_to_end
    from atp.history.calibrations import load_calibrations
    from atp.journal.find import find_run
    from atp.journal.recorded_run import RecordedRun
    from atp.report.choose import Reads, reports
    from atp.report.protected import of_run

    root = project_at(project)
    env = environment(root, None)
    secrets = environment_secrets(env)  # they may be newer than the journal
    with masking(secrets):
        whole = RecordedRun(find_run(root, name))
        recorded = whole if search is None else _part(whole, search, secrets)
        calibrations = load_calibrations(root)
        if not flags.get("output") and not flags.get("reporter"):
            return _exit_code(
                _show(recorded, secrets, calibrations, verbose=flags.get("verbose", 0 if search is None else 1)),
                secrets,
            )
        context = RunContext(resolve_options({"output": [], "reporter": None, **flags}, root, env), root, env)
    options, roles, secrets = context.options, context.roles, context.secrets
    with masking(secrets):
        files = tuple(file for file in recorded.info.files if file)
        given = Reads(files=tuple(map(Path, files)), protected=of_run(root, recorded.info.options, files))
        listeners = reports(options, given, secrets, roles, "<command line>")
        problems = run_to_end(_report_all(recorded, listeners, roles, calibrations))
        given.protected.remember_reports()
    for one in listeners:
        if one.path and not one.problems:
            shown = printable(secrets.mask_text(str(one.path)))
            click.echo(f"Report: {shown}", err=any(other.path is None for other in listeners))
    if opens:
        open_reports(html_reports(listeners))
    return _exit_code(problems, secrets)


def _part(recorded: "RecordedRun", query: str, secrets: "Secrets") -> "PartOfRun":
    """The cases that match. Raises `UsageError` for a query that can't be understood, or that no case matches."""
    from atp.base.secrets import hider
    from atp.report.part_of_run import PartOfRun
    from atp.report.search import SearchError

    try:
        part = PartOfRun(recorded, query, hider(secrets))
    except SearchError as error:
        hint = f"\n  help: {printable(error.hint)}" if error.hint else ""
        raise click.UsageError(f"-k: {printable(str(error))}{hint}") from error
    if not part.matches:
        raise click.UsageError(printable(f"-k: no case of run {recorded.info.id} matches `{query}`"))
    return part


def _exit_code(problems: Sequence[str], secrets: "Secrets") -> int:
    """Print what could not be written. Returns the exit code."""
    from atp.base.exit_codes import INCOMPLETE

    for problem in problems:
        click.echo(f"atp: {printable(secrets.mask_text(problem))}", err=True)
    return INCOMPLETE if problems else 0


async def _report_all(
    recorded: "RecordedRun | PartOfRun", listeners: Any, roles: Any, calibrations: "Calibrations"
) -> list[str]:
    from atp.history.judge_figures import with_calibrations
    from atp.journal.listeners import Listeners

    all_listeners = Listeners(listeners)
    try:
        end = with_calibrations(recorded.repeat(all_listeners), calibrations)
        await all_listeners.finish(end)
        all_listeners.end(end)
    finally:
        left = await roles.close()
    return [*all_listeners.problems, *left]


def _show(
    recorded: "RecordedRun | PartOfRun", secrets: "Secrets", calibrations: "Calibrations", *, verbose: int
) -> Sequence[str]:
    """Print the summary. Returns what could not be printed."""
    from atp.history.judge_figures import with_calibrations
    from atp.report.choose import console
    from atp.report.console.console import ConsoleOptions
    from atp.report.files import open_stdout

    try:
        stdout = open_stdout()
    except OSError as error:
        return [f"stdout: {error.strerror}"]
    screen = console(stdout, ConsoleOptions(quiet=not verbose, verbose=verbose, secrets=secrets), live=False)
    screen.end(with_calibrations(recorded.repeat(screen), calibrations))
    return screen.problems
