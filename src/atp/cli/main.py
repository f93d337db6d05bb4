"""`atp`: finds the command and calls it. Commands are imported when they are called, so that `--help` is instant."""

import contextlib
import errno
import gc
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from atp import __version__
from atp.cli.streams import replace_closed_streams
from atp.usercode.exits import refuse_exits

if TYPE_CHECKING:
    from atp.base.secrets import Secrets

COMMANDS = {
    "test": "Run tests.",
    "validate": "Say what is wrong with test files, without running anything.",
    "runs": "List the runs of this project.",
    "view": "Look at runs in the browser, while they run and afterwards.",
    "report": "Write reports on an earlier run.",
    "compare": "Say what got better and worse from one run to another.",
    "recheck": "Judge an earlier run again, and call no agent.",
    "baseline": "Keep what a run came to, to compare later runs with it.",
    "labels": "Export and import what people said of a run.",
    "calibrate": "Measure how right a judge is, by labels of people.",
    "history": "Say what runs come to over time: cases, cost, trend.",
    "show": "Show what ATP understood of test files.",
    "fmt": "Bring .test.md files into their canonical form.",
    "convert": "Turn a suite into another format.",
    "init": "Write a small suite to start from.",
    "chat": "Talk to an agent, and save what was said as a test.",
    "agents": "List the kinds of agents, or see whether those of a suite work.",
    "models": "List the models that can be used, or install one on this machine.",
    "schema": "Print the JSON Schema of a format, for editors.",
}
"""Each command, a module of its own name in this folder, with the line that `--help` shows for it."""

