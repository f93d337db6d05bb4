"""`atp calibrate`: how right a judge is, measured by labels of people, and kept in a file of the project."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics_text import printable
from atp.base.numbers import counted
from atp.cli.project import in_project, opened, say
from atp.cli.streams import print_json

if TYPE_CHECKING:
    from atp.base.secrets import Hide
    from atp.history.calibrations import Calibration, Measured
    from atp.stats.judges import JudgeFigures

MOST_CRITERIA = 20
"""Criteria that are printed. JSON has all."""


class _Calibrate(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise click.UsageError(
                f"There is no command '{args[0]}'. Commands: {', '.join(self.commands)}; "
                "to measure a run: atp calibrate measure RUN.",
                ctx,
            )
        return super().resolve_command(ctx, args)


@click.group("calibrate", cls=_Calibrate)
def command() -> None:
    """Measure how right a judge is, by labels of people.

    First draw checks that a judge decided (`atp calibrate sample RUN`), then say of each whether the answer fulfils the
    criterion (in the file, or in `atp view`), then measure the judge (`atp calibrate measure RUN`).

    A calibration is a file, calibrations/NAME.json at the project's root, that is meant to be committed. From then on
    reports give, beside the share of answers that the judge passed, the share that is good.
    """


@command.command("sample")
@click.argument("run", default="last", metavar="[RUN]")
@click.option("-n", "--number", default=100, metavar="N", type=click.IntRange(min=1), help="How many checks (100)")
@click.option("--seed", default="0", metavar="TEXT", help="Another seed draws another sample (0)")
@click.option("--criterion", metavar="TEXT", help="Only criteria that contain this text")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="sample.jsonl of the run"
)
@click.option("--force", is_flag=True, help="Replace a sample that is there, with its labels.")
@in_project
def sample_command(
    run: str, *, number: int, seed: str, criterion: str | None, output: Path | None, force: bool, project: Path
) -> int:
    """Draw checks that judges decided in a run, for people to label.

    RUN is a run's id, the beginning of one, `last` (the default), `last~1`, `commit:SHA`, or the path of its folder.
    The file has a line for each check, with the criterion, the conversation and the answer, and without what the judge
    said. Fill in its `label`: "passed" if the answer fulfils the criterion, else "failed". What you leave as null is
    not used, so you can stop at any line: the lines are in random order.
    """
    from atp.base.diagnostics import load_error
    from atp.history.samples import NAME, draw_sample, write_sample
    from atp.journal.find import find_run

    with opened(project) as (root, secrets):
        folder = find_run(root, run)
        path = output if output is not None else folder / NAME
        if path.exists() and not force:
            message = f"{path} is there already, and may have labels"
            raise load_error("sample-exists", message, "replace it with --force, or write another file with -o")
        sample = draw_sample(folder, number, seed=seed, criterion=criterion)
        try:
            write_sample(path, sample)
        except OSError as error:
            message = f"{path} can't be written: {error.strerror or error}"
            raise load_error("unwritable-sample", message, "give another file with -o") from error
        stands_for = round(sum(item.weight for item in sample.items))
        of_all = f"{counted(len(sample.items), 'check')} of {stands_for:,}"
        say(f"Sample: {path} ({of_all})", secrets)
    return 0


@command.command("measure")
@click.argument("run", default="last", metavar="[RUN]")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="The calibration's name (that of the run's first test file)")
@click.option("--force", is_flag=True, help="Replace the calibration of another run that has the name.")
@click.option("--no-save", is_flag=True, help="Print the figures, and keep nothing.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@in_project
def measure_command(
    run: str, file: Path | None, *, name: str | None, force: bool, no_save: bool, as_json: bool, project: Path
) -> int:
    """Measure the judges of a run by labels, and keep the calibration.

    FILE is a sample that was filled in; without it, the sample in the run's folder is taken, if there is one. Labels
    that are stored beside the run (atp view, atp labels import) count as well. Without a sample, only the agreement
    with the labels is measured: of checks that somebody picked, nothing follows for others.

    How constant a judge is, is measured where the run was judged again: atp recheck RUN --runs 3.
    """
    from msgspec import to_builtins

    from atp.base.secrets import hider
    from atp.history.calibrate import measure_run
    from atp.history.calibrations import save
    from atp.history.judge_figures import judge_figures
    from atp.journal.find import find_run

    with opened(project) as (root, secrets):
        hide = hider(secrets)
        found = measure_run(find_run(root, run), root, file)
        name = name or found.default_name
        figures = judge_figures(found.judged, found.calibrations(name))
        path = None if no_save else save(root, name, hide(found.calibration), force=force)
        if as_json:
            print_json(
                hide(
                    {
                        **to_builtins(found.calibration),
                        "at_random": found.at_random,
                        "notes": found.notes,
                        "path": None if path is None else str(path),
                        "rates": [_rates(one) for one in figures],
                    }
                )
            )
            return 0
        _print(found.calibration, figures, hide)
        for note in found.notes:
            say(f"Note: {note}", secrets)
        if path is not None:
            say(f"Calibration: {path}", secrets)
    return 0


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout.")
@in_project
def list_command(as_json: bool, project: Path) -> int:
    """List the calibrations of the project, with the figures of each judge."""
    from msgspec import to_builtins

    from atp.history.calibrations import folder, load_calibrations

    with opened(project) as (root, secrets):
        found = load_calibrations(root).files
        if as_json:
            print_json([{"name": name, **to_builtins(one)} for name, one in found.items()])
        for name, one in found.items() if not as_json else ():
            say(f"{name}  run {one.run}, {_date(one.at)}", secrets)
            _print(one, [], secrets.mask_text, "  ")
        if not found and not as_json:
            say(f"No calibrations yet in {folder(root)}.", secrets)
    return 0


def _date(at: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _rates(figures: "JudgeFigures") -> dict[str, Any]:
    """The raw and the corrected rate of a judge by a criterion, as JSON values."""
    from msgspec import to_builtins

    verdicts = figures.counts.verdicts
    return {
        "judge": figures.counts.judge.name,
        "criterion": figures.counts.criterion,
        "passed": verdicts.passed,
        "judged": verdicts.judged,
        "unjudged": verdicts.unjudged,
        "rate": verdicts.rate,
        "corrected": to_builtins(figures.corrected),
        "warnings": figures.warnings,
    }


def _print(calibration: "Calibration", figures: "list[JudgeFigures]", hide: "Hide", indent: str = "") -> None:
    """Print what was measured of each judge, and what that makes of the run's rates."""
    from atp.base.text import one_line
    from atp.report.judge_text import judge_title, verdicts_text

    rates = {(one.counts.judge.digest, one.counts.criterion): one for one in figures}
    for judge in calibration.judges:
        click.echo(f"{indent}Judge: {one_line(hide(judge_title(judge.judge)), 200)}")
        single = len(judge.criteria) == 1
        shown = judge.criteria if single else [judge.whole, *judge.criteria]
        for one in shown[: MOST_CRITERIA + 1]:
            if one.accuracy.labels or one.criterion is None:
                click.echo(f"{indent}  {one_line(hide(one.text), 200) if one.text else 'all criteria'}")
                for line in _lines(one):
                    click.echo(f"{indent}    {line}")
                if (figure := rates.get((judge.judge.digest, one.text))) is not None:
                    click.echo(f"{indent}    {'the run':<30} {printable(hide(verdicts_text(figure)))}")
        if (left := len(shown) - MOST_CRITERIA - 1) > 0:
            click.echo(f"{indent}  … and {left} more: --json has all")
        if unlabelled := sum(not one.accuracy.labels for one in judge.criteria):
            few = counted(unlabelled, "criterion").replace("criterions", "criteria")
            click.echo(f"{indent}  {few} without a label of {'its' if unlabelled == 1 else 'their'} own")


def _lines(measured: "Measured") -> list[str]:
    from atp.report.facts import flip_text
    from atp.report.judge_text import accuracy_lines, labels_text

    lines = [labels_text(measured.accuracy)]
    lines += [f"{name:<30} {figure}" for name, figure in accuracy_lines(measured.accuracy)]
    if measured.flips is not None:
        lines.append(f"{'judged again':<30} {flip_text(measured.flips)}")
    return lines
