"""The GitHub action and the set-ups on the CI page: what they name is there, and the action's script does its job."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from tests.waiting import WAIT_LIMIT

ROOT = Path(__file__).parents[2]


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return found


def step(name: str) -> dict[str, Any]:
    (found,) = [one for one in action()["runs"]["steps"] if one["name"] == name]
    made: dict[str, Any] = found
    return made


def run_script(folder: Path, tests: str, args: str, baseline: str = "") -> tuple[int, str]:
    """The script that runs the tests, with the inputs of the action."""
    given = {"TESTS": tests, "ARGS": args, "REPORTS": "out", "BASELINE": baseline}
    return run_step("Run the tests", folder, {**given, "GITHUB_OUTPUT": str(folder / "output")})


def run_step(name: str, folder: Path, inputs: dict[str, str]) -> tuple[int, str]:
    """A script of the action, as GitHub runs it: `python` and a file, the inputs in the environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ATP_", "GITHUB_"))}
    env = {
        **clean,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **inputs,
    }
    ours = step(name)
    assert ours["shell"] == "python"
    script = folder / "script.py"
    script.write_text(ours["run"], encoding="utf-8")
    done = subprocess.run(
        ["python", script], cwd=folder, env=env, capture_output=True, text=True, timeout=WAIT_LIMIT, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_script_of_the_action(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "a b.jsonl").write_text('{"id": "x", "input": "hi", "expected": "hi"}\n')
    code, said = run_script(tmp_path, "'a b.jsonl'", "-n agent.py:answer --runs 2 --user 'two words'")
    assert code == 0, said
    assert (tmp_path / "output").read_text() == "exit-code=0\n"
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["report.ctrf.json", "report.html", "report.json", "report.xml"]
    assert '"user_id":"two words"' in (tmp_path / "out/report.json").read_text()


def test_the_exit_code_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "a.jsonl").write_text('{"id": "x", "input": "hi", "expected": "ho"}\n')
    code, _ = run_script(tmp_path, "a.jsonl", "-n agent.py:answer")
    assert code == 1
    assert (tmp_path / "output").read_text() == "exit-code=1\n"


def test_the_action_runs_with_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "test_suite: own\n"
        "agents: [{name: cat, type: cli, config: {command: [cat], protocol: text}}]\n"
        "tests: [{id: a, name: A, input: hi, expected: hi}]\n"
    )
    inputs = action()["inputs"]
    code, said = run_script(tmp_path, "own.yaml", inputs["args"]["default"])
    assert code == 0, said
    assert (tmp_path / "out/report.json").exists()


@pytest.mark.parametrize(("tests", "args"), [("a.jsonl", "--runs 2 'x"), ("'a.jsonl", "")])
def test_an_unclosed_quote_is_an_error_not_a_run_without_flags(tmp_path: Path, tests: str, args: str) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "atp.toml").write_text('name = "agent.py:answer"\n')
    (tmp_path / "a.jsonl").write_text('{"id": "x", "input": "hi", "expected": "hi"}\n')
    code, said = run_script(tmp_path, tests, args)
    assert code == 2
    assert f"::error::{'args' if args else 'tests'}: No closing quotation" in said
    assert "Traceback" not in said
    assert not (tmp_path / ".atp").exists()
    assert (tmp_path / "output").read_text() == "exit-code=2\n"


def test_inputs_give_the_shell_no_orders(tmp_path: Path) -> None:
    code, _ = run_script(tmp_path, "a.jsonl", "-n 'x' $(touch owned) `touch owned` ; touch owned")
    assert code == 2
    assert not (tmp_path / "owned").exists()


