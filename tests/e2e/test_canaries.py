"""No secret in any form in any output: canaries enter everywhere, are told in every way, and are looked for everywhere.

The search for leaks knows nothing of how ATP masks: it decodes what it finds in every way it can, and looks for any six
characters of the secret.
"""

import asyncio
import base64
import gzip
import html
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

import pytest
from tests.base.test_secrets import FORMS
from tests.engine.support.judge import judge
from tests.models.mock_server import KEY, Heard, MockModels, calls

from atp.engine.prepare.dry_run import DryRun
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.sources import Input
from atp.report.choose import choose, reads

SECRETS = {
    "plain": "zQ7xCANARYw9KpL2mN4v",
    "quoted": 'zQ7"xCANARY\\w9/KpL=2mN+4v',
    "words": "zQ7x 'CANARY' wörd & KpL2m",
    "lines": "-----BEGIN KEY-----\nzQ7xCANARYw9KpL2mN4vB+\nyT5rCANARYe3WqJ8sD6f/A\n-----END KEY-----\n",
}
SAMPLE_FORMS = ("as it is", "JSON", "repr beside both quotes", "URL, all of it", "base64 between 1 and more")
REPORTS = ("r.json", "r.jsonl", "r.md", "r.html", "r.xml", "r.csv", "r.ctrf.json")

AGENT = """
import json, pathlib
FORMS = json.loads((pathlib.Path(__file__).parent.parent / "forms.json").read_text())


async def answer(prompt, workspace):
    way, _, form = prompt.partition(": ")
    text = FORMS[form]
    # What goes on in the line after one that is longer than 2,000 characters is not found: docs/security.md says so.
    fill = 0 if form == "base64 in lines" else 1980
    if way == "raises":
        raise ValueError("x" * fill + text)
    if way == "prints":
        print("x" * fill + "xxxxx" + text)
        print(*text.splitlines(), sep="\\n")
        for character in text:
            print(character, end="")
        print()
    if way == "writes":
        (pathlib.Path(workspace) / "made.txt").write_text(text)
    if way == "calls":
        call = {"name": "look", "arguments": {"for": text, text: 1}, "result": {"found": [text]}}
        yield {"output": text, "tool_calls": [call, {"name": text, "error": "x" * 1990 + text}]}
    elif way == "measures":
        yield {"output": "x", "metrics": {text: 1.5}}  # the name of a metric, or the error about it
    elif way == "streams":
        for piece in range(0, len(text), 3):
            yield {"event_type": "message", "payload": {"role": "assistant", "content": text[piece : piece + 3]}}
        yield {"event_type": "error", "payload": {"message": text}}
        yield {"output": text}
    elif way == "is cut":
        yield {"output": {"a": "x" * 45 + text, "b": ["y" * 250 + text], text: "z" * 290 + text}}
    else:
        yield {"output": text}
"""
DESK = "You are a desk of canaries."
WAYS = ("says", "is cut", "raises", "prints", "writes", "calls", "measures", "streams")
HTTP_WAYS = ("status 500", "status 404", "redirects", "fails", "is no JSON", "breaks the protocol", "sends events")
Enter = Callable[[Path, str, pytest.MonkeyPatch, dict[str, Any]], None]


