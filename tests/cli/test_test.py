"""`atp test`: its flags and its help."""

from click.testing import CliRunner

from atp.cli.test import GROUPS, command
from atp.engine.prepare.options import settings


def test_every_flag_is_in_one_group_of_the_help() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(settings())
    text = CliRunner().invoke(command, ["--help"]).output
    headings = [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == [*GROUPS, "Other"]
    assert "\n    atp test suite.yaml\n" in text
