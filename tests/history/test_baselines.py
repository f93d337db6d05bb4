"""Baselines are the same bytes for the same run, and what is no baseline of this version is refused by name."""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from tests.damage import damaged_bytes

from atp.base.diagnostics import LoadError
from atp.base.secrets import Secrets, hider
from atp.history import baselines
from atp.history.compare import compare_runs
from atp.history.figures import Answer, CaseFigures, Figure, RunFigures
from atp.report.compare.html import comparison_page
from atp.report.compare.markdown import comparison_markdown
from atp.report.compare.text import comparison_lines


def run(**given: Any) -> RunFigures:
    case = CaseFigures(
        id="c",
        agent="a",
        file="c.jsonl",
        status="failed",
        passed=3,
        judged=5,
        rate=0.6,
        case_digest="1",
        golden_digests={0: "8e", 1: "8f"},
        figures={"score": Figure(median=80.0, runs=5), "duration_ms": Figure(median=1.5, runs=5)},
        answers={"passed": Answer(outputs=["Hellö", {"a": [1]}]), "failed": Answer(outputs=["no"], error="wrong")},
    )
    return RunFigures(**{"run": "20260101", "at": 1.0, "version": "1", "cases": [case], **given})


def refusal(path: Path) -> tuple[str, str]:
    with pytest.raises(LoadError) as error:
        baselines.read(path)
    (found,) = error.value.diagnostics
    assert str(path) in found.message
    assert found.hint
    return found.code, found.message


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = baselines.save(tmp_path, "main", run())
    assert path == tmp_path / "baselines" / "main.json.gz"
    found = baselines.load(tmp_path, "main")
    assert (found.run, found.cases) == ("20260101", run().cases)
    assert baselines.names(tmp_path) == ["main"]
    baselines.drop(tmp_path, "main")
    assert baselines.names(tmp_path) == []


def test_the_same_run_gives_the_same_bytes_in_the_order_of_the_keys(tmp_path: Path) -> None:
    first = baselines.save(tmp_path, "one", run()).read_bytes()
    turned = run()
    turned.cases[0].figures = dict(reversed(turned.cases[0].figures.items()))
    turned.cases[0].golden_digests = dict(reversed(turned.cases[0].golden_digests.items()))
    assert baselines.save(tmp_path, "two", turned).read_bytes() == first
    assert first[4:8] == bytes(4)  # no time
    text = gzip.decompress(first).decode()
    value = json.loads(text)
    assert list(value) == sorted(value)
    assert value["format"] == baselines.FORMAT


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", ".hidden", "ä", "a b", "x.json.gz", "x" * 101])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    for call in (baselines.load, baselines.drop, lambda root, name: baselines.save(root, name, run())):
        with pytest.raises(LoadError, match="can't be the name of a baseline"):
            call(tmp_path, name)
    assert not (tmp_path / "baselines").exists()


@pytest.mark.parametrize("name", ["last", "LAST", "commit"])
def test_a_name_of_runs_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LoadError, match="it names a run"):
        baselines.save(tmp_path, name, run())


def test_a_baseline_is_not_replaced_unless_asked_for(tmp_path: Path) -> None:
    baselines.save(tmp_path, "main", run())
    with pytest.raises(LoadError, match="there is a baseline `main` already"):
        baselines.save(tmp_path, "main", run(run="other"))
    assert baselines.load(tmp_path, "main").run == "20260101"
    baselines.save(tmp_path, "main", run(run="other"), force=True)
    assert baselines.load(tmp_path, "main").run == "other"


def test_a_run_without_cases_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="has no case to save"):
        baselines.save(tmp_path, "main", run(cases=[]))


def test_a_missing_baseline_is_named_with_what_may_be_meant(tmp_path: Path) -> None:
    baselines.save(tmp_path, "main", run())
    with pytest.raises(LoadError, match=r"there is no baseline `mian` .*did you mean `main`"):
        baselines.load(tmp_path, "mian")
    with pytest.raises(LoadError, match="atp baseline save release"):
        baselines.drop(tmp_path, "release")


def test_a_baseline_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "baselines").write_text("a file")
    assert baselines.names(tmp_path) == []
    with pytest.raises(LoadError, match="can't be written"):
        baselines.save(tmp_path, "main", run())


