"""JSON on stdout, in a form that every terminal and encoding takes."""

import json
import sys
from typing import Any

import click


def print_json(value: Any) -> None:
    """One JSON value, readable where stdout can show it and escaped where not."""
    from atp.base.json_text import unsteered  # not before there is something to print

    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not is_utf8, indent=2)
    click.echo(unsteered(text.encode("utf-8", "surrogatepass")).decode())
