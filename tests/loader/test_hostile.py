"""Files that mean harm: a clear error in bounded time and memory, never a traceback.

`atp` runs in a process of its own, with little memory and a time limit.
"""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest
from tests.waiting import WAIT_LIMIT

from atp.loader import Loaded
from atp.loader.load import load_path

Atp = Callable[..., CompletedProcess[str]]

MB = 1 << 20
MEMORY = 700 * MB
"""Address space, of which the libraries take some 150 MB."""
HEAD = "test_suite: s\nagents: [{name: a, type: custom, config: {}}]\n"


def _little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def check(atp: Atp, files: dict[Path | str, str] | Path, code: str = "", command: str = "validate") -> str:
    """Each file gets its error and the exit code is 2, in time and without a traceback; returns what was printed."""
    expected = files if isinstance(files, dict) else {files: code}
    done = atp(command, *map(str, expected), preexec_fn=_little_memory)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode == 2, done.stdout[-2000:] + done.stderr[-2000:]
    printed = done.stdout + done.stderr
    for one in set(expected.values()):
        assert printed.count(f"error[{one}]") >= list(expected.values()).count(one), printed[:2000]
    return printed


def codes(loaded: Loaded) -> list[str]:
    return [one.code for one in loaded.diagnostics]


# Aliases


def test_aliases_that_explode(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    layers = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    file.write_text(f"a0: &a0 [lol]\n{layers}{HEAD}tests: []\n")
    assert "the aliases in this file expand to too many values" in check(atp, file, "alias-bomb")


def test_aliases_that_explode_in_a_long_file(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    layers = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    file.write_text(f"a0: &a0 [lol]\n{layers}{('#' * 1023 + chr(10)) * (30 * 1024)}{HEAD}tests: []\n")
    check(atp, file, "alias-bomb")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a\n  b: *a\n",
        "a: &a [*a]\n",
        "&a a: *a\n",
        "a: &a {<<: *a}\n",
        "a: &a {b: &b {c: *a}}\nd: {<<: [*b, *b]}\n",
    ],
)
def test_aliases_that_hold_themselves(tmp_path: Path, text: str) -> None:
    file = tmp_path / "circle.yaml"
    file.write_text(text)
    loaded = load_path(file)
    assert loaded.suite is None or not loaded.ok
    assert codes(loaded)


def test_merge_keys_that_explode(tmp_path: Path) -> None:
    layers = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 30))
    file = tmp_path / "bomb.yaml"
    file.write_text(f"a0: &a0 {{lol: lol}}\n{layers}{HEAD}tests: []\n")
    assert codes(load_path(file)) == ["alias-bomb"]


# Length


