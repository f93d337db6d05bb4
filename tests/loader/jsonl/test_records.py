"""JSONL and JSON files: records, comments, damage, and that what follows the damage is still read."""

import io
import json
from pathlib import Path

import pytest
from tests.loader.shop import Expect

from atp.base.diagnostics import Diagnostics
from atp.loader import Loaded, TestLoader
from atp.loader.jsonl.records import MOST_RECORD_BYTES, stream_cases
from atp.loader.load import load_path
from atp.loader.source import LoadContext


def ids(loaded: Loaded) -> list[str]:
    assert loaded.suite is not None
    return [case.id for case in loaded.suite.cases]


# Records


def test_one_record_a_line(expect: Expect) -> None:
    loaded = expect('{"id": "a", "input": "x"}\n{"id": "b", "input": "y"}\n')
    assert loaded.suite is not None
    assert [(case.index, case.id, case.place.line) for case in loaded.suite.cases] == [(0, "a", 1), (1, "b", 2)]


def test_the_last_line_needs_no_end(expect: Expect) -> None:
    assert ids(expect('{"id": "a", "input": "x"}\n{"id": "b", "input": "y"}')) == ["a", "b"]


def test_records_over_several_lines(expect: Expect) -> None:
    loaded = expect('{\n  "id": "a",\n  "input": "x { [ \\" }"\n}\n{"id": "b",\n"input": "y"}\n')
    assert ids(loaded) == ["a", "b"]
    assert loaded.suite is not None
    assert [case.place.line for case in loaded.suite.cases] == [1, 5]


def test_comments_and_blank_lines_between_and_inside(expect: Expect) -> None:
    loaded = expect(
        """\
// a comment {
# another }

{
  // inside: "
  "id": "a",

  # inside, too
  "input": "x // not a comment # nor this"
}
   // indented
{"id": "b", «unknown-key»"inptu": "y"}
"""
    )
    assert ids(loaded) == ["a", "b"]
    assert loaded.suite is not None
    assert loaded.suite.cases[0].input == "x // not a comment # nor this"


def test_places_count_comments_and_blank_lines(expect: Expect) -> None:
    expect('\n// one\n{\n  # two\n\n  "id": "a",\n  «unknown-key»"inptu": "x"\n}\n')


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends(end: str) -> None:
    text = '{\n  "id": "a",\n  // note\n  "input": "x"\n}\n{"id": "b", "input": "y"}\n'.replace("\n", end)
    assert [case.id for case in TestLoader().load_string(text).cases] == ["a", "b"]