def by_variable(_: Path, secret: str, monkeypatch: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    monkeypatch.setenv("PLAIN_NAME", secret)
    suite["agents"][0]["config"]["api_key"] = "${PLAIN_NAME}"
    suite["tests"][0]["expectations"] = ["it never says ${PLAIN_NAME}"]
    suite["tests"][0]["assertions"] = [{"type": "equals", "value": "x ${PLAIN_NAME}"}]


def by_environment(_: Path, secret: str, monkeypatch: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    monkeypatch.setenv("NOT_NAMED_API_KEY", secret)


def by_env_file(folder: Path, secret: str, _: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    written = secret.replace("\n", "\\n")
    (folder / ".env").write_text(f"NOT_NAMED_TOKEN={f'{chr(34)}{written}{chr(34)}' if written != secret else secret}\n")


def by_header(_: Path, secret: str, __: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    suite["agents"][1]["config"]["headers"] = {"X-Api-Key": secret}


def by_authorization(_: Path, secret: str, __: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    suite["agents"][1]["config"]["headers"] = {"authorization": f"Bearer {secret}"}


def by_setting(_: Path, secret: str, __: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    suite["agents"][0]["config"]["nested"] = {"password": secret}


def by_agents_environment(_: Path, secret: str, __: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    config = {"command": "true", "environment": {"LIT_TOKEN": secret}}
    suite["agents"].append({"name": "never", "type": "cli", "config": config})


def by_address(_: Path, secret: str, __: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    config = {"endpoint": f"http://me:{quote(secret, safe='')}@127.0.0.1:9/"}
    suite["agents"].append({"name": "never", "type": "http", "config": config})


def by_connector(folder: Path, secret: str, _: pytest.MonkeyPatch, suite: dict[str, Any]) -> None:
    table = {"type": "openai", "model": "x", "host": "http://127.0.0.1:9/v1", "headers": {"X-Tenant": secret}}
    (folder / "connectors").mkdir()
    (folder / "connectors/own.conn.json").write_text(json.dumps(table))


ENTRIES: dict[str, Enter] = {
    "a variable that the suite uses": by_variable,
    "the environment": by_environment,
    "the file .env": by_env_file,
    "a header": by_header,
    "the header Authorization": by_authorization,
    "a setting": by_setting,
    "an agent's environment": by_agents_environment,
    "an address": by_address,
    "a connector": by_connector,
}
NOT_IN_LINES = {"a header", "the header Authorization", "a connector"}
"""Headers can't have line breaks."""


def matrix() -> Iterator[Any]:
    samples = {("the environment", "quoted"), ("a variable that the suite uses", "words"), ("a connector", "plain")}
    for entry in ENTRIES:
        for name in SECRETS:
            if name == "lines" and entry in NOT_IN_LINES:
                continue
            if (entry, name) in samples:
                yield pytest.param(entry, name, SAMPLE_FORMS, id=f"{name} in {entry}")
            yield pytest.param(entry, name, tuple(FORMS), id=f"{name} in {entry}, all forms", marks=pytest.mark.fuzz)


@dataclass
class Outputs:
    """Everything that a run has shown or written, by name."""

    texts: dict[str, str] = field(default_factory=dict)

    def add_files(self, folder: Path) -> None:
        names = []
        for path in folder.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                data = path.read_bytes()
                data = gzip.decompress(data) if path.suffix == ".gz" else data
                names.append(str(path.relative_to(folder.parent)))
                self.texts[names[-1]] = data.decode(errors="replace")
        self.texts[f"names in {folder.name}"] = "\n".join(names)

    def leaks(self, secret: str) -> list[str]:
        lines = [line for line in secret.splitlines() if not line.startswith("-----")]
        pieces = {line[place : place + 6] for line in lines for place in range(len(line) - 5)}
        pieces = {one for one in pieces if sum(map(str.isalnum, one)) >= 4}
        assert pieces
        return [
            f"{name}: {piece!r} in …{reading[max(0, reading.index(piece) - 60) : reading.index(piece) + 60]!r}…"
            for name, text in self.texts.items()
            for reading in readings(text)
            for piece in sorted(pieces)
            if piece in reading
        ]


def readings(text: str) -> Iterator[str]:
    """A text in all the ways it could be read."""
    for packed in re.findall(r'<script type="application/octet-stream"[^>]*>([^<]*)</script>', text):
        yield from readings(zlib.decompress(base64.b64decode(packed)).decode())
    yield text
    yield re.sub(r"\\+[rn]|[\r\n]", "", text)
    yield text.replace('""', '"').replace("'\"'\"'", "'")
    yield html.unescape(html.unescape(unquote(text)))
    yield unquote(unquote(text))
    for run in set(re.findall(r"[0-9a-f]{12,}|[0-9A-F]{12,}", text)):
        yield bytes.fromhex(run[: len(run) // 2 * 2]).decode(errors="replace")
    yield re.sub(r"(?:\\+x[0-9a-f]{2})+", _from_x, text)
    yield "".join(re.findall(r'"content": ?"((?:[^"\\\\]|\\\\.)*)"', text))  # what was told piece by piece
    yield html.unescape(text)
    yield unquote(text)
    yield unquote_plus(text)
    unescaped = text
    for _ in range(3):
        unescaped = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), unescaped)
        unescaped = re.sub(r"\\([\"'\\/])", r"\1", unescaped.replace("\\n", "\n"))
        yield unescaped
        yield unquote(unescaped)
    decoded = "\n".join(_from_base64(unquote(unescaped).replace("\n", "")))
    yield from (decoded, unquote(decoded), re.sub(r"\\u00(..)", lambda found: chr(int(found[1], 16)), decoded))
    yield "\n".join(_from_base64(unquote(unescaped)))


def _from_x(found: "re.Match[str]") -> str:
    return bytes.fromhex(re.sub(r"\\+x", "", found[0])).decode(errors="replace")


def _from_base64(text: str) -> Iterator[str]:
    for run in set(re.findall(r"[A-Za-z0-9+/_-]{12,}", text)):
        if len(run) > 5000 or len(set(run)) < 6:
            continue  # an HTML report's data, which is unpacked elsewhere; fill
        for start in range(4):
            whole = run[start : start + (len(run) - start) // 4 * 4].replace("-", "+").replace("_", "/")
            raw = base64.b64decode(whole)
            yield raw.decode("latin-1")
            yield raw.decode(errors="replace")


def handler(forms: dict[str, str]) -> type[BaseHTTPRequestHandler]:
    """A server that tells the secret in ways of HTTP."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            way, _, form = request["task"]["description"].partition(": ")
            text = forms[form]
            response = {"task_id": request["task_id"], "status": "completed", "output": text}
            match way:
                case "status 500":
                    self.answer(500, "x" * 190 + text)
                case "status 404":
                    self.answer(404, json.dumps({"error": {"message": "y" * 490 + text}}))
                case "redirects":
                    place = text if text.isascii() and text.isprintable() else quote(text)
                    self.answer(307, "", Location=f"http://there/{'z' * 170}{place}")
                case "fails":
                    self.answer(200, json.dumps(response | {"status": "failed", "error": {"why": "x" * 1980 + text}}))
                case "is no JSON":
                    self.answer(200, "w" * 1990 + text)
                case "breaks the protocol":
                    self.answer(200, json.dumps(response | {"status": "v" * 90 + text, text: 1}))
                case _:
                    event = {"event_type": "progress", "payload": {"message": text}}
                    reasons = {"event_type": "reasoning", "payload": {"thought": text, text: 1}, "beside": text}
                    sent = (event, reasons, response | {"beside": "u" * 1990 + text})
                    stream = "".join(f"data: {json.dumps(one)}\n\n" for one in sent)
                    self.answer(200, stream, **{"Content-Type": "text/event-stream"})

        def answer(self, status: int, body: str, **headers: str) -> None:
            raw = body.encode()
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            for begin in range(0, len(raw), 7):
                self.wfile.write(raw[begin : begin + 7])

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Handler


def suite(forms: tuple[str, ...], url: str) -> dict[str, Any]:
    def test(number: int, agent: str, way: str, form: str) -> dict[str, Any]:
        name = f"{way}: {form}"
        case = {"id": f"{agent}-{number}", "name": name, "input": name, "agents": [agent]}
        return case | {"assertions": [{"type": "equals", "value": "y"}], "expectations": ["it is kind"]}

    told = [("own", way, form) for way in WAYS for form in forms]
    told += [("server", way, form) for way in HTTP_WAYS for form in forms]
    tests = [test(number, *one) for number, one in enumerate(told)]
    agents = [
        {"name": "own", "type": "custom", "config": {"entry": "agent.py:answer"}},
        {"name": "server", "type": "http", "config": {"endpoint": url, "retry": 0}},
    ]
    return {"test_suite": "canaries", "agents": agents, "tests": tests}


@dataclass(frozen=True)
class Planted:
    """A project in which an agent and a server tell a secret."""

    folder: Path
    asked: list[Heard]
    """What judges were asked."""
    env: dict[str, str]
    """What takes roles to the model that judges."""


@contextmanager
def planted(
    entry: str,
    name: str,
    forms: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: Callable[[dict[str, Any], str], None] = lambda _suite, _secret: None,
) -> Iterator[Planted]:
    """Write a project that a secret enters, and start the servers that it needs. `more` changes the suite."""
    secret, folder = SECRETS[name], tmp_path / "project"
    folder.mkdir()
    told = {form: FORMS[form](secret) for form in forms}
    (tmp_path / "forms.json").write_text(json.dumps(told))
    (folder / "agent.py").write_text(AGENT)
    (folder / "desk.md").write_text(f"{DESK}\n")
    monkeypatch.chdir(folder)
    asked: list[Heard] = []

    def answer(heard: Heard) -> Any:
        if heard.system == DESK:  # the second request has what the model said before
            said = next(message["content"] for message in heard.messages if message["role"] == "user")
            text = told[str(said).partition(": ")[2]]
            return text if heard.tool_results else calls(("look", {"for": text, text: 1}), text=text)
        asked.append(heard)
        return judge(lambda _asked, record: "***" in record)(heard)

    with ThreadingHTTPServer(("127.0.0.1", 0), handler(told)) as server, MockModels(answer) as models:
        Thread(target=server.serve_forever, daemon=True).start()
        made = suite(forms, f"http://127.0.0.1:{server.server_port}/")
        more(made, secret)
        ENTRIES[entry](folder, secret, monkeypatch, made)
        (folder / "suite.yaml").write_text(json.dumps(made))
        (folder / "out").mkdir()
        yield Planted(folder, asked, models.env)
        server.shutdown()


@pytest.mark.parametrize(("entry", "name", "forms"), list(matrix()))
def test_no_secret_is_in_any_output(
    entry: str,
    name: str,
    forms: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs = Outputs()
    if entry == "a variable that the suite uses":
        forms = ("as it is", *forms)

    def add_prompt_agent(made: dict[str, Any], _: str) -> None:
        """One whose model tells the secret, in a call of a tool and in its answer."""
        config = {"path": "desk.md", "connector": "openai.any"}
        made["agents"].append({"name": "prompted", "type": "prompt", "config": config})
        for number, form in enumerate(forms):
            case = {"id": f"model-{number}", "name": form, "input": f"model: {form}", "agents": ["prompted"]}
            made["tests"].append(case | {"assertions": [{"type": "equals", "value": "y"}]})

    with planted(entry, name, forms, tmp_path, monkeypatch, add_prompt_agent) as project:
        for variable, value in {**project.env, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "out/step.md"}.items():
            monkeypatch.setenv(variable, value)
        flags = {"role_connector": "openai.any", "record": "out/cassette", "verbose": True, "timeout": "60s"}
        flags["output"] = [f"out/{report}" for report in REPORTS]
        run = prepare(Input((), ("suite.yaml",)), flags)
        outputs.texts["dry run"] = "\n".join([*DryRun(run).lines(), *map(json.dumps, DryRun(run).events())])
        listeners = choose(run.options, reads(run.given_input, [unit.source for unit in run.plan.units]), run.secrets)
        code = asyncio.run(run.run(listeners))
    assert code == 1, run.problems
    shown = capsys.readouterr()
    outputs.texts |= {"stdout": shown.out, "stderr": shown.err, "problems": "\n".join(run.problems)}
    outputs.texts["judge"] = json.dumps([heard.body for heard in project.asked])
    for part in ("out", ".atp"):
        outputs.add_files(project.folder / part)
    assert {"stdout", "judge", "journal.jsonl", "judge.jsonl", "000001.jsonl", "step.md", *REPORTS} <= {
        Path(one).name for one in outputs.texts
    }
    journal = next(text for name, text in outputs.texts.items() if name.endswith("journal.jsonl"))
    assert journal.count("***") > len(forms)
    noted = [one for line in journal.splitlines() for one in json.loads(line).get("result", {}).get("model_calls", [])]
    assert {one.get("role", "agent") for one in noted} == {"agent", "judge"}
    assert "***" in json.dumps([one.get("request") for one in noted])
    assert "***" in json.dumps([one.get("answer") for one in noted])
    assert not any(KEY in text for name, text in outputs.texts.items() if name != "judge")
    assert outputs.leaks(SECRETS[name])[:5] == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SECRETS)
def test_the_search_finds_what_is_not_masked(name: str, form: str) -> None:
    told = FORMS[form](SECRETS[name])
    assert Outputs({"a": f"said {told} there"}).leaks(SECRETS[name])
    assert Outputs({"a": json.dumps({"said": f"x{told}"})}).leaks(SECRETS[name])
