"""`atp labels`: what people said of the answers and checks of a run, out of ATP and into it."""

import sys
from pathlib import Path

import click

from atp.base.numbers import counted
from atp.cli.project import in_project, opened, say


@click.group("labels")
def command() -> None:
    """Export and import what people said of a run: thumbs, verdicts and comments.

    Labels are stored beside the run, in labels.jsonl in its folder. `atp view` is where they are given, and
    `atp calibrate` measures judges by them.
    """


@command.command("export")
@click.argument("run", default="last", metavar="[RUN]")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write there, not to stdout.")
@in_project
def export_command(run: str, output: Path | None, project: Path) -> int:
    """Write the labels of a run as JSON lines, the newest of each person on each thing.

    RUN is a run's id, the beginning of one, `last` (the default), `last~1`, `commit:SHA`, or the path of its folder.
    """
    from atp.base.diagnostics import load_error
    from atp.base.exit_codes import INCOMPLETE
    from atp.base.files import write_file
    from atp.journal.find import find_run
    from atp.journal.labels import NAME, export_labels

    with opened(project) as (root, secrets):
        folder = find_run(root, run)
        damaged: list[int] = []
        data = export_labels(folder, damaged)
        if output is None:
            sys.stdout.write(data.decode())
        else:
            try:
                write_file(output, data.decode())
            except OSError as error:
                message = f"{output} can't be written: {error.strerror or error}"
                raise load_error("unwritable-labels", message, "give another file with -o") from error
            say(f"{counted(len(data.splitlines()), 'label')}: {output}", secrets)
        if damaged:
            lines = ", ".join(map(str, damaged[:10]))
            say(f"atp: {folder / NAME}: damaged lines were passed over: {lines}", secrets, err=True)
        return INCOMPLETE if damaged else 0


@command.command("import")
@click.argument("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@in_project
def import_command(run: str, file: Path, project: Path) -> int:
    """Add the labels in FILE, as `atp labels export` writes them, to those of a run.

    Nothing is added if a line is wrong, or about a trial or a check that the run doesn't have. Of two labels of the
    same person on the same thing, the newer one counts, so that a file can be imported twice.
    """
    from atp.journal.find import find_run
    from atp.journal.labels import import_labels

    with opened(project) as (root, secrets):
        found = import_labels(find_run(root, run), file.read_bytes(), str(file))
        there = f", {counted(found.kept, 'label')} there already" if found.kept else ""
        say(f"{counted(found.added, 'label')} added{there}", secrets)
    return 0
