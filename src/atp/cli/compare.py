"""`atp compare`: what got better and worse from one run to another, and how sure that is."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics import load_error
from atp.base.diagnostics_text import printable
from atp.cli.project import in_project, opened
from atp.cli.streams import print_json

if TYPE_CHECKING:
    from atp.base.secrets import Hide
    from atp.history.figures import RunFigures
    from atp.stats.comparison import Comparison, FailOn

_PAGES = (".html", ".htm")
FORMATS = (*_PAGES, ".json", ".md")
"""The extensions of the files that `-o` writes."""


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.option("--agents", nargs=2, metavar="X Y", help="Compare agent Y (of B) with agent X (of A); A alone is one run")
@click.option("--margin", type=float, metavar="SHARE", help="Rates that differ by less are the same: 0.05 is 5 points")
@click.option("--fail-on-regression", is_flag=True, help="Exit with 1 when something regressed; see below")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "observed"]),
    help="`observed`: exit with 1 when anything passed less often, for agents without chance",
)
@click.option("-o", "--output", multiple=True, metavar="FILE", help="Write it there: .md, .html or .json (repeatable)")
@click.option("-v", "--verbose", is_flag=True, help="List every case")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout")
@in_project
def command(a: str, b: str | None, agents: tuple[str, str] | None, project: Path, **flags: Any) -> int:
    """Compare run B with run A: what got better and worse, and how sure that is.

    A and B are baselines, by name or file, or runs: an id, the beginning of one, `last`, `last~1`, `commit:SHA`, or the
    path of a folder. With --agents and A alone, two agents of that run are compared.

    Exit 0. With --fail-on-regression: 1 when the cases together, or one of them, are worse; 3 when runs came to no
    verdict on either side; 4 when --margin is given and B is not shown to be within it. 2 when no case can be compared.
    """
    from atp.base.secrets import hider
    from atp.history.compare import compare_runs

    if b is None and not agents:
        raise click.UsageError("Give two runs, or one run and --agents X Y.")
    margin = flags["margin"]
    if margin is not None and not 0 < margin < 1:
        raise load_error("bad-margin", f"--margin {margin:g} is not between 0 and 1", "give a share: 0.05 is 5 points")
    targets = [Path(text) for text in flags["output"]]
    _check_targets(targets)
    with opened(project) as (root, secrets):
        hide = hider(secrets)
        answers = any(path.suffix.lower() in _PAGES for path in targets)
        first = _figures(root, a, hide, answers=answers)
        second = first if b is None else _figures(root, b, hide, answers=answers)
        _protect_tests(targets, root, (first, second))
        found = compare_runs(first, second, (a, b or a), agents or None, margin=margin, answers=answers)
        for path in targets:
            _write(path, found, hide)
        if flags["as_json"]:
            print_json(hide(_to_plain(found)))
        else:
            _show(found, hide, verbose=flags["verbose"])
            for path in targets:
                click.echo(f"Report: {printable(secrets.mask_text(str(path)))}")
    return _exit_code(found, flags["fail_on"] or ("regression" if flags["fail_on_regression"] else None))


def _exit_code(comparison: "Comparison", fail_on: "FailOn | None") -> int:
    from atp.base.exit_codes import PASSED, UNUSABLE

    if fail_on is not None:
        return comparison.exit_code(fail_on)
    return PASSED if comparison.overall.cases else UNUSABLE


def _figures(root: Path, name: str, hide: "Hide", *, answers: bool) -> "RunFigures":
    """The figures of a baseline, by its name or its file, or of a run. Raises `LoadError`."""
    from atp.history import baselines
    from atp.history.figures import run_figures
    from atp.journal.find import find_run

    if name.endswith(baselines.ENDING) and Path(name).is_file():
        return baselines.read(Path(name))
    if baselines.exists(root, name):
        return baselines.load(root, name)
    hint = "atp runs lists the runs, atp baseline list the baselines"
    return run_figures(find_run(root, name, hint), hide, answers=answers)


def _to_plain(comparison: "Comparison") -> Any:
    """The comparison as JSON values, without answers: those are for the page."""
    from msgspec import to_builtins

    plain = to_builtins(comparison)
    for case in plain["cases"]:
        case.pop("answers", None)
    return plain


def _show(comparison: "Comparison", hide: "Hide", *, verbose: bool) -> None:
    from atp.base.text import without_commands
    from atp.report.compare.text import comparison_lines

    for line, _ in comparison_lines(comparison, hide, verbose=verbose):
        click.echo(without_commands(line))


def _check_targets(paths: list[Path]) -> None:
    """Refuse files that can't be written before anything is compared."""
    for path in paths:
        if path.suffix.lower() not in FORMATS:
            raise load_error("unknown-report-format", f"-o {path}: no comparison is called *{path.suffix}", _HINT)
        if path.is_dir() or not path.parent.is_dir():
            why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise load_error("unwritable-report", f"-o {path}: {why}", "name another file")


_HINT = f"use {', '.join(FORMATS)}"


def _protect_tests(paths: list[Path], root: Path, runs: "tuple[RunFigures, RunFigures]") -> None:
    """Refuse to overwrite a test file of a run that is compared."""
    tests = {(root / case.file).resolve() for run in runs for case in run.cases if case.file}
    for path in paths:
        if path.resolve() in tests:
            raise load_error("unwritable-report", f"-o {path}: it is a test file of A or B", "name another file")


def _write(path: Path, comparison: "Comparison", hide: "Hide") -> None:
    from atp.base.files import replacing

    makers: dict[str, Callable[[], bytes]] = {
        ".md": lambda: _markdown(comparison, hide),
        ".json": lambda: _json(comparison, hide),
    }
    data = makers.get(path.suffix.lower(), lambda: _html(comparison, hide))()
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        message = f"-o {path}: {error.strerror or error}"
        raise load_error("unwritable-report", message, "check its permissions, and the space on the disk") from error


def _markdown(comparison: "Comparison", hide: "Hide") -> bytes:
    from atp.report.compare.markdown import comparison_markdown

    return "".join(f"{line}\n" for line in comparison_markdown(comparison, hide)).encode()


def _html(comparison: "Comparison", hide: "Hide") -> bytes:
    from atp.report.compare.html import comparison_page

    return comparison_page(comparison, hide)


def _json(comparison: "Comparison", hide: "Hide") -> bytes:
    from atp.base.json.text import encode

    return encode(hide(_to_plain(comparison))) + b"\n"
