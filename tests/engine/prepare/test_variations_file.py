"""The file that keeps variations: what was made once stays, whatever happens around it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.roles.support.doubles import Scripted
from tests.waiting import WAIT_LIMIT

from atp.base.diagnostics import LoadError
from atp.engine.prepare.variations_file import VariationsFile, variations_for, variations_path, varied_digest
from atp.loader.load import load_text
from atp.roles.ask import RoleClient, RoleError
from atp.roles.generate.variator import Variation, Variations
from atp.suite.case import Case

NEW = ["Raise its temperature", "It's far too cold in there", "Heat the sea for me", "More warmth down there, please"]


def a_case(*prompts: str, intent: str | None = None, name: str = "ocean") -> Case:
    return Case(id=name, name=name, intent=intent, chains=[[one] for one in prompts or ("warm the ocean",)])


def generated(text: str, by: str = "maker") -> Variation:
    return Variation(chain=[text], origin="generated", by=by)


def make(case: Case, count: int, path: Path, client: RoleClient | None = None) -> Variations:
    return asyncio.run(variations_for(case, count, VariationsFile(path), client))


def client(*texts: str) -> Scripted:
    return Scripted(list(texts), name="maker")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ocean.variations.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_it_stands_beside_the_test_file() -> None:
    assert variations_path("a/ocean.test.md") == Path("a/ocean.variations.jsonl")
    assert variations_path("a/Ocean.TEST.MD") == Path("a/Ocean.variations.jsonl")
    assert variations_path("a/suite.yaml") == Path("a/suite.variations.jsonl")


def test_what_a_line_says(path: Path) -> None:
    case = a_case()
    make(case, 2, path, client(NEW[0]))
    assert lines(path) == [
        {"case": "ocean", "digest": varied_digest(case), "number": 1, "chain": [NEW[0]], "by": "maker"}
    ]


def test_a_second_run_asks_nobody(path: Path) -> None:
    first = make(a_case(), 4, path, client(*NEW))
    silent = Scripted(RoleError("must not be asked"))
    assert make(a_case(), 4, path, silent) == first
    assert silent.calls == []
    assert make(a_case(), 2, path, silent) == first[:2]


def test_raising_the_count_keeps_the_earlier_ones(path: Path) -> None:
    first = make(a_case(), 3, path, client(*NEW[:2]))
    more = client(*NEW[2:])
    assert [one.chain[0] for one in make(a_case(), 5, path, more)] == ["warm the ocean", *NEW]
    assert more.calls[0].payload["taken"] == [[NEW[0]], [NEW[1]]]
    assert make(a_case(), 5, path)[:3] == first


def test_rules_keep_theirs_too(path: Path) -> None:
    first = make(a_case(), 30, path)
    assert len(lines(path)) == 29
    assert make(a_case(), 60, path)[:30] == first
    assert len(lines(path)) == 59


@pytest.mark.parametrize("changed", [a_case("warm the sea"), a_case(intent="another"), a_case(name="other")])
def test_another_text_gets_other_variations_and_the_old_ones_lie_idle(path: Path, changed: Case) -> None:
    make(a_case(), 2, path, client(NEW[0]))
    old = path.read_bytes()
    assert make(changed, 2, path, client(NEW[1]))[1].chain == [NEW[1]]
    assert path.read_bytes().startswith(old)
    assert make(a_case(), 2, path)[1].chain == [NEW[0]]


def test_cycled_ones_are_not_kept(path: Path) -> None:
    made = make(a_case("/go"), 4, path)
    assert [one.origin for one in made] == ["listed", "cycled", "cycled", "cycled"]
    assert not path.exists()


def test_what_rules_made_gives_way_to_a_player(path: Path) -> None:
    by_rules = make(a_case(), 3, path)
    by_player = make(a_case(), 3, path, client(*NEW[:2]))
    assert [one.by for one in by_rules] == [None, "rules", "rules"]
    assert [one.by for one in by_player] == [None, "maker", "maker"]
    assert make(a_case(), 3, path) == by_player


def test_what_a_player_made_serves_without_one(path: Path) -> None:
    make(a_case(), 3, path, client(*NEW[:2]))
    assert [one.by for one in make(a_case(), 5, path)] == [None, "maker", "maker", "rules", "rules"]


def test_what_rules_made_for_a_broken_player_is_not_kept(path: Path) -> None:
    broken = Scripted([NEW[0]], RoleError("gone"), name="maker")
    made = make(a_case(), 4, path, broken)
    assert [one.by for one in made] == [None, "maker", "rules", "rules"]
    assert [one.code for one in made.warnings] == ["generator-failed"]
    assert [line["by"] for line in lines(path)] == ["maker"]
    assert [one.by for one in make(a_case(), 4, path, client(*NEW))] == [None, "maker", "maker", "maker"]


def test_a_torn_last_line_is_passed_over_and_mended(path: Path) -> None:
    first = make(a_case(), 3, path, client(*NEW[:2]))
    with path.open("ab") as file:
        file.write(b'{"case":"ocean","dig')
    assert make(a_case(), 3, path, client(*NEW)) == first
    make(a_case(), 4, path, client(NEW[2]))
    assert [line["number"] for line in lines(path)] == [1, 2, 3]


def test_a_whole_last_line_without_its_end_is_kept(path: Path) -> None:
    make(a_case(), 3, path, client(*NEW[:2]))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    make(a_case(), 4, path, client(NEW[2]))
    assert [line["chain"][0] for line in lines(path)] == NEW[:3]


@pytest.mark.parametrize(
    "line",
    [
        "<<<<<<< HEAD",
        "{}",
        '{"case":"ocean","digest":"x","number":1,"chain":"text","by":"me"}',
        '{"case":"ocean","digest":"x","number":1,"chain":[],"by":"me"}',
        '{"case":"ocean","digest":"x","number":1,"chain":["a"],"by":"me","note":1}',
    ],
)
def test_a_line_that_is_none_is_an_error_with_its_place(path: Path, line: str) -> None:
    make(a_case(), 2, path, client(NEW[0]))
    path.write_text(f"{path.read_text()}{line}\n\n{line}\n")
    with pytest.raises(LoadError) as raised:
        make(a_case(), 2, path)
    assert [(one.code, one.file, one.line) for one in raised.value.diagnostics] == [
        ("variations-file", str(path), 2),
        ("variations-file", str(path), 4),
    ]


def test_a_removed_line_is_made_anew_and_moves_no_other(path: Path) -> None:
    make(a_case(), 4, path, client(*NEW[:3]))
    kept = path.read_text().splitlines(keepends=True)
    path.write_text(kept[0] + kept[2])
    made = make(a_case(), 4, path, client(NEW[3]))
    assert [one.chain[0] for one in made[1:]] == [NEW[0], NEW[3], NEW[2]]


def test_a_folder_that_can_not_be_written_is_a_warning(tmp_path: Path) -> None:
    made = make(a_case(), 3, tmp_path / "missing" / "x.variations.jsonl", client(*NEW[:2]))
    assert [one.chain[0] for one in made[1:]] == NEW[:2]
    [warning] = made.warnings
    assert warning.code == "variations-not-kept"
    assert "No such file or directory" in warning.message


def test_a_file_that_can_not_be_read_is_an_error(path: Path) -> None:
    path.mkdir()
    with pytest.raises(LoadError, match="cannot be read"):
        make(a_case(), 3, path)


def test_without_a_file_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = asyncio.run(variations_for(a_case(), 3, VariationsFile.beside(None), None))
    assert len(made) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_documents_example(tmp_path: Path) -> None:
    text = (
        "---\ntarget: agents/a.md\nassessor: agents/b.md\niterations: 50\n---\n\n# Warming\n\n**Prompts:**\n\n"
        "- warm the ocean\n- warm the ocean immediately\n- do the thing\n- **Chain:**\n  - good morning\n"
        "  - please warm the ocean by 2 degrees\n  - centigrade\n\n**Expectations:**\n\n- the ocean is warm\n"
    )
    loaded = load_text(text, "markdown")
    assert loaded.suite is not None
    [case] = loaded.suite.cases
    assert case.iterations == 50
    made = make(case, case.iterations, tmp_path / "x.variations.jsonl")
    assert [one.origin for one in made] == ["listed"] * 4 + ["generated"] * 46
    assert "the ocean is warm" not in (tmp_path / "x.variations.jsonl").read_text()


def test_of_two_processes_the_quicker_one_counts(path: Path) -> None:
    mine, theirs = VariationsFile(path), VariationsFile(path)
    assert mine.read("c", "d") == theirs.read("c", "d") == {}
    first = theirs.append("c", "d", {1: generated("a"), 2: generated("b")})
    assert mine.append("c", "d", {2: generated("x"), 3: generated("y")}) == {2: first[2], 3: generated("y")}
    assert theirs.read("c", "d") == mine.read("c", "d") == {**first, 3: generated("y")}


def test_processes_at_the_same_time_leave_a_sound_file(path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom atp.engine.prepare.variations_file import VariationsFile\n"
        "from atp.roles.generate.variator import Variation\nme = sys.argv[2]\n"
        "side = VariationsFile(Path(sys.argv[1]))\n"
        "for n in range(40):\n"
        "    text = f'{me} says {n} ' + 'x' * 5000\n"
        "    made = {n: Variation(chain=[text], origin='generated', by=me)}\n"
        "    print(side.append('c', 'd', made)[n].chain[0][:20])\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two", "three")
    ]
    told = [process.communicate(timeout=WAIT_LIMIT)[0].splitlines() for process in running]
    assert told[0] == told[1] == told[2]
    assert [line["number"] for line in lines(path)] == list(range(40))


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.integers(0, 50), st.lists(texts, min_size=1, max_size=3), max_size=8), texts, texts)
def test_what_is_written_is_read_again(tmp_path: Path, chains: dict[int, list[str]], case_id: str, other: str) -> None:
    file = tmp_path / "round.variations.jsonl"
    file.unlink(missing_ok=True)
    made = {n: Variation(chain=chain, origin="generated", by="m") for n, chain in chains.items()}
    assert VariationsFile(file).append(case_id, "d", made) == made
    assert VariationsFile(file).read(case_id, "d") == made
    assert VariationsFile(file).read(case_id, "e") == {}
    assert VariationsFile(file).append(case_id, "d", made) == made
    if other != case_id:
        assert VariationsFile(file).read(other, "d") == {}
