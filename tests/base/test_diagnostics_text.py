"""Diagnostics for people: the line they are about, and the caret below the spot."""

from dataclasses import replace
from pathlib import Path

import pytest

from atp.base.diagnostics_text import printable, render, summary
from atp.loader import Diagnostic


def one(file: Path | None, line: int = 1, column: int = 1) -> Diagnostic:
    name = None if file is None else str(file)
    told = Diagnostic(code="some-code", severity="error", message="oh no", hint="fix it")
    return replace(told, file=name, line=line, column=column)


def shown(file: Path, line: int, column: int) -> list[str]:
    return render([one(file, line, column)], colour=False).splitlines()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.yaml"


def test_the_parts(file: Path) -> None:
    file.write_text("first\nsecond line\n")
    assert shown(file, 2, 8) == [
        "error[some-code]: oh no",
        f"  --> {file}:2:8",
        "2 | second line",
        "  |        ^",
        "  help: fix it",
    ]


def test_without_a_file_and_beyond_its_end(file: Path) -> None:
    assert render([one(None)], colour=False) == "error[some-code]: oh no\n  help: fix it"
    file.write_text("only\n")
    assert len(shown(file, 7, 1)) == 3
    assert len(shown(file.parent, 1, 1)) == 3
    assert len(shown(file.parent / "gone.yaml", 1, 1)) == 3


@pytest.mark.parametrize("name", ["gone.yaml", "<command line>"])
def test_what_is_not_there_has_no_lines(name: str) -> None:
    assert shown(Path(name), 1, 1)[1] == f"  --> {name}"


@pytest.mark.parametrize(
    ("line", "column", "width"),
    [("abc", 3, 2), ("äöü", 3, 2), ("日本x", 3, 4), ("e\u0301x", 3, 1), ("\tx", 2, 1), ("\x1bx", 2, 1), ("a", 2, 1)],
)
def test_the_caret_stands_below_its_column_on_the_screen(file: Path, line: str, column: int, width: int) -> None:
    file.write_text(f"{line}\n")
    assert shown(file, 1, column)[3] == f"  | {' ' * width}^"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_marks(file: Path, end: str) -> None:
    file.write_bytes(f"\ufeffone{end}two{end}three".encode())
    assert [shown(file, number, 1)[2] for number in (1, 2, 3)] == ["1 | one", "2 | two", "3 | three"]


def test_of_a_long_line_a_window(file: Path) -> None:
    file.write_text("x" * 3_000_000 + "HERE" + "y" * 3_000_000 + "\nnext\n")
    lines = shown(file, 1, 3_000_001)
    assert lines[2].startswith("1 | …xxx")
    assert lines[2].endswith("yyy…")
    assert len(lines[2]) == 4 + 102
    assert lines[2][lines[3].index("^") :].startswith("HERE")
    assert shown(file, 2, 1)[2] == "2 | next"


def test_bytes_that_are_no_text_are_shown_as_such(file: Path) -> None:
    file.write_bytes(b"a: \xff\n")
    assert shown(file, 1, 4)[2] == "1 | a: \ufffd"


def test_colour_when_asked_for(file: Path) -> None:
    file.write_text("abc\n")
    assert "\x1b[31m" in render([one(file)], colour=True)
    assert "\x1b" not in render([one(file)], colour=False)


def test_secrets_are_covered_in_their_full_width(file: Path) -> None:
    file.write_text("key: hush-hush, x\n")
    lines = render([one(file, 1, 17)], colour=False, secrets=["hush", "hush-hush"]).splitlines()
    assert lines[2:4] == ["1 | key: *********, x", f"  | {' ' * 16}^"]


def test_several_in_paragraphs(file: Path) -> None:
    file.write_text("abc\n")
    assert render([one(file), one(file)], colour=False).count("\n\n") == 1


def test_nothing_that_steers_a_terminal_is_printable() -> None:
    assert (
        printable("a\x1b[31mb\r\n\tc\x9b\u202e\x7f\ud800é日😀\u00a0")
        == "a\ufffd[31mb\ufffd  c\ufffd\ufffd\ufffd\ufffdé日😀\u00a0"
    )


def test_the_summary_counts() -> None:
    warning = Diagnostic(code="c", severity="warning", message="m")
    assert summary(1, 2, [one(None), warning, warning]) == "1 file, 2 cases, 1 error, 2 warnings"
    assert summary(0, 0, []) == "0 files, 0 cases, 0 errors, 0 warnings"