GROUPS = {
    "Run": ("test", "recheck", "chat"),
    "Results": ("view", "runs", "history", "report", "compare", "baseline", "labels", "calibrate"),
    "Test files": ("init", "validate", "show", "fmt", "convert", "schema"),
    "Agents and models": ("agents", "models"),
}
"""The commands in `--help`, by what they are about. A command that is in no group is listed last."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "test": (
        "atp test",
        "atp test tests/ -n agent.py:answer --parallel 8 -o report.html",
        'atp test -i "What may a hotel cost?" -n http://localhost:8000',
    ),
    "validate": ("atp validate tests/", "atp validate suite.yaml --strict"),
    "runs": ("atp runs", "atp runs examples --json"),
    "view": ("atp view", "atp view last --open"),
    "history": ("atp history flaky", "atp history cost --by week"),
    "report": ("atp report -o report.html", "atp report last~1 -k 'status:failed cost>0.01' -vv"),
    "compare": ("atp compare last~1 last", "atp compare main last -o comparison.html"),
    "recheck": ("atp recheck last", "atp recheck last suite.yaml --assessor openai.gpt-4o --runs 3"),
    "baseline": ("atp baseline save main", "atp baseline show main"),
    "show": ("atp show suite.yaml", "atp show tests/ --json"),
    "fmt": ("atp fmt tests/", "atp fmt tests/ --check"),
    "convert": ("atp convert suite.yaml -o suite.jsonl", "atp convert expense.jsonl -o expense.test.md"),
    "init": ("atp init", "atp init md --dir tests"),
    "chat": ("atp chat agent.py:answer", "atp chat agents/greeter.md --save greeting.jsonl"),
    "labels": ("atp labels export last -o labels.jsonl", "atp labels import last labels.jsonl"),
    "calibrate": ("atp calibrate sample last -n 100", "atp calibrate measure last"),
    "agents": ("atp agents", "atp agents check suite.yaml"),
    "models": ("atp models", "atp models install smollm2"),
    "schema": ("atp schema yaml", "atp schema jsonl > jsonl.schema.json"),
}
"""At least two for each command, at the end of its help."""

OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""Imports and trials make little garbage. With Python's default of 700, collecting takes a tenth of a case's time."""
# As in `base/exit_codes.py`, which `--help` need not load.
UNUSABLE = 2
"""The exit code for an input that can't be used: nothing was run."""
INCOMPLETE = 3
"""The exit code when something else broke, a fault of ATP's own included."""
STDOUT_LOST = frozenset({errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT, errno.EFBIG})
"""Errors of stdout that are no fault of ATP's."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
READER_GONE = 141
"""The exit code when the reader of stdout is gone, as shells show it."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"atp.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        command.epilog = "\n".join(["Examples:", "", "\b", *(f"  {one}" for one in EXAMPLES.get(cmd_name, ()))])
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            code = _show_user_error(error)
            if code is None:
                raise
            return code

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        left = dict(COMMANDS)
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, left.pop(name)) for name in names])
        if left:
            with formatter.section("Other"):
                formatter.write_dl(list(left.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from atp.base.near import near_miss

            meant = near_miss(args[0], COMMANDS)
            hint = f"Did you mean '{meant}'?" if meant else f"Commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"There is no command '{args[0]}'. {hint}", ctx)
        return super().resolve_command(ctx, args)


def _show_user_error(error: Exception) -> int | None:
    """Print an error that the user can fix and return the exit code; None for any other error."""
    if isinstance(error, click.ClickException | OSError):
        return None
    from atp.base.diagnostics import LoadError
    from atp.base.diagnostics_text import printable, render
    from atp.base.errors import Error

    if isinstance(error, LoadError):
        click.echo(render(error.diagnostics, sys.stderr.isatty(), _known_secrets()), err=True)
        return UNUSABLE
    if isinstance(error, Error):
        said = f"Error: {error}\n  help: {error.hint}" if error.hint else f"Error: {error}"
        click.echo(printable(_known_secrets().mask_text(said)), err=True)
        return INCOMPLETE
    return None


def _known_secrets() -> "Secrets":
    """The secrets of whatever has run so far, and the environment's: no error that ends the process shows them."""
    from atp.base.secret_values import secret_variables
    from atp.base.secrets import every_secret

    secrets = every_secret()
    secrets.add(secret_variables(os.environ))
    return secrets


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="atp COMMAND --help lists the flags of a command, with examples.",
)
@click.version_option(__version__, "--version", prog_name="atp", message="%(prog)s %(version)s")
def cli() -> None:
    """ATP, the Agent Test Platform: one tool for every kind of agent test."""


def main() -> None:
    """Run the command. Exits with 2 for bad usage or input, with 3 for a fault of ATP, never with 1: a failed test."""
    try:
        code = _run_command()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:  # uncaught, it would be exit code 1
        with contextlib.suppress(BaseException):  # the disk of stderr is full, or the code under test broke the process
            _say(f"atp: {type(error).__name__}: {error}\n")
        code = INCOMPLETE
    sys.exit(code)


def _run_command() -> int:
    replace_closed_streams()
    refuse_exits(everywhere=True)
    sys.unraisablehook = _say_unraisable
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that can't show a character gets its number
    try:
        code = cli.main(prog_name="atp", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        said = error.format_message()
        shown = _known_secrets().mask_text(said)
        (error if shown == said else click.UsageError(shown, getattr(error, "ctx", None))).show()
        return UNUSABLE
    except SystemExit as left:
        if os.environ.get("_ATP_COMPLETE"):  # click has printed the completion of a shell, and ran no command
            return left.code if isinstance(left.code, int) else 0
        if left.code == 1:  # click's, when the reader (`| head`) has seen enough; to us it would mean a failed test
            return READER_GONE
        _say(f"atp: the code under test has tried to end the tests: {type(left).__name__}: {left}\n")
        return INCOMPLETE
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in STDOUT_LOST:
            from atp.report.files import let_go

            let_go(sys.stdout)
            _say(f"atp: stdout: {error.strerror}\n")
            return INCOMPLETE
        from traceback import format_exc

        _say(format_exc())
        _say("atp: this is a fault of ATP's, not of what it tests. Please report it.\n")
        return INCOMPLETE
    return code if isinstance(code, int) else 0


def _say_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Say what Python says of an exception that nothing can catch, as one of `__del__`, but without secrets."""
    from traceback import format_exception

    error = unraisable.exc_value
    said = "".join(format_exception(error)) if error is not None else f"{unraisable.exc_type.__name__}\n"
    _say(f"{unraisable.err_msg or 'Exception ignored in'}: {unraisable.object!r}\n{said}")


def _say(text: str) -> None:
    sys.stderr.write(_known_secrets().mask_text(text))
    sys.stderr.flush()


if __name__ == "__main__":
    main()