def test_a_line_of_100_mb(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    with file.open("wb") as out:
        out.write(b'{"id": "a", "input": "x"}\n{"id": "b", "input": "')
        for _ in range(100):
            out.write(b"x" * MB)
        out.write(b'"}\n{"id": "c", "input": "x"}\n')
    assert "1 file, 2 cases, 1 error, 0 warnings" in check(atp, file, "too-large")


def test_a_line_of_16_mb_of_the_same(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {}
    for number, byte in enumerate((b"[", b'"', b"\\", b" ")):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(b'{"id": "a", "input": ' + byte * (15 * MB) + b'\n{"id": "c", "input": "x"}\n')
        files[file] = "syntax" if number else "too-deep"
    assert "4 files, 2 cases, 4 errors" in check(atp, files)  # after `[` and `:` the next line could belong to it


def test_a_file_of_64_mb_and_a_byte(atp: Atp, tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    with large.open("wb") as out:
        out.write(b"#")
        for _ in range(64):
            out.write(b"x" * MB)
    files: dict[Path | str, str] = {large: "too-large"}
    for name in ("large.json", "large.test.md"):
        (tmp_path / name).hardlink_to(large)
        files[tmp_path / name] = "too-large"
    assert check(atp, files).count("the file is longer than 64 MB") == 3


def test_a_file_that_seems_to_have_no_end(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {}
    for name in ("sparse.yaml", "sparse.jsonl"):
        with (tmp_path / name).open("wb") as out:
            out.truncate(1 << 40)
        files[tmp_path / name] = "too-large"
    check(atp, files)


def test_very_many_values(atp: Atp, tmp_path: Path) -> None:
    record = '{"id": "a", "input": "x", "expected": [' + "[]," * 1_000_001 + "[]]}"
    texts = {"many.yaml": "- 1\n" * 1_000_001, "many.jsonl": record}
    files: dict[Path | str, str] = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        files[tmp_path / name] = "too-large"
    assert check(atp, files).count("more than 1,000,000 values") == 2


def test_a_million_commas_in_a_text_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    file.write_text('{"id": "a", "input": "' + "1," * 1_000_001 + '"}\n')
    assert codes(load_path(file)) == []


def test_very_many_empty_lines(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {tmp_path / "empty.yaml": "empty", tmp_path / "empty.jsonl": "no-case"}
    for file in files:
        Path(file).write_bytes(b"\n" * (4 * MB))
    check(atp, files)


def test_a_folder_with_very_many_empty_lines_in_it(atp: Atp, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_bytes(b"\n" * (2 * MB) + b"\t" * (2 * MB))
    check(atp, tmp_path, "no-test-files")


def test_very_many_mistakes(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text('{"id": "a", "inptu": "x"}\n' * 3000)
    assert "5,999 errors" in check(atp, file, "unknown-key")


# Depth


@pytest.mark.parametrize("depth", [1000, 100_000])
@pytest.mark.parametrize(
    ("name", "opening", "closing"),
    [("deep.yaml", "[", "]"), ("deep.yaml", "{a: ", "}"), ("deep.yaml", "- ", ""), ("deep.yaml", "? ", "")]
    + [(name, "[", "]") for name in ("deep.json", "deep.jsonl")]
    + [(name, '{"a":', "}") for name in ("deep.json", "deep.jsonl")],
)
def test_deep_nesting(tmp_path: Path, name: str, opening: str, closing: str, depth: int) -> None:
    file = tmp_path / name
    file.write_text(opening * depth + "1" + closing * depth)
    assert codes(load_path(file)) == ["too-deep"]


def test_nesting_that_never_ends(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {tmp_path / name: "too-deep" for name in ("deep.json", "deep.jsonl", "deep.yaml")}
    for file in files:
        Path(file).write_text("[" * 100_000)
    check(atp, files)


# Bytes that are no text


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.jsonl"])
@pytest.mark.parametrize(
    ("data", "code"),
    [(b"\xff\xfe", "not-utf8"), (b"\xed\xa0\x80", "not-utf8"), (b"\x00", "nul-byte"), (b"\xc3", "not-utf8")],
)
def test_bytes_that_are_no_text(tmp_path: Path, name: str, data: bytes, code: str) -> None:
    file = tmp_path / name
    file.write_bytes(b'{"id": "a",\n "input": "' + data + b'"}\n')
    (one,) = load_path(file).diagnostics
    assert (one.code, one.line, one.column) == (code, 2, 12)


def test_the_command_line_says_so(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {tmp_path / name: "not-utf8" for name in ("a.yaml", "a.json", "a.jsonl")}
    for file in files:
        Path(file).write_bytes(bytes(range(1, 256)) * 1000)
    check(atp, files)


# Things that are no files


def test_a_folder_called_like_a_suite(atp: Atp, tmp_path: Path) -> None:
    folder = tmp_path / "x.yaml"
    folder.mkdir()
    assert codes(load_path(folder)) == ["not-a-file"]
    check(atp, folder, "no-test-files")


def test_a_pipe(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {tmp_path / f"pipe{end}": "not-a-file" for end in (".yaml", ".json", ".jsonl", "")}
    for file in files:
        os.mkfifo(file)
    assert check(atp, files).count("is a pipe, not a file") == 4


def test_a_folder_with_pipes_in_it(atp: Atp, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "1 error" in check(atp, tmp_path, "not-a-file")


def test_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.jsonl")
        assert codes(load_path(Path("socket.jsonl"))) == ["not-a-file"]


def test_a_device_without_end(atp: Atp, tmp_path: Path) -> None:
    link = tmp_path / "zero.jsonl"
    link.symlink_to("/dev/zero")
    check(atp, {"/dev/zero": "not-a-file", link: "not-a-file"})


def test_a_link_to_nowhere(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {tmp_path / name: "no-such-file" for name in ("gone.yaml", "gone.jsonl")}
    for file in files:
        Path(file).symlink_to(tmp_path / "nowhere")
    check(atp, files)


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "self.yaml").symlink_to(tmp_path / "self.yaml")
    assert codes(load_path(tmp_path / "self.yaml")) == ["unreadable"]


@pytest.mark.parametrize("name", ["gone.yaml", "gone.jsonl", "gone.json", "gone.test.md", "gone", "a/b/gone.yaml"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    assert codes(load_path(tmp_path / name)) == ["no-such-file"]


def test_a_name_that_is_no_name(atp: Atp) -> None:
    names = ("x" * 5000, "x" * 5000 + ".yaml", "/".join(["d" * 200] * 40) + "/a.jsonl")
    check(atp, dict.fromkeys(names, "unreadable"))
    assert codes(load_path(Path("nul\0.yaml"))) == ["unreadable"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read, unlike those above `tmp_path`."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("name", ["shut.yaml", "shut.jsonl", "shut.json"])
def test_a_file_without_permission(open_folder: Path, name: str) -> None:
    file = open_folder / name
    file.write_text("test_suite: s\n")
    file.chmod(0)
    (one,) = _load_without_privileges(file)
    assert one == f"unreadable {file} cannot be read: Permission denied"


def test_a_folder_without_permission(open_folder: Path) -> None:
    (open_folder / "open.jsonl").write_text('{"id": "a", "input": "x"}\n')
    shut = open_folder / "shut"
    shut.mkdir(mode=0)
    assert _load_without_privileges(open_folder) == [f"unreadable {shut} cannot be read: Permission denied"]


def _load_without_privileges(path: Path) -> list[str]:
    """What is wrong with a path, seen by a user who may not do everything, whoever runs the tests."""
    script = dedent(
        """\
        import ctypes, os, sys
        from atp.base.diagnostics import Diagnostics
        from atp.loader.inputs import find_files
        from atp.loader.load import load_path, load_text
        load_text("test_suite: s"), load_text("{}"), load_text("[]")  # imports what is needed while it can be read
        if os.geteuid() == 0:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(8, 1)  # keep what is allowed over the change of user
            os.setfsuid(65534) if hasattr(os, "setfsuid") else libc.setfsuid(65534)
        notes = Diagnostics()
        for file in find_files([sys.argv[1]], notes):
            notes.extend(load_path(file).diagnostics)
        for one in notes:
            print(one.code, one.message)
        """
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_LIMIT, check=True)
    return done.stdout.splitlines()


# Nothing


@pytest.mark.parametrize("text", ["", "\n", "# only\n# comments\n", "---\n", "--- # x\n...\n", "\ufeff"])
def test_an_empty_suite(tmp_path: Path, text: str) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text(text)
    loaded = load_path(file)
    assert loaded.suite is None
    assert codes(loaded) == ["empty"]


@pytest.mark.parametrize("text", ["", "\n", "// only\n# comments\n", "\ufeff"])
def test_an_empty_jsonl_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text(text)
    assert codes(load_path(file)) == ["no-case"]


def test_empty_files_on_the_command_line(atp: Atp, tmp_path: Path) -> None:
    files: dict[Path | str, str] = {
        tmp_path / "empty.yaml": "empty",
        tmp_path / "empty.jsonl": "no-case",
        tmp_path / "empty.json": "syntax",
    }
    for file in files:
        Path(file).touch()
    check(atp, files, command="show")
