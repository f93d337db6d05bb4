"""The server of `atp view` as others meet it: its address, its signals, and whom it answers."""

import re
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.support.project import Project
from tests.waiting import until


def test_the_first_line_is_the_address(project: Project, view: Callable[..., Any]) -> None:
    started = view()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", started.address)
    started.process.send_signal(signal.SIGINT)
    ended = project.finish(started.process)
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_sigterm_ends_it_while_a_page_is_open(project: Project, view: Callable[..., Any]) -> None:
    started = view()
    events = started.events("/api/events")
    assert next(events) == ("runs", {"runs": []})
    started.process.terminate()
    assert list(events) == []
    assert project.finish(started.process).code == 0


def test_no_two_views_have_the_same_token(view: Callable[..., Any]) -> None:
    assert view().token != view().token


def test_a_port_can_be_chosen(project: Project, view: Callable[..., Any]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = view("--port", str(port))
    assert started.port == port
    ran = project.atp("view", "--port", str(port))
    assert ran.code == 2
    assert f"error[bad-port]: --port {port}: Address already in use" in ran.err


@pytest.mark.parametrize(("given", "words"), [("nothing-here", "there is no such run"), ("last", "there are no runs")])
def test_a_run_that_is_not_there(project: Project, given: str, words: str) -> None:
    ran = project.atp("view", given)
    assert ran.code == 2
    assert words in ran.err


def test_it_ends_when_nobody_looks(project: Project, view: Callable[..., Any]) -> None:
    started = view("--idle", "0.2")
    assert project.finish(started.process).code == 0


def test_it_stays_while_a_page_is_open(project: Project, view: Callable[..., Any]) -> None:
    started = view("--idle", "5")
    events = started.events("/api/events")
    next(events)
    events.close()
    assert project.finish(started.process).code == 0


PATHS = [
    "/",
    "/api/runs",
    "/api/events",
    "/api/runs/{run}",
    "/api/runs/{run}/events",
    "/api/runs/{run}/cases",
    "/api/runs/{run}/cases/0",
    "/api/runs/{run}/cases/0/trials/0",
    "/api/compare",
    "/api/history?case=a",
    "/api/search?q=a",
    "/nothing",
]


@pytest.fixture
def run(project: Project, slow_suite: str) -> str:
    """A finished run."""
    project.write("wait-1", "")
    project.test(slow_suite)
    return project.runs()[-1].name


def test_without_the_right_token_host_and_origin_nothing_is_answered(view: Callable[..., Any], run: str) -> None:
    started = view()
    right = {"Authorization": f"Bearer {started.token}"}
    own = f"127.0.0.1:{started.port}"
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {started.token}"},
        {"Authorization": f"Bearer {started.token}x"},
        {"Cookie": f"token={started.token}"},
        {**right, "Host": "evil.example"},
        {**right, "Host": f"evil.example:{started.port}"},
        {**right, "Host": f"127.0.0.1:{started.port + 1}"},
        {**right, "Host": "127.0.0.1"},
        {**right, "Host": ""},
        {**right, "Origin": "http://evil.example"},
        {**right, "Origin": "null"},
        {**right, "Origin": f"https://{own}"},
        {**right, "Origin": f"http://127.0.0.1:{started.port + 1}"},
        {**right, "Origin": f"http://localhost:{started.port}"},
    ]
    for path in PATHS:
        for headers in wrong:
            answer = started.ask(path.format(run=run), **headers)
            assert answer.status == 403, (path, headers)
            assert b"You said" not in answer.body
            assert answer.headers["Referrer-Policy"] == "no-referrer"
        for headers in (right, {**right, "Origin": f"http://{own}"}, {**right, "Host": f"localhost:{started.port}"}):
            if not path.endswith("/events"):
                assert started.ask(path.format(run=run), **headers).status != 403, (path, headers)


def test_the_token_may_be_in_the_address_of_what_is_read(view: Callable[..., Any], run: str) -> None:
    started = view()
    assert started.ask(f"/api/runs?token={started.token}").json["runs"][0]["id"] == run
    assert started.ask("/api/runs?token=wrong").status == 403
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert started.ask(f"/api/runs?token={started.token}", method).status == 403
        right = {"Authorization": f"Bearer {started.token}"}
        assert started.ask("/api/runs", method, **right).status == 405


def test_headers_keep_other_pages_out(view: Callable[..., Any], run: str) -> None:
    started = view()
    answers = [
        started.ask(f"/?token={started.token}"),
        started.ask(f"/api/runs/{run}?token={started.token}"),
        started.ask("/"),
        started.ask("/nothing", Authorization=f"Bearer {started.token}"),
    ]
    assert [answer.status for answer in answers] == [200, 200, 403, 404]
    for answer in answers:
        headers = answer.headers
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
    allowed = answers[0].headers["Content-Security-Policy"]
    assert "connect-src 'self'" in allowed
    assert "frame-ancestors 'none'" in allowed


def test_an_id_is_never_a_path(project: Project, view: Callable[..., Any], run: str) -> None:
    started = view()
    project.write("outside/journal.jsonl", (project.runs()[0] / "journal.jsonl").read_bytes())
    for name in ("..", "%2e%2e", "..%2f..%2foutside", "%2fetc", ".", run + "%00", "x" * 5000, "%ff"):
        answer = started.ask(f"/api/runs/{name}", Authorization=f"Bearer {started.token}")
        assert answer.status in (400, 404), name[:80]


def test_it_listens_on_loopback_only(view: Callable[..., Any]) -> None:
    started = view()
    with open("/proc/net/tcp", encoding="ascii") as file:
        listening = [line.split() for line in file if f":{started.port:04X} " in line]
    assert {one[1] for one in listening if one[3] == "0A"} == {f"0100007F:{started.port:04X}"}


def test_a_view_goes_on_when_its_page_is_gone(view: Callable[..., Any], run: str) -> None:
    started = view()
    for _ in range(3):
        events = started.events(f"/api/runs/{run}/events")
        assert next(events)[0] == "run"
        events.close()
    until(lambda: started.ask(f"/api/runs?token={started.token}").status == 200)
