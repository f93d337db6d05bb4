"""`atp recheck`: judge what an earlier run recorded with today's checks, and call no agent."""

from pathlib import Path
from typing import Any

import click

from atp.cli.test import flags_given, run_to_report, settings_options

FLAGS = (
    *("run", "tags", "update_snapshots", "output", "reporter", "assessor", "role_connector"),
    *("judge_each", "judge_cache", "weak_judge", "require_calibration"),
    *("timeout", "parallel", "env_file", "strict", "dry_run", "verbose", "quiet", "json_events"),
)
"""The settings of a run that mean something when no agent is called."""


@click.command("recheck")
@click.argument("run_name", metavar="RUN")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--runs", metavar="N", help="Judge each conversation so often, without the judge's cache (1)")
@settings_options(FLAGS)
@click.option("--project", default=".", metavar="PATH", type=click.Path(exists=True), help="The run's project (.)")
def command(run_name: str, files: tuple[str, ...], project: str, **flags: Any) -> int:
    """Judge an earlier run again, with today's checks, expectations, limits and judge.

    RUN is a run's id, the beginning of one, `last`, `last~1` (the one before), `commit:SHA` (the newest run of that
    commit), or the path of its folder; `atp runs` lists them. Its files are loaded again, or FILE in their place. No
    agent is called: what the journal holds of each conversation is judged, into a run of its own. What a check needs
    and the journal doesn't hold is unjudged. Exit codes are those of `atp test`; a case that the journal doesn't have
    makes it 3.
    """
    from atp.base.project import keeping_working_directory, project_at
    from atp.cli.streams import stdout_reserved
    from atp.engine.recheck import prepare_recheck

    with stdout_reserved(), keeping_working_directory():
        root = project_at(Path(project))
        return run_to_report(lambda: prepare_recheck(run_name, files, flags_given(flags), root))
