"""Settings that say nothing, contradict each other, or are misspelled; and what a flag can take back."""

import json
import os
import sys
from pathlib import Path

import pytest
from tests.engine.support.project import Project, together

import atp
from atp import Options
from atp.base.diagnostics import LoadError
from atp.cli.inputs import load_files
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.settings import environment, find_config, read_env_file, resolve_options
from atp.engine.prepare.sources import Input

AGENT = ["-n", "agent.py:run"]
NAMED = {"-n": "--name"}
"""Flags whose short form is given."""


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt):
            print(prompt, file=open("asked", "a"))
            return prompt

        def fails(prompt):
            raise RuntimeError(prompt)
        """,
    )


@pytest.mark.parametrize(
    "flags",
    [
        ["--run", ""],
        ["--tags", ""],
        ["--tags", ","],
        ["--tags", "a,!"],
        ["--budget-usd", ""],
        ["--runs", ""],
        ["--user", ""],
        ["-n", ""],
        ["--resume-from", ""],
    ],
)
def test_a_flag_without_a_value_is_a_mistake(project: Project, flags: list[str]) -> None:
    """As in `--budget-usd "$BUDGET"` with a variable that isn't set: the run would have no budget at all."""
    ran = project.test(project.cases("a"), *AGENT, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert f"`{NAMED.get(flags[0], flags[0])}`" in ran.err
    assert project.lines("asked") == []


@pytest.mark.parametrize("flags", [["--quiet", "--verbose"], ["--only-failed", "--resume"]])
def test_flags_that_contradict_each_other(project: Project, flags: list[str]) -> None:
    ran = project.atp("test", project.cases("a"), *AGENT, *flags)
    assert ran.code == 2
    assert "error[contradiction]" in ran.err
    assert all(flag in ran.err for flag in flags)


def test_a_flag_takes_back_what_a_file_or_the_environment_switched_on(project: Project) -> None:
    file = project.cases("a", "b", "c")
    project.write("atp.toml", 'fail_fast = true\nquiet = true\nname = "agent.py:fails"')
    on, off, env, env_off = together(
        lambda: project.atp("test", file, "-o", "1.jsonl"),
        lambda: project.atp("test", file, "-o", "2.jsonl", "--no-fail-fast", "--no-quiet"),
        lambda: project.atp("test", file, "-o", "3.jsonl", env={"ATP_FAIL_FAST": "false"}),
        lambda: project.atp("test", file, "-o", "4.jsonl", "--no-fail-fast", env={"ATP_FAIL_FAST": "true"}),
    )
    assert "Not run: 2" in on.out
    assert "Input:" not in on.out
    assert "Not run" not in off.out
    assert "Input:" in off.out
    assert "Not run" not in env.out
    assert "Not run" not in env_off.out


def test_a_variable_that_is_nearly_a_setting(project: Project) -> None:
    file = project.cases("a")
    near = {"ATP_PARALEL": "3", "ATP_TAGS": "smoke", "ATP_SOMETHING_ELSE": "1", "ATP_RUN": "the mark of a run"}
    warned, strict, right = together(
        lambda: project.atp("test", file, *AGENT, "-o", "1.jsonl", env=near),
        lambda: project.atp("test", file, *AGENT, "-o", "2.jsonl", "--strict", env=near),
        lambda: project.atp("test", file, *AGENT, "-o", "3.jsonl", "--strict", env={"ATP_PARALLEL": "3"}),
    )
    assert warned.code == 0
    assert warned.err.count("warning[unknown-setting]") == 2
    assert "ATP_PARALEL is not a setting" in warned.err
    assert "did you mean `ATP_PARALLEL`?" in warned.err
    assert "ATP_TAGS has no effect" in warned.err
    assert (strict.code, right.code) == (2, 0)


@pytest.mark.parametrize("name", ["atp.toml", ".env"])
def test_a_settings_file_that_cannot_be_read(project: Project, name: str) -> None:
    (project.folder / name).symlink_to("/proc/self/mem")  # there, a file, and an error to read, for root too
    ran = project.atp("test", project.cases("a"), *AGENT)
    assert ran.code == 2
    assert "error[unreadable]" in ran.err
    assert name in ran.err
    assert project.lines("asked") == []


@pytest.mark.parametrize(
    ("name", "content", "code", "place"),
    [
        ("atp.toml", b"runs = 1\nuser = '\xff'", "not-utf8", (2, 9)),
        ("atp.toml", b"runs = " + b"9" * 5_000, "syntax", (1, 1)),
        ("atp.toml", b"user = " + b"[" * 5_000, "syntax", (1, 1)),
        ("atp.toml", b"user = 'a'\nfail-fast = true\nfail_fast = false", "duplicate-key", (2, 1)),
        ("pyproject.toml", b"[tool]\natp = 5", "wrong-type", (2, 1)),
        (".env", b"A=1\nB=\xff", "not-utf8", (2, 3)),
        (".env", b"A=1\nB=\0", "nul-byte", (2, 3)),
    ],
)
def test_a_damaged_settings_file_is_a_mistake_at_its_place(
    project: Project, name: str, content: bytes, code: str, place: tuple[int, int]
) -> None:
    (project.folder / name).write_bytes(content)
    with pytest.raises(LoadError) as raised:
        resolve_options({}, project.folder, environment(project.folder, None))
    one = raised.value.diagnostics[0]
    assert (one.code, Path(one.file or "").name, (one.line, one.column)) == (code, name, place)


def test_tables_of_other_tools_are_none_of_atp(project: Project) -> None:
    for text in ("tool = 5", "[tool.other]\nruns = 2", "[project]\nname = 'x'"):
        project.write("pyproject.toml", text)
        assert find_config(project.folder) is None


def test_comments_behind_values_of_an_env_file(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text('A="x" # one\nB=\'y # z\' # two\nC=z # three\nD="a#b"\nE="{"a": 1}"\n')
    found, warnings = read_env_file(path, must_exist=True)
    assert found == {"A": "x", "B": "y # z", "C": "z", "D": "a#b", "E": '{"a": 1}'}
    assert warnings == []


def test_a_variable_that_an_env_file_sets_twice_is_a_warning_at_its_line(project: Project) -> None:
    project.write(".env", "MY_TOKEN=first-secret\nB=2\n# B=0\n export MY_TOKEN=second-secret\nMY_TOKEN=third-secret\n")
    suite = project.cases("a")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(project.folder)
        run = prepare(Input((suite,)), {"name": ["agent.py:run"], "dry_run": True})
        loaded, strict = load_files((suite,), strict=False), load_files((suite,), strict=True)
    for found in (run.warnings, loaded.path_diagnostics):
        twice = [one for one in found if one.code == "duplicate-variable"]
        assert [(one.severity, Path(one.file or "").name, one.line, one.column) for one in twice] == [
            ("warning", ".env", 4, 9),
            ("warning", ".env", 5, 1),
        ]
        assert [one.message.partition(":")[0] for one in twice] == [
            "MY_TOKEN is set in line 1 already",
            "MY_TOKEN is set in line 4 already",
        ]
        assert "secret" not in str(twice)
    assert environment(project.folder, None)["MY_TOKEN"] == "third-secret"
    assert not strict.ok


def test_options_of_a_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("atp.toml", 'parallel = 3\nuser = "ada"\nteam = "tea"')
    project.write(".env", "ATP_USER=grace")
    monkeypatch.setenv("ATP_RETRIES", "7")
    suite = project.folder / project.cases("a")
    options = Options.from_project(suite, team="flag")
    assert (options.parallel, options.user, options.retries, options.team) == (3, "grace", 7, "flag")
    assert options.given("team")
    assert not options.given("user")
    assert Options().parallel == 1
    project.write("atp.toml", "paralel = 3")
    with pytest.raises(LoadError, match="paralel"):
        Options.from_project(Path(suite))


def test_a_name_that_is_not_unicode(tmp_path: Path) -> None:
    with pytest.raises(LoadError) as raised:
        Options.from_project(tmp_path, output=["a\udcff.json"])
    [found] = raised.value.diagnostics
    assert (found.code, found.message) == ("not-utf8", "`output` is not Unicode: 'a\\udcff.json'")
    assert found.hint


@pytest.mark.parametrize("python", [None, sys.executable])
def test_python_agents_find_what_the_env_file_adds(project: Project, python: str | None) -> None:
    """When they are loaded and when they are called, in our process and in another."""
    project.write(".env", "MY_KEY=from the file\nHOME=nowhere\n")
    project.write(
        "agent.py",
        """
        import os

        KEY = os.environ["MY_KEY"]

        def main(prompt):
            return [KEY, os.environ["MY_KEY"], os.environ["HOME"] == "nowhere"]
        """,
    )
    config = {"entry": "agent.py:main"} if python is None else {"entry": "agent.py:main", "python": python}
    test = {"id": "a", "input": "x", "expected": ["from the file", "from the file", False]}
    suite = project.suite([{"name": "a", "type": "custom", "config": config}], [test])
    assert project.test(suite).statuses == {"a": "passed"}
    assert project.atp("agents", "check", suite).code == 0


def test_the_environment_is_given_back(tmp_path: Path) -> None:
    (tmp_path / "atp.toml").touch()
    (tmp_path / ".env").write_text("MY_KEY_OF_ATP=1\n")
    (tmp_path / "agent.py").write_text("import os\n\ndef main():\n    return os.environ['MY_KEY_OF_ATP']\n")
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:main"}}
    case = {"id": "a", "name": "a", "input": "x", "expected": "1"}
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps({"test_suite": "s", "agents": [agent], "tests": [case]}))
    assert atp.run_sync(atp.load(path)).exit_code == 0
    assert "MY_KEY_OF_ATP" not in os.environ


def test_mistakes_are_told_in_the_words_of_who_made_them(project: Project) -> None:
    file = project.cases("a")
    for flags, env, told in (
        (["--runs", "0"], {}, "`--runs` must be at least 1, found '0'"),
        (["--budget-usd", "x"], {}, "`--budget-usd` must be a number, found 'x'"),
        ([], {"ATP_RUNS": "0"}, "`ATP_RUNS` must be at least 1, found '0'"),
        (
            ["--run", "b", "--tags", "c"],
            {},
            "help: none fits --run b and --tags c; ids and names here: `a`; tags here: none\n",
        ),
    ):
        ran = project.atp("test", file, *AGENT, *flags, env=env)
        assert (ran.code, told in ran.err) == (2, True), ran.err
    assert not (project.folder / "asked").exists()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--run", "shiped"], "none fits --run shiped; did you mean `shipped`?"),
        (["--run", "xyz"], "none fits --run xyz; ids and names here: `shipped`, `Where is it`, `refund`"),
        (["--tags", "smok"], "none fits --tags smok; did you mean `smoke`?"),
        (["--run", "shipped", "--tags", "slow"], "none fits --run shipped and --tags slow"),
        (["--tags", "slow,!nightly", "--run", "ref"], None),
    ],
)
def test_a_filter_that_fits_nothing_is_told_what_there_is(project: Project, flags: list[str], told: str | None) -> None:
    file = project.cases(
        {"id": "shipped", "name": "Where is it", "input": "x", "tags": ["smoke"]},
        {"id": "refund", "input": "x", "tags": ["slow"]},
    )
    ran = project.atp("test", file, *AGENT, *flags, "--dry-run")
    assert ran.code == (0 if told is None else 2), ran.err
    if told is not None:
        assert ran.err.rstrip().endswith(f"help: {told}")
