"""Labels of people beside a run: many writers, damaged lines, the newest counts, export and import."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.diagnostics import LoadError
from atp.base.secrets import Secrets, masking
from atp.journal.labels import (
    NAME,
    CheckPlace,
    Label,
    LabelledTrial,
    add_labels,
    default_person,
    export_labels,
    import_labels,
    read_labels,
    wrong_place,
)
from atp.journal.records import NAME as JOURNAL
from atp.journal.records import Trial
from atp.suite.result import TrialResult, Verdict

FILE = "labels.jsonl"


def label(
    trial: str = "k1", check: CheckPlace = (0,), by: str = "ada", at: float = 1.0, verdict: Any = "passed", **more: Any
) -> Label:
    """A label of Ada's on the first check of a trial, unless said otherwise."""
    return Label(trial=trial, check=check, by=by, at=at, verdict=verdict, **more)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with two trials, each with a check and a group of two."""
    folder = tmp_path / "run"
    folder.mkdir()
    parts = [Verdict(type="llm_eval", name="polite", outcome="failed"), Verdict(type="contains", outcome="passed")]
    verdicts = [
        Verdict(type="expectation", name="It answers", outcome="passed"),
        Verdict(type="any_of", outcome="passed", parts=parts),
    ]
    with (folder / JOURNAL).open("wb") as file:
        for number, case in enumerate(("one", "two"), 1):
            result = TrialResult(key=f"k{number}", agent="bot", case=case, verdicts=verdicts)
            file.write(msgspec.json.encode(Trial(result=result)) + b"\n")
    return folder


def test_the_newest_label_of_a_person_on_a_thing_counts(run: Path) -> None:
    add_labels(run, [label(), label(by="ben", verdict="failed"), label(check=(), thumb="up", verdict=None)])
    add_labels(run, [label(at=0.5, verdict="failed", comment="on second thoughts")])  # the clock was set back
    assert read_labels(run) == [
        label(at=0.5, verdict="failed", comment="on second thoughts"),
        label(by="ben", verdict="failed"),
        label(check=(), thumb="up", verdict=None),
    ]


def test_an_empty_label_takes_back_what_the_person_said(run: Path) -> None:
    add_labels(run, [label(), label(by="ben"), label(verdict=None, comment="")])
    assert [one.by for one in read_labels(run)] == ["ben"]


def test_a_run_without_labels_has_none(run: Path) -> None:
    assert read_labels(run) == []
    assert export_labels(run) == b""


def test_torn_and_damaged_lines_are_passed_over_and_named(run: Path) -> None:
    add_labels(run, [label()])
    with (run / NAME).open("ab") as file:
        file.write(b'{"trial":"k2","by":"ada","at":"noon"}\n\xff\xfe\n{"trial":"k2","by":"a')
    damaged: list[int] = []
    assert read_labels(run, damaged) == [label()]
    assert damaged == [2, 3, 4]
    add_labels(run, [label("k2")])  # the next writer removes the torn line, and its own is whole
    damaged = []
    assert read_labels(run, damaged) == [label(), label("k2")]
    assert damaged == [2, 3]


def test_many_writers_lose_and_double_nothing(run: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom atp.journal.labels import Label, add_labels\n"
        "for number in range(50):\n"
        "    add_labels(Path(sys.argv[1]), [Label(trial=str(number), by=sys.argv[2], at=1.0, comment='x' * 5000)])\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(run), f"writer {n}"]) for n in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    damaged: list[int] = []
    found = read_labels(run, damaged)
    assert damaged == []
    assert len((run / NAME).read_bytes().splitlines()) == len(found) == 200


def test_a_key_of_a_later_version_is_passed_over(run: Path) -> None:
    (run / NAME).write_text('{"trial": "k1", "thumb": "up", "by": "ada", "at": 1, "mood": "calm"}\n', "utf-8")
    assert read_labels(run) == [label(check=(), thumb="up", verdict=None)]


def test_labels_that_cannot_be_written_are_an_error_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(LoadError) as caught:
        add_labels(tmp_path / "gone", [label()])
    (note,) = caught.value.diagnostics
    assert (note.code, note.file) == ("unwritable-labels", str(tmp_path / "gone" / NAME))


def test_a_secret_in_a_comment_is_masked(run: Path) -> None:
    with masking(Secrets({"hunter2-hunter2"})):
        add_labels(run, [label(comment="it printed hunter2-hunter2")])
    assert b"hunter2" not in (run / NAME).read_bytes()
    assert read_labels(run)[0].comment == "it printed ***"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
LABELS = st.builds(
    Label,
    trial=st.sampled_from(["k1", "k2"]),
    check=st.sampled_from([(), (0,), (1,), (1, 0), (1, 1)]),
    thumb=st.sampled_from([None, "up", "down"]),
    verdict=st.sampled_from([None, "passed", "failed"]),
    comment=st.none() | TEXTS,
    by=TEXTS.filter(bool),
    at=st.floats(0, 1e10),
)


@given(labels=st.lists(LABELS, max_size=20))
def test_what_is_exported_is_imported_as_it_was(labels: list[Label], tmp_path_factory: pytest.TempPathFactory) -> None:
    one, other = (_copy(tmp_path_factory.mktemp("run")) for _ in range(2))
    add_labels(one, labels)
    import_labels(other, export_labels(one), FILE)
    assert sorted(read_labels(other), key=repr) == sorted(read_labels(one), key=repr)


def _copy(folder: Path) -> Path:
    verdicts = [
        Verdict(type="a", outcome="passed"),
        Verdict(type="b", outcome="passed", parts=[Verdict(type="c", outcome="passed") for _ in range(2)]),
    ]
    lines = [Trial(result=TrialResult(key=key, agent="bot", case=key, verdicts=verdicts)) for key in ("k1", "k2")]
    (folder / JOURNAL).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return folder


def test_an_exported_line_says_what_it_is_about(run: Path) -> None:
    add_labels(run, [label("k2", check=(1, 0), verdict="failed", comment="curt")])
    assert json.loads(export_labels(run)) == {
        "trial": "k2",
        "case": "two",
        "agent": "bot",
        "run": 1,
        "check": [1, 0],
        "criterion": "polite",
        "verdict": "failed",
        "comment": "curt",
        "by": "ada",
        "at": 1.0,
    }


def test_importing_again_changes_nothing_and_an_older_label_is_not_taken(run: Path) -> None:
    add_labels(run, [label(at=5.0)])
    data = export_labels(run)
    older = data.replace(b'"at":5.0', b'"at":4.0').replace(b"passed", b"failed")
    newer = data.replace(b'"at":5.0', b'"at":6.0').replace(b"passed", b"failed")
    assert import_labels(run, data, FILE) == (0, 1)
    assert import_labels(run, older, FILE) == (0, 1)
    assert read_labels(run) == [label(at=5.0)]
    assert import_labels(run, newer, FILE) == (1, 0)
    assert read_labels(run) == [label(at=6.0, verdict="failed")]


GOOD = '{"trial": "k1", "check": [0], "verdict": "passed", "by": "ada", "at": 1}'


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ('{"trial": "k9", "verdict": "passed", "by": "ada", "at": 1}', "label-unknown", "no trial `k9`"),
        ('{"trial": "k1", "check": [7], "thumb": "up", "by": "a", "at": 1}', "label-unknown", "no check 7"),
        ('{"trial": "k1", "check": [0, 0], "thumb": "up", "by": "a", "at": 1}', "label-unknown", "no check 0.0"),
        ('{"trial": "k1", "case": "two", "thumb": "up", "by": "a", "at": 1}', "label-unknown", "`case` is `two`"),
        ('{"trial": "k1", "check": [0], "criterion": "x", "thumb": "up", "by": "a", "at": 1}', "label-unknown", "`x`"),
        ('{"trial": "k1", "verdit": "passed", "by": "ada", "at": 1}', "bad-label", "did you mean `verdict`?"),
        ('{"trial": "k1", "verdict": "good", "by": "ada", "at": 1}', "bad-label", "Invalid enum value 'good'"),
        ('{"trial": "k1", "verdict": "passed", "at": 1}', "bad-label", "missing required field `by`"),
        ('{"trial": "k1", "check": [-1], "by": "ada", "at": 1}', "bad-label", ">= 0"),
        ('{"trial": "k1"', "bad-label", "each line is one JSON object"),
        ("[1]", "bad-label", "Expected `object`"),
    ],
)
def test_a_line_that_does_not_fit_is_an_error_with_its_place_and_nothing_is_added(
    run: Path, line: str, code: str, says: str
) -> None:
    with pytest.raises(LoadError) as caught:
        import_labels(run, f"\ufeff{GOOD}\n\n{line}\n".encode(), FILE)
    (note,) = caught.value.diagnostics
    assert (note.code, note.file, note.line) == (code, FILE, 3)
    assert says in note.with_hint
    assert read_labels(run) == []


@pytest.mark.parametrize(
    ("place", "fits"), [((), True), ((1,), True), ((1, 1), True), ((2,), False), ((1, 2), False), ((0, 0), False)]
)
def test_a_label_fits_the_checks_of_its_trial(place: CheckPlace, fits: bool) -> None:
    parts = [Verdict(type="llm_eval", outcome="failed"), Verdict(type="contains", outcome="passed")]
    verdicts = [Verdict(type="expectation", outcome="passed"), Verdict(type="any_of", outcome="passed", parts=parts)]
    trial = LabelledTrial("one", "bot", 1, verdicts)
    assert (wrong_place(label(check=place), trial) is None) == fits
    assert wrong_place(label(check=place), None) is not None


@pytest.mark.parametrize("git_knows", [True, False])
def test_who_labels_is_known_from_git_or_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git_knows: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "login")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    if git_knows:
        subprocess.run(["git", "-C", str(tmp_path), "config", "user.name", "Ada"], check=True)
    assert default_person(tmp_path) == ("Ada" if git_knows else "login")
