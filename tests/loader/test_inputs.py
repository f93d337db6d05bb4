"""Which files a path, a folder or a pattern stands for."""

from pathlib import Path

import pytest

from atp.base.diagnostics import Diagnostics
from atp.loader.inputs import find_files
from atp.loader.load import load_path

SUITE = "test_suite: s\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*names: str, text: str = SUITE) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def found(*paths: str) -> list[str]:
    notes = Diagnostics()
    files = find_files(paths, notes)
    assert not notes
    return [str(path) for path in files]


def told(*paths: str) -> list[tuple[str, str]]:
    notes = Diagnostics()
    find_files(paths, notes)
    return [(one.code, one.message) for one in notes]


def test_a_folder_gives_its_test_files_in_order() -> None:
    write("b.yaml", "a.jsonl", "c.test.md", "deep/below/d.yml", "deep/e.YAML", "Big.JSONL")
    assert found(".") == ["Big.JSONL", "a.jsonl", "b.yaml", "c.test.md", "deep/e.YAML", "deep/below/d.yml"]


def test_a_folder_gives_nothing_else() -> None:
    write(
        "cases.json",
        "notes.md",
        "test.md.txt",
        "suite.txt",
        "node_modules/a.yaml",
        ".git/a.yaml",
        "x/__pycache__/a.yaml",
    )
    write("config.yaml", "tests.yaml", text="tests: []\nname: x # test_suite:\n")
    write("output-20241217100000.jsonl", "output-20241217100000-2.jsonl", "deep/OUTPUT-20241217100000.jsonl")
    assert told(".") == [("no-test-files", "no test files in .")]


def test_only_our_own_output_is_passed_over() -> None:
    write("output.jsonl", "output-2024.jsonl", "my-output-20241217100000.jsonl")
    assert len(found(".")) == 3


@pytest.mark.parametrize(
    "text",
    [
        "tests: []\ntest_suite: s\n",
        '"test_suite": s\n',
        "'test_suite' : s\n",
        '{"test_suite": "s"}\n',
        "  test_suite: s\n",
        "\ufefftest_suite: s\n",
        "---\ntest_suite: s\n",
        f"{'# long' * 300_000}\ntest_suite: s\n",
        "\r\ntest_suite: s\r\n",
    ],
)
def test_a_suite_is_told_by_its_key_wherever_that_stands(text: str) -> None:
    write("a.yaml", text=text)
    assert found(".") == ["a.yaml"]


def test_a_file_by_name_is_taken_as_it_is() -> None:
    write("cases.json", "output-20241217100000.jsonl", "config.yaml", ".hidden/a.yaml", text="x")
    names = ["cases.json", "output-20241217100000.jsonl", "config.yaml", ".hidden/a.yaml", "gone.yaml", "gone"]
    assert found(*names) == names


def test_patterns() -> None:
    write("a/x.yaml", "b/y.yaml", "b/z.jsonl", "b/deep/w.jsonl")
    assert found("*/*.yaml") == ["a/x.yaml", "b/y.yaml"]
    assert found("**/*.jsonl") == ["b/deep/w.jsonl", "b/z.jsonl"]
    assert found("b*") == ["b/y.yaml", "b/z.jsonl", "b/deep/w.jsonl"]
    assert found("[ab]/?.yaml") == ["a/x.yaml", "b/y.yaml"]


def test_a_name_with_the_signs_of_a_pattern() -> None:
    write("a[1].yaml")
    assert found("a[1].yaml") == ["a[1].yaml"]


def test_each_file_once_in_the_order_given() -> None:
    write("b.yaml", "a.jsonl")
    assert found("b.yaml", ".", "*.jsonl", "b.yaml") == ["b.yaml", "a.jsonl"]


def test_nothing_found_is_told_for_each_path() -> None:
    Path("empty").mkdir()
    write("a.yaml")
    assert told("empty", "a.yaml", "*.jsonl", "empty") == [
        ("no-test-files", "no test files in empty"),
        ("no-test-files", "nothing matches *.jsonl"),
        ("no-test-files", "no test files in empty"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "test_suite: s\n",
        "# about\n%YAML 1.2\n---\ntest_suite: s\n",
        "--- {test_suite: s}\n",
        "agents: []\n'test_suite': s\n",
        "  agents: []\n  test_suite: s\n",
        "{test_suite: s}\n",
        '{\n  "agents": [{"a": "}"}],\n  "test_suite": "s"\n}\n',
    ],
)
def test_a_suite_is_known_by_its_outermost_key(text: str) -> None:
    write("a.yaml", text=text)
    assert found(".") == ["a.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        "nested:\n  test_suite: 1\n",
        "# about\n---\nnested:\n  test_suite: 1\n",
        "{nested: {test_suite: 1}}\n",
        "{nested: test_suite}\n",
        "{nested: 'a, test_suite: 1'}\n",
        "- test_suite: 1\n",
        "# test_suite: s\n",
        "",
    ],
)
def test_a_key_further_in_makes_no_suite(text: str) -> None:
    write("a.yaml", text=text)
    assert told(".") == [("no-test-files", "no test files in .")]


@pytest.mark.parametrize(
    ("encoding", "code"), [("utf-16", "not-utf8"), ("utf-16-le", "nul-byte"), ("utf-16-be", "nul-byte")]
)
def test_a_suite_that_is_not_utf8_is_not_passed_over(encoding: str, code: str) -> None:
    Path("a.yaml").write_bytes(SUITE.encode(encoding))
    Path("other.yaml").write_bytes("services: []\n".encode(encoding))
    assert found(".") == ["a.yaml"]
    (one,) = load_path(Path("a.yaml")).diagnostics
    assert (one.code, one.line, one.column) == (code, 1, 2 if encoding == "utf-16-le" else 1)


@pytest.mark.parametrize(
    ("key", "is_told"),
    [("test_suit", True), ("test-suite", True), ("test_suites", True), ("testing", False), ("tests", False)],
)
def test_a_suite_with_a_misspelt_key_is_left_out_with_a_warning(key: str, is_told: bool) -> None:
    write("a.yaml")
    write("b.yaml", text=f"{key}: s\ntests: []\n")
    notes = Diagnostics()
    assert [str(one) for one in find_files(["."], notes)] == ["a.yaml"]
    assert [one.code for one in notes] == (["near-suite"] if is_told else [])
    Path("a.yaml").unlink()
    notes = Diagnostics()
    assert find_files(["."], notes) == []
    assert "no-test-files" in [one.code for one in notes]