DAMAGED = {
    "empty": b"",
    "not packed": b"not packed",
    "nothing packed": gzip.compress(b""),
    "a list": gzip.compress(b"[]"),
    "another object": gzip.compress(b'{"results": []}'),
    "no text": gzip.compress(b"\xff"),
    "deep": gzip.compress(b"[" * 100_000),
    "no run": gzip.compress(b'{"type": "atp baseline", "format": 1}'),
    "an empty case": gzip.compress(b'{"type": "atp baseline", "format": 1, "run": "1", "at": 1, "cases": [{}]}'),
    "cut off": baselines.pack(run())[:-20],
    "more passed than judged": gzip.compress(
        gzip.decompress(baselines.pack(run())).replace(b'"judged":5', b'"judged":2')
    ),
    "a format before the first": gzip.compress(b'{"type": "atp baseline", "format": 0, "run": "1", "at": 1}'),
    "more runs than any case has": gzip.compress(
        gzip.decompress(baselines.pack(run())).replace(b'"judged":5', b'"judged":5' + b"0" * 400)
    ),
    "a negative count": gzip.compress(gzip.decompress(baselines.pack(run())).replace(b'"judged":5', b'"judged":-5')),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_or_foreign_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "main.json.gz"
    path.write_bytes(data)
    code, message = refusal(path)
    assert code == "bad-baseline"
    assert "is damaged, or no baseline of ATP's" in message


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "main.json.gz"
    path.write_bytes(gzip.compress(b'{"type": "atp baseline", "format": 2, "unheard_of": true}'))
    assert refusal(path) == (
        "newer-format",
        f"{path} has format 2, and this version of ATP reads baselines up to format 1",
    )


def test_a_file_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "LARGEST", 2**20)
    path = tmp_path / "main.json.gz"
    path.write_bytes(gzip.compress(b" " * (2**20 + 1)))
    assert "it has more than 1 MB" in refusal(path)[1]


def test_a_baseline_that_has_a_case_twice_is_refused_by_name(tmp_path: Path) -> None:
    one = {"id": "x", "agent": "bot", "file": "a.yaml", "status": "passed", "passed": 1, "judged": 1, "rate": 1.0}
    content = {"type": "atp baseline", "format": 1, "run": "r", "at": 0.0, "host": "h"}
    path = tmp_path / "baselines" / "main.json.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(json.dumps({**content, "cases": [one, {**one, "agent": "other"}]}).encode()))
    assert len(baselines.load(tmp_path, "main").cases) == 2
    path.write_bytes(gzip.compress(json.dumps({**content, "cases": [one, one]}).encode()))
    with pytest.raises(LoadError, match=r"main\.json\.gz .*case `x` of agent `bot` is in it twice"):
        baselines.load(tmp_path, "main")


CONTENT = gzip.decompress(baselines.pack(run()))


def check_baseline(data: bytes) -> None:
    """Read a file as a baseline, and compare it with a run in all formats if it is one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "main.json.gz"
        path.write_bytes(data)
        try:
            found = baselines.read(path)
        except LoadError as error:
            if [one.code for one in error.diagnostics] not in (["bad-baseline"], ["newer-format"]):
                raise
            return
    assert baselines.pack(found)
    hide = hider(Secrets())
    for a, b in ((found, run()), (run(), found)):
        compared = compare_runs(a, b, ("A", "B"), margin=0.05, answers=True)
        assert list(comparison_lines(compared, hide, verbose=True))
        assert list(comparison_markdown(compared, hide))
        assert comparison_page(compared, hide)


def check_content(content: bytes) -> None:
    """The same with what the file holds."""
    check_baseline(gzip.compress(content, 1))


@settings(max_examples=50)
@given(damaged_bytes(CONTENT))
@example(CONTENT)
@example(CONTENT.replace(b"80.0", b"1e300"))
@example(CONTENT.replace(b"80.0", b"1e-300"))
@example(CONTENT.replace(b'"at":1.0', b'"at":1e300'))
def test_whatever_is_packed_is_read_or_refused(content: bytes) -> None:
    check_content(content)


@settings(max_examples=50)
@given(damaged_bytes(baselines.pack(run())))
def test_a_file_that_was_damaged_is_read_or_refused(data: bytes) -> None:
    check_baseline(data)
