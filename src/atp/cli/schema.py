"""`atp schema`: JSON Schema for editors, and for whoever reads reports."""

from typing import get_args

import click

from atp.cli.streams import print_json
from atp.loader.schema import SchemaName, schema

_REPORTS = ("report", "events")


@click.command("schema")
@click.argument(
    "name", type=click.Choice((*get_args(SchemaName), *_REPORTS)), metavar="yaml|jsonl|frontmatter|report|events"
)
def command(name: str) -> int:
    """Print the JSON Schema of a format, for editors.

    `yaml` describes a suite, `jsonl` one record of a JSONL file, `frontmatter` the head of a `.test.md` file. The
    kinds that installed plugins add are part of it. `report` describes the JSON report, `events` a line of the JSONL
    report.
    """
    if name in _REPORTS:
        from atp.report.records.report import event_schema, report_schema

        print_json(report_schema() if name == "report" else event_schema())
        return 0
    print_json(schema(next(one for one in get_args(SchemaName) if one == name)))
    return 0
