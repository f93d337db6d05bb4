"""Diagnostics hold no secret, with a hint or without."""

from atp.base.diagnostics import Diagnostics
from atp.base.secrets import Secrets, masking


def test_messages_and_hints_are_masked() -> None:
    notes = Diagnostics()
    notes.secrets.add("of-the-file")
    with masking(Secrets(["of-the-run"])):
        notes.error("a", "of-the-file of-the-run", hint="of-the-run")
        notes.warn("b", "of-the-run")
    assert [(one.message, one.hint) for one in notes] == [("*** ***", "***"), ("***", None)]
