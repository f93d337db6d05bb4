"""`atp agents`: which kinds of agents there are, which ones the project has, and whether a suite's can be reached."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics import has_errors
from atp.base.diagnostics_text import printable, render
from atp.base.exit_codes import INCOMPLETE, PASSED
from atp.cli.streams import print_json

if TYPE_CHECKING:
    from atp.agents.adapter import Finding

_ENV_FILE = click.option(
    "--env-file", metavar="FILE", help="Variables beside the environment's; default: the project's .env."
)


def _above_zero(_context: click.Context, _option: click.Parameter, seconds: float) -> float:
    if not 0 < seconds < float("inf"):  # nor what is no number
        raise click.BadParameter(f"{seconds:g} is no time that an agent may take: give a number of seconds above 0.")
    return seconds


@click.group("agents", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
@_ENV_FILE
@click.pass_context
def command(context: click.Context, as_json: bool, env_file: str | None) -> int:
    """List the kinds of agents, with what each needs and whether that is here, and the agents of this project."""
    if context.invoked_subcommand is None:
        return _list(as_json, env_file)
    if as_json or env_file:
        raise click.UsageError("Give --json and --env-file after the name of the command.", context)
    return 0


def _list(as_json: bool, env_file: str | None) -> int:
    from atp.agents.kinds import kinds
    from atp.base.project import find_root
    from atp.engine.prepare.agents import Project, known_agents
    from atp.engine.prepare.settings import environment
    from atp.engine.signals import run_to_end

    root = find_root(Path.cwd())
    env = environment(root, env_file)
    own, notes = known_agents(Project(root, env))
    with redirect_stdout(sys.stderr):  # importing a plugin may print something
        found = run_to_end(kinds(env))
    if as_json:
        print_json({"kinds": [asdict(one) for one in found], "agents": [asdict(one) for one in own]})
    else:
        width = max(len(one.name) for one in found)
        click.echo("Kinds:")
        for one in found:
            plugin = "" if one.source == "atp" else f" (from {one.source})"
            click.echo(printable(f"  {one.name.ljust(width)}  {one.about}{plugin}"))
            _print_findings(one.needs)
        click.echo(f"Agents of this project:{'' if own else ' none'}")
        rows = _columns([(one.name, one.type, one.place) for one in own])
        for (name, kind, place), one_agent in zip(rows, own, strict=True):
            click.echo(printable(f"  {name}  {kind}  {place}".rstrip()))
            for column in one_agent.columns:
                click.echo(printable(f"    {column}"))
    if notes:
        click.echo(render(notes, colour=sys.stderr.isatty()), err=True)
    return 2 if has_errors(notes) else 0


@command.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="SUITE...")
@click.option(
    "-n", "--name", multiple=True, help="Only this agent of the suite, or another in their place (repeatable)."
)
@click.option("-c", "--connector", help="The model connector of prompt agents.")
@click.option(
    "--timeout",
    type=float,
    default=120.0,
    callback=_above_zero,
    show_default=True,
    help="Seconds that one agent may take.",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
@_ENV_FILE
def check_command(
    paths: tuple[str, ...],
    name: tuple[str, ...],
    connector: str | None,
    timeout: float,
    as_json: bool,
    env_file: str | None,
) -> int:
    """Contact every agent of a suite, without running a test, and say what works.

    SUITE is a file, a folder or a pattern. Models are not asked. Exit 0: all can be reached. 3: some can't.
    2: the suite can't be read.
    """
    from atp.base.streams import streams_for_user_code
    from atp.cli.streams import stdout_reserved
    from atp.engine.agent_check import AgentCheck
    from atp.engine.signals import run_to_end
    from atp.usercode.importing import limit_imports

    flags: dict[str, Any] = {"name": list(name), "connector": connector, "env_file": env_file}
    given = {key: value for key, value in flags.items() if value}
    with stdout_reserved():
        limit_imports(timeout)
        with streams_for_user_code():
            with redirect_stdout(sys.stderr):  # importing an agent may print something
                check = AgentCheck(paths, given)
            checked = run_to_end(check.run(timeout))
        well = all(one.ok for one in checked)
        if as_json:
            print_json({"ok": well, "agents": [one.as_dict() for one in checked]})
        else:
            for one in checked:
                click.echo(printable(f"{'✓' if one.ok else '✗'} {one.name} ({one.type})"))
                _print_findings(one.findings)
    return PASSED if well else INCOMPLETE


def _print_findings(findings: "Iterable[Finding]") -> None:
    for one in findings:
        click.echo(printable(f"    {'✓' if one.ok else '✗'} {one.what}: {one.detail}"))
        if one.hint:
            click.echo(printable(f"        {one.hint}"))


def _columns(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [tuple(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
