"""A part of the system that isn't there: a test is skipped, and fails in CI."""

import pytest
from tests.parts import missing, needs


def test_a_missing_part_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no engine"):
        missing("no engine")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no engine"):
        missing("no engine")


def test_only_a_program_that_is_not_there_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    needs("sh")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        needs("no-such-program")
