"""Where reports may be written: never over what a run reads, and what can't be written is known before it."""

import json
from pathlib import Path

import pytest
from tests.engine.support.project import Project

SUITE_AGENT = {"name": "cat", "type": "custom", "config": {"entry": "agent.py:run"}}


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    """A project with files of every kind that a run reads."""
    project.write("agent.py", 'def run(prompt):\n    print("x", file=open("asked", "a"))\n    return prompt\n')
    project.write("atp.toml", "parallel = 1\n")
    project.write(".env", "COLOUR=blue\n")
    project.write("ctx.json", {"locale": "de-de"})
    project.write("hooks.py", "def before():\n    pass\n")
    project.write("scripts/mine.py", "def check(output):\n    return True\n")
    project.write("agents/p.md", "---\ntype: custom\nconfig: {entry: ../agent.py:run}\n---\nA prompt.\n")
    project.write("connectors/mine.conn.json", {"type": "openai"})
    project.write("fixtures/data.json", {"a": 1})
    project.cases({"id": "a", "input": "hi"}, name="t.jsonl")
    project.suite([SUITE_AGENT], [{"id": "a", "input": "hi"}])


def everything(project: Project) -> dict[str, bytes]:
    return {
        str(path.relative_to(project.folder)): path.read_bytes()
        for path in project.folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("t.jsonl -n agents/p.md -o agents/p.md", "is made of it"),
        ("t.jsonl -n agents/p.md -o agent.py -r report.json", "the agent `p` is made of it"),
        ("suite.yaml -o agent.py -r report.json", "the agent `cat` is made of it"),
        ("suite.yaml -o ./fixtures/../agent.py -r report.json", "the agent `cat` is made of it"),
        ("suite.yaml -o atp.toml -r report.json", "settings file"),
        ("suite.yaml -o pyproject.toml -r report.json", "settings file"),
        ("suite.yaml -o .env -r report.json", "settings file"),
        ("suite.yaml --ctx ctx.json -o ctx.json", "the run reads it"),
        ("suite.yaml --before-all hooks.py:before -o hooks.py -r report.json", "a hook is in it"),
        ("suite.yaml -o scripts/mine.py -r report.json", "script"),
        ("suite.yaml -o connectors/mine.conn.json", "connector"),
        ("suite.yaml -o fixtures/data.json", "trials start with"),
        ("suite.yaml -o .atp/runs/x/report.json", "ATP keeps its runs"),
        ("suite.yaml -o suite.yaml -r report.json", "test file"),
    ],
)
def test_a_report_never_takes_the_place_of_what_the_run_reads(project: Project, call: str, why: str) -> None:
    before = everything(project)
    ran = project.atp("test", *call.split())
    assert ran.code == 2, ran.out
    assert "error[unwritable-report]: -o" in ran.err
    assert why in ran.err
    assert everything(project) == before, "nothing ran, and nothing was written"


def test_nor_does_a_report_on_a_run_that_is_over(project: Project) -> None:
    assert project.atp("test", "suite.yaml").code == 0
    before = everything(project)
    journal = str(project.runs()[-1].relative_to(project.folder) / "journal.jsonl")
    for output in (journal, "agents/p.md", "agent.py", "atp.toml", "suite.yaml", "scripts/mine.py"):
        ran = project.atp("report", "last", "-o", output, "-r", "report.json")
        assert (ran.code, "unwritable-report" in ran.err) == (2, True), (output, ran)
    assert everything(project) == before


def test_an_earlier_report_is_replaced_wherever_it_stands(project: Project) -> None:
    for _ in range(2):
        ran = project.atp("test", "suite.yaml", "-o", "agents/report.json", "-o", "report.md")
        assert ran.code == 0, ran.err
    assert json.loads((project.folder / "agents/report.json").read_text())["summary"]["passed"] == 1


