"""`atp test`: run tests."""

import asyncio
import json
import shlex
import sys
from contextlib import redirect_stdout
from typing import Any

import click

from atp.base.diagnostics import LoadError
from atp.base.diagnostics_text import printable, render
from atp.cli.options import given, takes_options


@click.command("test")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@takes_options
def command(paths: tuple[str, ...], **flags: Any) -> int:
    """Run tests.

    PATH is a file, a folder or a pattern; -i takes those too, and a message. Exit 0: all passed. 1: some failed.
    2: nothing could be run. 3: something else broke. 130: interrupted.
    """
    from atp.cli.streams import stdout_for_us

    texts = tuple(flags.get("input") or ())
    if not texts and not paths:
        raise click.UsageError("Nothing to test: give a PATH, or -i with a file or a message.")
    try:
        with stdout_for_us():
            return _test(texts, paths, given(flags))
    except LoadError as error:
        click.echo(render(error.diagnostics, colour=sys.stderr.isatty()), err=True)
        return 2


def _test(texts: tuple[str, ...], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    from atp.base.project import unreadable
    from atp.engine.prepare.dry_run import DryRun
    from atp.engine.prepare.prepare import prepare
    from atp.engine.prepare.sources import Input
    from atp.engine.signals import run_to_end
    from atp.report.choose import choose, reads
    from atp.report.protected import of_session
    from atp.stats.summary import INCOMPLETE
    from atp.usercode.importing import limit_imports

    limit_imports()
    try:
        with redirect_stdout(sys.stderr):  # importing an agent may print something
            run = prepare(Input(texts, paths), flags)
    except OSError as error:
        raise unreadable(error.filename or "the input", error) from error
    if run.warnings and not run.options.quiet:
        click.echo(render(run.warnings, colour=sys.stderr.isatty()) + "\n", err=True)
    if run.options.dry_run:
        dry = DryRun(run)
        for line in map(json.dumps, dry.events()) if run.options.json_events else dry.lines():
            click.echo(line)
        return 0
    read = reads(run.given_input, [unit.source for unit in run.plan.units], of_session(run))
    listeners = choose(run.options, read, run.secrets, _command(sys.argv), roles=run.roles)
    try:
        code = run_to_end(run.run(listeners), run.stop.interrupt, run.context.leave)
    except asyncio.CancelledError:
        click.echo("atp: the run ended early: an agent's code cancelled tasks that aren't its own", err=True)
        click.echo(f"atp: what is done is in the journal. Go on with: {_command(sys.argv)} --resume", err=True)
        return INCOMPLETE
    for problem in run.problems:
        click.echo(f"atp: {printable(problem)}", err=True)
    return code


def _command(argv: list[str]) -> str:
    """How this command was called, for telling how to go on with it."""
    words = [word for word in argv[1:] if word != "--resume"]
    return f"atp {shlex.join(words)}"
