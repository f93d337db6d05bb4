"""Every mistake of form comes with a way out that works."""

from pathlib import Path

import pytest
from tests.loader.shop import Expect

from atp.base.near import meant_key
from atp.loader.load import load_path


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ('"runs": «out-of-range»0', "give 1 or more"),
        ('"timeout": «out-of-range»0', "give more than 0"),
        ('"pass_rate": «out-of-range»2', "give a number from 0 to 1: `0.02`, if 2 % is meant"),
        ('"pass_rate": «out-of-range»0', "give more than 0"),
        ('"min_score": «out-of-range»101', "give a number from 0 to 100"),
        ('"min_score": «out-of-range»-1', "give 0 or more"),
        ('"runs": «wrong-type»2.5', "write a whole number, for example 3"),
        ('"min_score": «wrong-type»"high"', "write a number, for example 0.5"),
        ('"skip": «wrong-type»7', "write true or false"),
        ('"tags": «wrong-type»"a"', 'write it as a list: ["a"]'),
        ('"tags": «wrong-type»{"a": 1}', 'write a list, for example ["a", "b"]'),
        ('"tags": [«wrong-type»true]', 'put it in quotes: "true"'),
        ('"user": «wrong-type»["a"]', "write it as one text"),
        ('"metadata": «wrong-type»["a"]', 'write keys and values, for example {"a": 1}'),
        ('"timeout": «duration»"soon"', 'write a number of seconds, or text like "30s"'),
        (
            '"scoring": «weights-sum»{"quality_weight": 1}',
            "a weight that is not given is quality 0.4, completeness 0.3, efficiency 0.2 or cost 0.1",
        ),
        (
            '"assert": {"type": "regex", "value": «regex»"("}',
            "put a backslash before a character such as ( [ * + ? that stands for itself",
        ),
        (
            '"assert": {"type": "json_path", "path": «json-path»"$.a["}',
            "write the way to a value, for example $.items[0].name",
        ),
        (
            '"assert": {"type": "artifact_exists", "path": "a", "sha256": «bad-value»"abc"}',
            "sha256sum prints those of a file",
        ),
        (
            '«both-spellings»"assert": {"type": "type", "value": "null"}, "assertions": []',
            "remove `assert`, and keep `assertions`",
        ),
        ('"constraints": {«unknown-key»"timeout": 3}', "did you mean `timeout_seconds`?"),
        ('"constraints": {«unknown-key»"budget": 3}', "did you mean `budget_usd`?"),
        ('"assert": «missing-key»{"value": 3}', "add `type`"),
    ],
)
def test_hints(expect: Expect, keys: str, hint: str) -> None:
    (one,) = expect(f'{{"id": "one", "input": "Hello", {keys}}}', "jsonl").diagnostics
    assert one.hint == hint


def test_a_missing_id(expect: Expect) -> None:
    (one,) = expect('«missing-key»{"input": "Hello"}', "jsonl").diagnostics
    assert one.hint == "add `id`"


def test_short_names_of_defaults(expect: Expect) -> None:
    one, two = expect(
        "test_suite: s\nagents: [{name: a, type: custom, config: {}}]\n"
        "defaults: {«unknown-key»timeout: 3, «unknown-key»runs: 2}\ntests: [{id: t, name: T, input: x}]\n"
    ).diagnostics
    assert (one.hint, two.hint) == ("did you mean `timeout_seconds`?", "did you mean `runs_per_test`?")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("siute.yaml", "did you mean `tests/suite.yaml`?"),
        ("suite.yml", "did you mean `tests/suite.yaml`?"),
        ("other.yaml", "check the path"),
        ("further/suite.yaml", "check the path: there is no folder tests/further"),
        ("link.yaml", "it is a link to nowhere.yaml, which is not there"),
    ],
)
def test_a_file_that_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("tests")
    folder.mkdir()
    (folder / "suite.yaml").touch()
    (folder / "link.yaml").symlink_to("nowhere.yaml")
    (one,) = load_path(folder / name).diagnostics
    assert (one.code, one.hint) == ("no-such-file", hint)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("timeout", "timeout_seconds"),
        ("Timeout", "timeout_seconds"),
        ("max_stpes", "max_steps"),
        ("max", None),
        ("time", None),
        ("", None),
    ],
)
def test_a_key_that_was_meant(word: str, meant: str | None) -> None:
    assert meant_key(word, ["max_steps", "max_tokens", "timeout_seconds"]) == meant