@pytest.mark.parametrize("ending", [".md", ".html", ".ctrf.json"])
def test_a_report_among_the_files_of_an_agent_is_replaced(project: Project, ending: str) -> None:
    for _ in range(2):
        ran = project.atp("test", "suite.yaml", "-o", f"agents/report{ending}")
        assert ran.code == 0, ran.err
    assert not (project.folder / ".atp/reports.txt").exists(), "they are told by how they begin"


def test_a_report_that_an_agent_wrote_is_replaced(project: Project) -> None:
    project.write("tell.py", "def tell(prompt):\n    return 'all is well'\n")
    report = project.folder / "agents" / "summary.txt"
    for _ in range(2):
        ran = project.atp("test", "suite.yaml", "-r", "tell.py:tell", "-o", "agents/summary.txt")
        assert ran.code == 0, ran.err
    assert report.read_text() == "all is well\n"
    (project.folder / ".atp/reports.txt").unlink()
    assert project.atp("test", "suite.yaml", "-r", "tell.py:tell", "-o", "agents/summary.txt").code == 2


def test_a_report_that_somebody_has_changed_since_is_not_replaced(project: Project) -> None:
    project.write("tell.py", "def tell(prompt):\n    return 'all is well'\n")
    call = ["test", "suite.yaml", "-r", "tell.py:tell", "-o", "notes.txt"]
    assert project.atp(*call).code == 0
    project.write("notes.txt", "my own notes")
    ran = project.atp(*call)
    assert (ran.code, "-o notes.txt: it is a file of the project, and no report of ATP's" in ran.err) == (2, True)
    assert (project.folder / "notes.txt").read_text() == "my own notes"


def test_a_summary_is_told_by_more_than_its_first_word(project: Project) -> None:
    project.write("README.md", "Agent: what it does\n\nIt echoes.\n")
    assert project.atp("test", "suite.yaml", "-o", "README.md").code == 2
    assert (project.folder / "README.md").read_text().startswith("Agent: what it does")
    for _ in range(2):
        assert project.atp("test", "suite.yaml", "-r", "report.summary", "-o", "summary.txt").code == 0
    assert not (project.folder / ".atp/reports.txt").exists()


def test_a_file_of_the_project_that_is_no_report_is_not_replaced(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.write("README.md", "# Mine\n")
    project.write("other.jsonl", '{"id": "a", "input": "x"}\n')
    project.write("empty.json", "")
    for name in ("README.md", "other.jsonl"):
        ran = project.atp("test", "suite.yaml", "-o", name)
        assert ran.code == 2
        assert f"-o {name}: it is a file of the project, and no report of ATP's" in ran.err
    assert (project.folder / "README.md").read_text() == "# Mine\n"
    outside = tmp_path_factory.mktemp("outside") / "old.md"
    outside.write_text("old")
    assert project.atp("test", "suite.yaml", "-o", "empty.json", "-o", str(outside)).code == 0


def test_what_cannot_be_written_is_known_before_anything_runs(project: Project) -> None:
    (project.folder / "loop.json").symlink_to("loop.json")
    (project.folder / "dangling.json").symlink_to("missing/x.json")
    outputs = {
        "loop.json": "symbolic links",
        "dangling.json": "there is no folder",
        f"{'x' * 300}.json": "too long",
        "/proc/x.json": "no file can be made in /proc",
    }
    for output, why in outputs.items():
        ran = project.atp("test", "suite.yaml", "-o", output)
        assert (ran.code, why in ran.err) == (2, True), ran
        assert "Traceback" not in ran.err
    assert project.lines("asked") == []


def test_a_name_that_is_as_long_as_one_can_be(project: Project) -> None:
    name = f"{'x' * 250}.json"
    assert project.atp("test", "suite.yaml", "-o", name).code == 0
    assert Path(project.folder, name).exists()


def test_an_empty_path(project: Project) -> None:
    ran = project.atp("test", "suite.yaml", "")
    assert ran.code == 2
    assert "an empty path was given" in ran.err
