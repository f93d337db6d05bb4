"""Exit codes are the same where they are written again, because nothing may be imported there."""

import pytest

from atp.base import exit_codes
from atp.cli import main
from atp.usercode.exits import EXIT_CODE


@pytest.mark.parametrize("name", ["UNUSABLE", "INCOMPLETE", "INTERRUPTED", "READER_GONE"])
def test_the_command_line_has_the_same(name: str) -> None:
    assert getattr(main, name) == getattr(exit_codes, name)


def test_code_that_runs_in_other_environments_has_the_same() -> None:
    assert EXIT_CODE == exit_codes.INCOMPLETE