def test_crlf_in_a_file_keeps_places(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id": "a", "input": "x"}\r\n\r\n{\r\n  "id": "b",\r\n  "inptu": "y"\r\n}\r\n')
    (one,) = load_path(file).diagnostics
    assert (one.code, one.line, one.column) == ("unknown-key", 5, 3)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.json"):
        file = tmp_path / name
        file.write_bytes(b'\xef\xbb\xbf{"id": "a", "inptu": "x"}\n')
        (one,) = load_path(file).diagnostics
        assert (one.code, one.line, one.column) == ("unknown-key", 1, 13)


def test_a_file_and_its_text_give_the_same(tmp_path: Path) -> None:
    text = '{"id": "ä", "input": "ü 😀"}\n{"id": "b", "input": "\\ud83d\\ude00"}\n'
    file = tmp_path / "a.jsonl"
    file.write_text(text, encoding="utf-8")
    from_file = TestLoader().load_file(file)
    assert from_file.name == "a"
    assert from_file.cases == TestLoader().load_string(text).cases
    assert from_file.cases[1].input == "😀"


# Damage


@pytest.mark.parametrize(
    "broken",
    [
        '{"id": "b", "input": "y"\n«syntax»',
        '{"id": "b",«syntax»}\n',
        '{"id": "b", "input": "y«syntax»\n',
        '{"id": "b", "input": «syntax»\'y\'}\n',
        '{"id": "b", "skip": «syntax»True}\n',
        '{\n  "id": "b",\n  "input": "y"\n  «syntax»"skip": true\n}\n',
        '{\n  "id": "b",\n  "input": "y"\n«syntax»',
        '{"id": "b", "input": "y"} «syntax»{"id": "c", "input": "z"}\n',
        '{"id": "b", "input": "y"}«syntax»}\n',
        "«syntax»hello\n",
        "«syntax»}\n",
    ],
)
def test_after_a_broken_record_the_next_is_still_read(expect: Expect, broken: str) -> None:
    loaded = expect(f'{{"id": "a", "input": "x"}}\n{broken}{{"id": "z", "input": "z"}}\n', "jsonl")
    assert ids(loaded) == ["a", "z"]


def test_each_broken_record_is_told(expect: Expect) -> None:
    loaded = expect('{"id": "a",«syntax»}\n{"id": "b", "input": "x"}\n{«syntax»id: "c"}\n{"id": "d", "input": "x"}\n')
    assert ids(loaded) == ["b", "d"]


@pytest.mark.parametrize(
    ("record", "hint"),
    [
        ('{"id": "b",}', "remove the comma before this"),
        ("{'id': 1}", "JSON takes double quotes only"),
        ('{"id": None}', "JSON writes true, false and null in small letters"),
        ('{"id": "b\n', "close the text before the line ends; a line break in it is written \\n"),
        ('{"id" "b"}', "check the commas and quotes before this"),
        ('{"id": "b', "close the text that begins here"),
        (r'{"id": "\d+"}', r"a backslash is written twice in JSON: `\\d`"),
        ('{"id": "b"', "close the `{` that opens at 1:1"),
        ('{"id": "b", "input": [{"role": "user"},\n', "close the `[` that opens at 1:22"),
        ('{"id": "[", "input":', "close the `{` that opens at 1:1"),
    ],
)
def test_a_syntax_error_comes_with_the_likely_reason(record: str, hint: str) -> None:
    from atp.loader.load import load_text

    assert load_text(record, "jsonl").diagnostics[0].hint == hint


@pytest.mark.parametrize("value", ["1", '"text"', "null", "true"])
def test_a_record_must_be_an_object(expect: Expect, value: str) -> None:
    loaded = expect(f'«wrong-type»{value}\n{{"id": "a", "input": "x"}}\n', "jsonl")
    assert ids(loaded) == ["a"]


def test_a_list_of_cases_belongs_into_a_json_file(expect: Expect) -> None:
    (one,) = expect('«wrong-type»[{"id": "a", "input": "x"}]\n', "jsonl").diagnostics
    assert one.hint == "a list of cases goes into a .json file"


@pytest.mark.parametrize(
    "record",
    [
        '«missing-key»{"input": "x"}',
        '«nothing-said»{"id": "a"}',
        '{"id": «wrong-type»1, "input": "x"}',
        '{"id": «empty»"", "input": "x"}',
        '{«empty»"id": null, "input": "x"}',
        '{"id": "a", "input": «wrong-type»1}',
        '{"id": "a", «empty»"input": null}',
        '{"id": "a", "input": «empty»[]}',
        '{"id": "a", "input": [{"role": «bad-value»"bot", "content": "x"}]}',
        '{"id": "a", "input": {"role": «bad-value»"bot", "content": "x"}}',
        '{"id": "a", "input": {"role": "user", "content": [{"type": «unknown-part»"video", "url": "x"}]}}',
        '{"id": "a", "input": [«wrong-type»"x"]}',
        '{"id": "a", "input": "x", "timeout": «duration»"soon"}',
        '{"id": "a", "input": "x", "skip": «wrong-type»"perhaps"}',
        '{"id": "a", "input": "x", "metadata": «wrong-type»[1]}',
        '{"id": "a", "input": "x", "assert": «wrong-type»"contains"}',
        '{"id": "a", "input": "x", "assert": {"type": «unknown-assertion»"conatins", "value": "x"}}',
        '{"id": "a", "input": "x", "assert": {"type": "regex", "value": «regex»"("}}',
        '{"id": "a", "input": "x", "assert": [{"type": "regex", "value": «regex»"("}, «wrong-type»7]}',
    ],
)
def test_wrong_values_at_their_places(expect: Expect, record: str) -> None:
    loaded = expect(f'{record}\n{{"id": "z", "input": "z"}}\n')
    assert ids(loaded)[-1] == "z"


def test_duplicate_ids(expect: Expect) -> None:
    loaded = expect(
        '{"id": "a", "input": "x"}\n{"id": "b", "input": "x"}\n{\n  "id": «duplicate-id»"a",\n  "input": "y"\n}\n'
    )
    assert ids(loaded) == ["a", "b", "a"]
    assert loaded.diagnostics[0].message == "the id `a` is already taken"
    assert loaded.diagnostics[0].hint == "give it another: the case on line 1 has it, too"


def test_expected_alone_and_beside_assertions(expect: Expect) -> None:
    loaded = expect(
        '{"id": "a", "input": "x", "expected": {"k": [1, null]}}\n'
        '{"id": "b", "input": "x", "expected": 1, "assert": {"type": "equals", "value": 2}}\n'
    )
    assert loaded.suite is not None
    first, second = loaded.suite.cases
    assert (first.expected, first.assertions) == ({"k": [1, None]}, [])
    assert (second.expected, len(second.assertions)) == (1, 1)


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing\n# here\n"])
def test_a_file_without_cases(expect: Expect, text: str) -> None:
    expect(f"«no-case»{text}", "jsonl")


# Text that is no text, numbers that are no numbers


@pytest.mark.parametrize(
    "record",
    [
        r'{"id": "b", "input": "«not-utf8»\ud800"}',
        r'{"id": "b", "input": "«not-utf8»\udc00\ud800"}',
        r'{"id": "b", "input": "\ud83d\ude00 «not-utf8»\ud83d"}',
        r'{"id": "b", "input": "\\ud800 «not-utf8»\uDBFF\u0041"}',
        r'{"id": "b", "metadata": {"«not-utf8»\ud800": 1}, "input": "x"}',
    ],
)
def test_half_a_surrogate_pair(expect: Expect, record: str) -> None:
    assert ids(expect(f'{{"id": "a", "input": "x"}}\n{record}\n{{"id": "z", "input": "z"}}\n')) == ["a", "z"]


def test_whole_surrogate_pairs_and_escaped_backslashes(expect: Expect) -> None:
    loaded = expect(r'{"id": "a", "input": "\uD83D\uDE00 \\ud800"}')
    assert loaded.suite is not None
    assert loaded.suite.cases[0].input == "😀 \\ud800"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "9" * 5000, f"{'9' * 400}.0"])