class Comments(BaseHTTPRequestHandler):
    """The part of GitHub's API that has the comments of a pull request."""

    comments: ClassVar[list[dict[str, Any]]]
    refused: ClassVar[int | None]

    def do_GET(self) -> None:
        page = int(parse_qs(urlsplit(self.path).query)["page"][0])
        self._answer(self.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        assert self.path == "/repos/o/r/issues/7/comments"
        if self.refused:
            self.send_error(self.refused)
            return
        self.comments.append({"id": len(self.comments), "body": self._body()})
        self._answer({"html_url": "the comment"})

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/o/r/issues/comments/"))
        if self.comments[number].get("others"):
            self.send_error(403)
            return
        self.comments[number]["body"] = self._body()
        self._answer({"html_url": "the comment"})

    def _body(self) -> str:
        assert self.headers["Authorization"] == "Bearer t0ken"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        assert isinstance(body, str)
        return body

    def _answer(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def comments() -> Iterator[tuple[str, type[Comments]]]:
    class Here(Comments):
        comments: ClassVar[list[dict[str, Any]]] = []
        refused: ClassVar[int | None] = None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Here
    server.shutdown()
    thread.join()
    server.server_close()


def comment(folder: Path, url: str) -> tuple[int, str]:
    inputs = {"TOKEN": "t0ken", "REPORTS": "out", "BASELINE": "main", "FOLDER": ".", "PULL_REQUEST": "7"}
    about = {"GITHUB_API_URL": url, "GITHUB_REPOSITORY": "o/r"}
    return run_step("Comment on the pull request", folder, {**inputs, **about})


def test_the_comparison_is_posted_once_and_updated_then(tmp_path: Path, comments: tuple[str, type[Comments]]) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "atp.toml").write_text("")
    (tmp_path / "a.jsonl").write_text('{"id": "x", "input": "hi", "expected": "hi"}\n')
    args = "-n agent.py:answer --runs 5"
    code, said = run_script(tmp_path, "a.jsonl", args, "main")
    assert code == 2
    assert "there is no baseline `main`" in said
    url, api = comments
    assert "there is no comparison to post" in comment(tmp_path, url)[1]
    assert run_script(tmp_path, "a.jsonl", args)[0] == 0
    saved = subprocess.run(
        [Path(sys.executable).parent / "atp", "baseline", "save", "main"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert saved.returncode == 0
    code, said = run_script(tmp_path, "a.jsonl", args, "main")
    assert (code, "Compared with the baseline" in said) == (0, True)
    api.comments += [{"id": number, "body": None} for number in range(120)]
    api.comments[5] = {"id": 5, "body": "<!-- atp comparison: . out main -->", "others": True}
    assert comment(tmp_path, url) == (0, "the comment\n")
    assert len(api.comments) == 121
    assert api.comments[-1]["body"].startswith("<!-- atp comparison: . out main -->\n## ✅ Comparison: the same\n")
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return 'no'\n")
    assert run_script(tmp_path, "a.jsonl", args, "main")[0] == 1
    assert comment(tmp_path, url) == (0, "the comment\n")
    assert len(api.comments) == 121
    assert "Comparison: worse\n" in api.comments[-1]["body"]
    assert run_script(tmp_path, "a.jsonl", f"{args} --baseline-margin 0.1", "main")[0] == 1
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["comparison"]["margin"] == 10
    assert "10 points" in (tmp_path / "out" / "comparison.md").read_text("utf-8")
    api.comments.clear()
    api.refused = 403
    code, said = comment(tmp_path, url)
    assert (code, said.startswith("::warning::the comparison could not be posted: ")) == (0, True)
    assert run_script(tmp_path, "nowhere.jsonl", args, "main")[0] == 2
    assert "there is no comparison to post" in comment(tmp_path, url)[1]


def test_a_run_that_is_resumed_writes_every_report_again() -> None:
    (script,) = re.findall(r"^#!/bin/sh\n.*?^```$", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.M | re.S)
    first, again = [one for one in script.replace("\\\n", "").splitlines() if one.strip().startswith("atp test ")]
    assert "--resume" in again
    assert re.findall(r"-o \S+", again) == re.findall(r"-o \S+", first) != []


def test_every_input_of_the_action_is_used_and_documented() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    for name in action()["inputs"]:
        assert f"inputs.{name}" in text, name
        assert f"| `{name}` |" in page, name


def test_the_set_ups_are_yaml_and_name_known_inputs() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(one) for one in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    assert len(blocks) == 4
    steps = [one for block in blocks for job in block.get("jobs", {}).values() for one in job["steps"]]
    ours = [one["with"].keys() for one in steps if "/atp@" in one.get("uses", "")]
    required = {name for name, about in action()["inputs"].items() if about.get("required")}
    assert len(ours) == 2
    assert all(required <= given <= action()["inputs"].keys() for given in ours)
