"""JSON on stdout, in a form that every terminal and encoding takes."""

import json
import re
import sys
from typing import Any

import click

# JSON escapes the controls below U+0020 by itself; these could steer a terminal or turn its text around, too.
_STEERING = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def print_json(value: Any) -> None:
    """One JSON value, readable where stdout can show it and escaped where not."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not is_utf8, indent=2)
    click.echo(_STEERING.sub(lambda one: f"\\u{ord(one.group()):04x}", text))
