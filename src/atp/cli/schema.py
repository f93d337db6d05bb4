"""`atp schema`: JSON Schema for editors."""

from typing import get_args

import click

from atp.cli.output import print_json
from atp.loader.schema import SchemaName, schema


@click.command("schema")
@click.argument("name", type=click.Choice(get_args(SchemaName)), metavar="yaml|jsonl|frontmatter")
def command(name: SchemaName) -> int:
    """Print the JSON Schema of a format, for editors.

    `yaml` describes a suite, `jsonl` one record of a JSONL file, `frontmatter` the head of a `.test.md` file. The
    kinds that installed plugins add are part of it.
    """
    print_json(schema(name))
    return 0
