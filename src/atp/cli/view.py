"""`atp view`: runs in the browser, while they run and afterwards."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from atp.base.secrets import Secrets


@click.command("view")
@click.argument("run", required=False, metavar="[RUN|FOLDER]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; a free one if not given")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser")
@click.option("--idle", type=click.FloatRange(min=0.1), metavar="SECONDS", help="End when nobody looks for so long")
def command(run: str | None, port: int, opens: bool, idle: float | None) -> int:
    """Look at runs in the browser: while they run, when they are over, and beside each other.

    RUN is a run's id, the beginning of one, `last`, `last~1`, `commit:SHA`, or the path of its folder. FOLDER is a
    project, or a folder of runs. Without either, all runs of the project around the working directory are listed. The
    first line of stdout is the address; it holds a token, without which nothing is answered. Ends with exit code 0 when
    it is interrupted.
    """
    from atp.cli.project import opened
    from atp.report.files import open_stdout

    open_stdout()
    root, folder, first = _find(run)
    with opened(root) as (_, secrets):
        asyncio.run(_serve(folder, first, secrets, port, opens=opens, idle=idle))
    return 0


def _find(name: str | None) -> tuple[Path, Path, str | None]:
    """The project, the folder of its runs, and the run to open if one was named. Raises `LoadError`."""
    from atp.base.project import find_root, project_at, project_of_run, runs_folder
    from atp.journal.find import find_run, run_at
    from atp.journal.folder import runs_in

    here = find_root(Path.cwd())
    if name is None:
        return here, runs_folder(here), None
    path = Path(name)
    if run_at(path) is None and path.is_dir():
        if runs_in(path):
            return project_at(path), path.resolve(), None
        root = project_at(path)
        return root, runs_folder(root), None
    run = find_run(here, name)
    return project_of_run(run) or here, run.parent, run.name


async def _serve(
    folder: Path, opened: str | None, secrets: "Secrets", port: int, *, opens: bool, idle: float | None
) -> None:
    from atp.base.secrets import hider
    from atp.view.server import ViewServer

    server = ViewServer(folder, hider(secrets), opened)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stopping.set)

    def ready(address: str) -> None:
        click.echo(address)
        if opens:
            from atp.cli.browser import open_page

            open_page(address)

    await server.serve(port, ready, idle)
