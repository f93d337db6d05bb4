"""A journal is only ever appended to, and whoever else changes it is found out."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.support.project import Project

from atp.journal.records import Skipped
from atp.journal.write import Journal, JournalError


def test_the_journal_is_only_ever_appended_to(project: Project) -> None:
    """Were it written anew after every case, what stood there before would move or change."""
    project.write(
        "agent.py",
        """
        import glob
        def run():
            (name,) = glob.glob(".atp/runs/*/journal.jsonl")
            with open(name, "rb") as file, open("sizes", "a") as out:
                print(len(file.read()), __import__("os").fstat(file.fileno()).st_ino, sep=":", file=out)
        """,
    )
    project.test(project.cases(*[f"c{number}" for number in range(6)]), "-n", "agent.py:run")
    sizes, inodes = zip(*(line.split(":") for line in project.lines("sizes")), strict=True)
    whole = (project.runs()[-1] / "journal.jsonl").read_bytes()
    assert len(set(inodes)) == 1
    assert [int(size) for size in sizes] == [len(b"".join(whole.splitlines(True)[: n + 1])) for n in range(6)]


def written(folder: Path, lines: int = 2) -> Journal:
    journal = Journal(folder)
    for number in range(lines):
        journal.write(Skipped(case=str(number)))
    return journal


def replaced(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_bytes(path.with_name("old").read_bytes())


GONE: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (lambda path: path.unlink(), "was deleted or replaced"),
    "truncated": (lambda path: os.truncate(path, 10), "was cut"),
    "emptied": (lambda path: os.truncate(path, 0), "was cut"),
    "appended to": (lambda path: path.write_bytes(path.read_bytes() + b"{}\n"), "was written to by another process"),
    "replaced by a copy": (replaced, "was deleted or replaced"),
    "folder moved": (lambda path: path.parent.rename(path.parent.with_name("moved")), "was deleted or replaced"),
}


@pytest.mark.parametrize("how", GONE)
def test_a_journal_that_was_tampered_with_is_found_out(tmp_path: Path, how: str) -> None:
    journal = written(tmp_path / "run")
    act, why = GONE[how]
    act(journal.path)
    with pytest.raises(JournalError, match=why):
        journal.check()
    if how not in ("replaced by a copy", "folder moved"):  # the lines that come still go where the others are
        with pytest.raises(JournalError, match=why):
            journal.write(Skipped(case="next"))
    journal.close()


def test_a_journal_with_all_that_was_written_is_fine(tmp_path: Path) -> None:
    journal = written(tmp_path)
    journal.check()
    journal.close()
    again = written(tmp_path)
    again.check()
    assert len(again.path.read_text().splitlines()) == 4
    again.close()