def test_numbers_that_json_does_not_have(expect: Expect, number: str) -> None:
    loaded = expect(
        f'{{"id": "NaN Infinity 1e999", "input": "x", "expected": [1.5, «bad-number»{number}]}}\n'
        '{"id": "z", "input": "z"}\n'
    )
    assert ids(loaded) == ["z"]


def test_large_numbers_that_json_does_have(expect: Expect) -> None:
    loaded = expect('{"id": "a", "input": "x", "expected": [1e308, -1.5e-300, 123456789012345678901234567890]}')
    assert loaded.suite is not None
    assert loaded.suite.cases[0].expected == [1e308, -1.5e-300, 123456789012345678901234567890]


@pytest.mark.parametrize("dialect", ["jsonl", "json"])
def test_nesting_has_a_limit(expect: Expect, dialect: str) -> None:
    def record(depth: int, mark: str = "") -> str:
        return f'{{"id": "a", "input": "x", "expected": {"[" * (depth - 1)}{mark}{"[" * 50}{"]" * (depth + 49)}}}'

    assert ids(expect(record(50), dialect)) == ["a"]
    expect(record(100, "«too-deep»"), dialect)


def test_a_nested_record_over_several_lines(expect: Expect) -> None:
    expect(f'{{"id": "a", "input": "x",\n"expected": {"[" * 99}\n«too-deep»[{"]" * 100}}}\n')


# JSON files


@pytest.mark.parametrize(
    "text", ['[{"id": "a", "input": "x"}, {"id": "b", "input": "y"}]', '{"id": "a", "input": "x"}']
)
def test_json_files_hold_a_list_of_cases_or_one(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(json.loads(text), indent=2))
    suite = TestLoader().load_file(file)
    assert (suite.name, suite.dialect) == ("cases", "jsonl")
    assert [case.id for case in suite.cases] == [case["id"] for case in json.loads(f"[{text.strip('[]')}]")]


@pytest.mark.parametrize(
    "text",
    [
        '«wrong-type»"hello"',
        "«wrong-type»1",
        "«no-case»[]",
        "«syntax»",
        '[{"id": "a", "input": "x"},«syntax»]',
        '[{"id": "a", "input": "x"}, «wrong-type»7]',
        '[\n  {"id": "a", "input": "x"},\n  {"id": «duplicate-id»"a", «unknown-key»"inptu": "y"}\n]',
        '[{"id": "a", "input": "x", «duplicate-key»"input": "y"}]',
        '[{"id": "a", "input": "x", "expected": «bad-number»NaN}]',
        r'[{"id": "a", "input": "«not-utf8»\ud800"}]',
    ],
)
def test_json_files_are_checked_like_jsonl(expect: Expect, text: str) -> None:
    expect(text, "json")


# Length


def test_a_record_may_be_16_mb_long_and_no_longer(tmp_path: Path) -> None:
    frame = len('{"id": "b", "input": ""}\n')
    exactly = '{"id": "b", "input": "' + "x" * (MOST_RECORD_BYTES - frame) + '"}\n'
    for text, expected in ((exactly, []), (exactly.replace('"x', '"xx'), [("too-large", 2, 1)])):
        file = tmp_path / "long.jsonl"
        file.write_text('{"id": "a", "input": "x"}\n' + text + '{"id": "c", "input": "x"}\n')
        loaded = load_path(file)
        assert [(one.code, one.line, one.column) for one in loaded.diagnostics] == expected
        assert ids(loaded) == (["a", "c"] if expected else ["a", "b", "c"])


def test_a_long_record_over_several_lines_ends_where_it_ends(tmp_path: Path) -> None:
    piece = "x" * (1 << 20)
    items = ",\n".join(f'"{piece}"' for _ in range(17))
    file = tmp_path / "long.jsonl"
    file.write_text(
        f'{{"id": "a", "input": "x"}}\n{{"id": "b", "expected": [\n{items}\n], "input":\n"x"}}\n'
        '{"id": "c", "input": "x"}\n'
    )
    loaded = load_path(file)
    assert [(one.code, one.line, one.column) for one in loaded.diagnostics] == [("too-large", 2, 1)]
    assert ids(loaded) == ["a", "c"]


def test_cases_are_streamed_one_by_one() -> None:
    class Watched(io.BytesIO):
        read_lines = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.read_lines += 1
            return super().readline(size)

    file = Watched(b"".join(b'{"id": "%d", "input": "x"}\n' % number for number in range(100)))
    cases = stream_cases(file, LoadContext(), Diagnostics())
    assert [next(cases).id for _ in range(3)] == ["0", "1", "2"]
    assert file.read_lines == 3
