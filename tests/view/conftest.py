"""A view of a project's runs, asked as a browser asks it: over HTTP."""

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.engine.support.project import Project
from tests.waiting import WAIT_LIMIT

AGENT = """
import pathlib, time

def answer(prompt):
    word = prompt.split()[-1]
    if word.startswith("wait-"):
        while not pathlib.Path(word).exists():
            time.sleep(0.01)
    return f"You said: {prompt}"
"""


@dataclass(frozen=True)
class Answer:
    """An answer of the server."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class View:
    """`atp view` in a process of its own."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self.process = project.start("view", *arguments)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.token = parse_qs(urlsplit(self.address).query).get("token", [""])[0]
        self.port = urlsplit(self.address).port or 0

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """A request with these headers and no others than `Host`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_LIMIT)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON of the API, with the token in the header."""
        answer = self.ask(path, Authorization=f"Bearer {self.token}")
        assert answer.status == 200, answer.body
        return answer.json

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """The server-sent events, as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_LIMIT)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            assert answer.status == 200
            kind = ""
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
        finally:
            connection.close()


@pytest.fixture
def slow_suite(project: Project) -> str:
    """A suite of three cases: two end at once, of which one fails; the third waits for a file named `wait-1`."""
    project.write("agent.py", AGENT)
    check = [{"type": "contains", "value": "You said"}]
    return project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:answer"}}],
        [
            {"id": "good", "task": {"description": "hello"}, "assertions": check},
            {"id": "bad", "task": {"description": "bye"}, "assertions": [{"type": "contains", "value": "never said"}]},
            {"id": "slow", "task": {"description": "please wait-1"}, "assertions": check},
        ],
    )


@pytest.fixture
def view(project: Project) -> Callable[..., View]:
    """Starts `atp view` in the project; it is ended with the project."""

    def start(*arguments: str) -> View:
        return View(project, *arguments)

    return start
