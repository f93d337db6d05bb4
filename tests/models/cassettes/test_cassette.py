"""Cassettes and the judge's cache: what is recorded is played back, and nothing else is."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.waiting import WAIT_LIMIT

from atp.base.secrets import Secrets
from atp.models.cassettes.cassette import Cassette, begin_trial
from atp.models.cassettes.parts import differences, key_of
from atp.models.cassettes.recorded import RecordedModel, ReplayedModel
from atp.models.cassettes.store import Cache
from atp.models.model import CassetteError, CassetteMiss, Model, ModelAnswer, ModelError, ModelRequest, Tool, ToolUse
from atp.suite.result import Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def in_four_processes(function: Callable[[str, int], None], folder: Path) -> None:
    """Call a function of this module in four processes at once.

    They load it by its path: on that of a process in which other tests ran, `tests` may be a module of theirs.
    """
    code = "import runpy, sys; runpy.run_path(sys.argv[1])[sys.argv[2]](sys.argv[3], int(sys.argv[4]))"
    call = [sys.executable, "-c", code, __file__, function.__name__, str(folder)]
    started = [subprocess.Popen([*call, str(own)]) for own in range(4)]
    assert [one.wait(WAIT_LIMIT) for one in started] == [0, 0, 0, 0]


def run(scene: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(scene)


class Caller:
    """Answers with what it is given, one after the other, and counts."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def __call__(self) -> Any:
        self.calls += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def never() -> Any:
    raise AssertionError("a replay calls nobody")


def parts(text: str = "Hello", **more: Any) -> dict[str, Any]:
    return {
        "model": "m-1",
        "settings": {"temperature": 0.7},
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}],
        "run": 1,
    } | more


def record(folder: Path, *asked: tuple[dict[str, Any], Any], secrets: tuple[str, ...] = ()) -> None:
    async def scene() -> None:
        begin_trial()
        for what, answer in asked:
            await cassette.through("model", what, Caller(answer))

    cassette = Cassette(folder, "record", secrets)
    run(scene())
    cassette.close()


def replay(folder: Path, *asked: dict[str, Any], secrets: tuple[str, ...] = ()) -> list[Any]:
    async def scene() -> list[Any]:
        begin_trial()
        return [await cassette.through("model", what, never) for what in asked]

    cassette = Cassette(folder, "replay", secrets)
    try:
        found: list[Any] = run(scene())
        return found
    finally:
        cassette.close()


def missed(folder: Path, *asked: dict[str, Any]) -> str:
    with pytest.raises(CassetteMiss) as caught:
        replay(folder, *asked)
    return str(caught.value)


def lines(folder: Path, boundary: str = "model") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{boundary}.jsonl").read_text().splitlines()]


def test_recorded_answers_are_replayed(tmp_path: Path) -> None:
    record(tmp_path / "new" / "folder", (parts(), {"text": "Hi"}))
    assert replay(tmp_path / "new" / "folder", parts()) == [{"text": "Hi"}]
    (line,) = lines(tmp_path / "new" / "folder")
    assert line == {"key": line["key"], "boundary": "model", "parts": parts(), "repeat": 1, "answer": {"text": "Hi"}}


def test_the_order_of_keys_and_whole_floats_do_not_matter(tmp_path: Path) -> None:
    record(tmp_path, ({"a": 1, "b": {"c": 0, "d": 2}}, "yes"))
    assert replay(tmp_path, {"b": {"d": 2.0, "c": 0.0}, "a": 1.0}) == ["yes"]
    missed(tmp_path, {"a": True, "b": {"c": 0, "d": 2}})


@settings(max_examples=60, deadline=None)
@given(asked=st.dictionaries(st.text(), JSON), answer=JSON)
def test_any_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, asked: Any, answer: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    record(folder, (asked, answer))
    assert replay(folder, asked) == [answer]


@given(one=JSON, other=JSON)
def test_there_are_differences_exactly_where_keys_differ(one: Any, other: Any) -> None:
    assert bool(list(differences(one, other))) == (key_of(one) != key_of(other))
    assert not list(differences(one, one))


def test_half_a_surrogate_pair_and_nan_can_be_recorded(tmp_path: Path) -> None:
    record(tmp_path, (parts("\ud83d"), ["\ud83d", float("nan")]))
    assert replay(tmp_path, parts("\ud83d")) == [["?", None]]


def test_repeats_in_one_trial_are_told_apart(tmp_path: Path) -> None:
    record(tmp_path, (parts(), "one"), (parts("other"), "other"), (parts(), "two"))
    assert replay(tmp_path, parts(), parts(), parts("other")) == ["one", "two", "other"]
    assert "asks the same 3 times, and 2 of the answers are recorded" in missed(tmp_path, parts(), parts(), parts())


def test_each_trial_counts_for_itself_also_at_the_same_time(tmp_path: Path) -> None:
    async def trial(cassette: Cassette, call: Callable[[], Awaitable[Any]]) -> list[Any]:
        begin_trial()
        both = await asyncio.gather(*(cassette.through("judge", parts(), call) for _ in range(2)))
        return [*both, await cassette.through("judge", parts(), call)]

    async def scene(cassette: Cassette, call: Callable[[], Awaitable[Any]]) -> list[list[Any]]:
        return list(await asyncio.gather(*(trial(cassette, call) for _ in range(20))))

    caller = Caller(1, 2, 3)
    cassette = Cassette(tmp_path, "record")
    assert run(scene(cassette, caller)) == [[1, 2, 3]] * 20
    cassette.close()
    assert caller.calls == 3
    assert run(scene(Cassette(tmp_path, "replay"), never)) == [[1, 2, 3]] * 20


def test_a_new_recording_replaces_the_old_and_keeps_what_was_not_asked(tmp_path: Path) -> None:
    record(tmp_path, (parts("a"), "old a"), (parts("b"), "old b"))
    record(tmp_path, (parts("b"), "new b"), (parts("c"), "new c"))
    assert replay(tmp_path, parts("a"), parts("b"), parts("c")) == ["old a", "new b", "new c"]
    assert len(lines(tmp_path)) == 3


def test_the_same_answers_give_the_same_file_in_any_order(tmp_path: Path) -> None:
    asked = [(parts(str(number)), number) for number in range(30)]
    record(tmp_path / "one", *asked)
    random.Random(1).shuffle(asked)
    record(tmp_path / "two", *asked[:10])
    record(tmp_path / "two", *asked)
    assert (tmp_path / "one" / "model.jsonl").read_bytes() == (tmp_path / "two" / "model.jsonl").read_bytes()
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["model.jsonl"]


def test_a_failed_call_is_not_recorded_and_the_next_takes_its_number(tmp_path: Path) -> None:
    async def scene() -> None:
        begin_trial()
        with pytest.raises(ModelError):
            await cassette.through("model", parts(), caller)
        assert await cassette.through("model", parts(), caller) == "fine"

    cassette = Cassette(tmp_path, "record")
    caller = Caller(ModelError("busy"), "fine")
    run(scene())
    cassette.close()
    assert replay(tmp_path, parts()) == ["fine"]


def test_who_waits_for_a_call_that_fails_or_is_cancelled_calls_itself(tmp_path: Path) -> None:
    async def trial(call: Callable[[], Awaitable[Any]]) -> Any:
        begin_trial()
        return await cassette.through("model", parts(), call)

    async def scene() -> None:
        held = asyncio.Event()

        async def hold() -> Any:
            held.set()
            await asyncio.Event().wait()

        stuck = asyncio.create_task(trial(hold))
        await held.wait()
        others = [asyncio.create_task(trial(caller)) for _ in range(3)]
        await asyncio.sleep(0)
        stuck.cancel()
        found = await asyncio.gather(*others, return_exceptions=True)
        assert [str(one) for one in found] == ["broken", "fine", "fine"]

    cassette = Cassette(tmp_path, "record")
    caller = Caller(ModelError("broken"), "fine")
    run(scene())
    assert caller.calls == 2
    cassette.close()


def test_a_miss_says_what_differs_from_the_nearest(tmp_path: Path) -> None:
    long = "word " * 400
    record(tmp_path, (parts("What is the capital of France?"), 1), (parts(long), 2), (parts("x", run=2), 3))
    message = missed(tmp_path, parts("What is the capital of Spain?"))
    assert "at the boundary `model`" in message
    assert "`messages[1].content` differs: recorded '…t is the capital of France?', now '…t is the" in message
    assert f"record again (--record {tmp_path})" in message
    assert "`messages[1].content` differs: recorded '…" in missed(tmp_path, parts(long + "!"))
    cooler = parts(long, settings={"temperature": 0.2})
    assert "`settings.temperature`: 0.7 recorded, 0.2 now" in missed(tmp_path, cooler)
    assert '`tools`: nothing recorded, ["a"] now' in missed(tmp_path, parts("x", run=2, tools=["a"]))
    assert "`run`: 2 recorded, 3 now" in missed(tmp_path, parts("x", run=3))
    assert "`messages` has 1 items, 2 recorded" in missed(tmp_path, parts(messages=parts()["messages"][:1]))


def test_a_miss_at_a_boundary_without_a_recording(tmp_path: Path) -> None:
    async def scene() -> None:
        await Cassette(tmp_path, "replay").through("tool", {"name": "search"}, never)

    record(tmp_path, (parts(), 1))
    with pytest.raises(CassetteMiss, match=r"boundary `tool` .* there is no recording of it at all"):
        run(scene())


def test_secrets_are_in_no_file_and_replay_needs_none(tmp_path: Path) -> None:
    async def scene() -> None:
        for _ in range(2):  # the second trial is served from the recording, and gets what the first got
            begin_trial()
            found = await cassette.through("tool", asked, Caller({"token": "secret-2 is secret-1", "pin": 12345678}))
            assert found == {"token": "secret-2 is secret-1", "pin": 12345678}

    asked = {"name": "login", "arguments": {"password": "secret-1", "secret-1": ["x secret-2"]}}
    secrets = Secrets(["secret-1"])
    cassette = Cassette(tmp_path, "record", secrets)
    secrets.add(["secret-2", "12345678"])
    run(scene())
    cassette.close()
    text = (tmp_path / "tool.jsonl").read_text()
    assert "secret-" not in text
    assert "12345678" not in text

    async def again() -> Any:
        return await Cassette(tmp_path, "replay").through(
            "tool", json.loads(json.dumps(asked).replace("secret-1", "***").replace("secret-2", "***")), never
        )

    assert run(again()) == {"token": "*** is ***", "pin": "***"}
    assert replay_tool(tmp_path, asked, ("secret-1", "secret-2")) == {"token": "*** is ***", "pin": "***"}


def replay_tool(folder: Path, asked: dict[str, Any], secrets: tuple[str, ...]) -> Any:
    async def scene() -> Any:
        return await Cassette(folder, "replay", secrets).through("tool", asked, never)

    return run(scene())


@pytest.mark.parametrize("kept", [0, 1, -1])
def test_a_torn_last_line_is_passed_over_and_cut_off(tmp_path: Path, kept: int) -> None:
    record(tmp_path, (parts("a"), "a"), (parts("b"), "b"))
    file = tmp_path / "model.jsonl"
    whole = file.read_bytes()
    first, second = whole.splitlines(keepends=True)
    torn = second[: len(second) // 2] if kept == 0 else second[:kept]
    file.write_bytes(first + torn)
    survivor = json.loads(first)["parts"]
    assert replay(tmp_path, survivor) == [json.loads(first)["answer"]]
    assert file.read_bytes() == first + torn  # a replay changes nothing
    record(tmp_path, (parts("c"), "c"))
    answers = {line["answer"] for line in lines(tmp_path)}
    # Without its line break only, the last line is still whole.
    assert answers == ({"a", "b", "c"} if kept == -1 else {json.loads(first)["answer"], "c"})


@pytest.mark.parametrize("mode", ["record", "replay"])
@pytest.mark.parametrize(
    "bad", ["<<<<<<< HEAD", '{"key": 1}', "", '{"key":"a","boundary":"model","parts":{},"repeat":1}']
)
def test_other_damage_is_an_error_with_its_place(tmp_path: Path, mode: Any, bad: str) -> None:
    record(tmp_path, (parts("a"), "a"), (parts("b"), "b"))
    first, second = (tmp_path / "model.jsonl").read_text().splitlines()
    (tmp_path / "model.jsonl").write_text(f"{first}\n{bad}\n{second}\n")
    with pytest.raises(CassetteError, match=r"model\.jsonl:2 is no entry of a cassette") as caught:
        Cassette(tmp_path, mode)
    assert caught.value.hint


def test_nothing_to_replay_and_nowhere_to_record(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="nothing is recorded in") as caught:
        Cassette(tmp_path / "none", "replay")
    assert caught.value.hint == "record it first, with --record"
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(CassetteError, match="can't be used"):
        Cassette(tmp_path / "file", "record")


def test_what_json_cannot_say_is_an_error(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path, "record")
    with pytest.raises(CassetteError, match="an answer at the boundary `tool` can't be recorded"):
        run(cassette.through("tool", {}, Caller(object())))


def record_many(folder: str, own: int) -> None:
    record(Path(folder), *((parts(f"{own}-{number}"), number) for number in range(100)))


def test_two_processes_may_record_at_once(tmp_path: Path) -> None:
    in_four_processes(record_many, tmp_path)
    assert len(lines(tmp_path)) == 400
    assert replay(tmp_path, parts("3-99")) == [99]


def test_what_was_recorded_survives_a_kill(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, sys, pathlib\n"
        "from atp.models.cassettes.cassette import Cassette\n"
        "async def answer(): return 1\n"
        "cassette = Cassette(pathlib.Path(sys.argv[1]), 'record')\n"
        "asyncio.run(cassette.through('model', {'a': 1}, answer))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert replay(tmp_path, {"a": 1}) == [1]


class Scripted(Model):
    """A model that says what it is told to, word by word."""

    connector = "c"
    name = "m-1"

    def __init__(self, *answers: ModelAnswer) -> None:
        self.settings = {"temperature": 0.5, "seed": 1}
        self.answers = list(answers)
        self.closed = False

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        answer = self.answers.pop(0)
        if request.on_text:
            for word in answer.text.split():
                request.on_text(word)
        return answer

    async def close(self) -> None:
        self.closed = True


ASK = ModelRequest(
    messages=[{"role": "user", "content": "Hi"}],
    tools=[Tool(name="search")],
    schema={"type": "object"},
    settings={"temperature": 0.1},
    run=2,
)
ANSWER = ModelAnswer(
    text="Hello there",
    data={"b": 1, "a": [1.0, None]},
    tool_uses=[ToolUse(id="1", name="search", arguments={"q": "x"})],
    usage=Usage(input_tokens=3, cost_usd=0.5),
    finish="tool_calls",
    model="m-1-2024",
)


def test_a_model_is_recorded_and_replayed_without_itself(tmp_path: Path) -> None:
    async def scene() -> None:
        cassette = Cassette(tmp_path, "record")
        inner = Scripted(ANSWER)
        model = RecordedModel(inner, cassette)
        heard: list[str] = []
        asked = replace(ASK, on_text=heard.append)
        assert await model.ask(asked) == ANSWER
        assert heard == ["Hello", "there"]
        await model.close()
        assert inner.closed
        cassette.close()

        replayed = Cassette(tmp_path, "replay")
        absent = ReplayedModel("other-connector", "m-1", {"temperature": 0.5, "seed": 1}, replayed)
        assert await absent.ask(asked) == ANSWER
        assert heard == ["Hello", "there", "Hello there"]
        changed = ReplayedModel("c", "m-1", {"temperature": 0.5, "seed": 2}, replayed)
        with pytest.raises(CassetteMiss, match=r"`settings\.seed`: 1 recorded, 2 now"):
            await changed.ask(asked)
        replayed.close()

    run(scene())
    (line,) = lines(tmp_path)
    assert list(line["answer"]["data"]) == ["b", "a"]
    assert line["parts"]["settings"] == {"temperature": 0.1, "seed": 1}
    assert line["parts"]["run"] == 2


def test_an_answer_spoilt_by_hand_is_an_error(tmp_path: Path) -> None:
    async def scene() -> None:
        cassette = Cassette(tmp_path, "record")
        await RecordedModel(Scripted(ANSWER), cassette).ask(ASK)
        cassette.close()
        file = tmp_path / "model.jsonl"
        good = file.read_text()
        for spoilt, why in (('"text":5', r"\$\.text"), ('"txt":"Hello there"', "answers have no field `txt`")):
            file.write_text(good.replace('"text":"Hello there"', spoilt))
            with pytest.raises(CassetteError, match=f"can't be read: .*{why}"):
                await ReplayedModel("c", "m-1", {"temperature": 0.5, "seed": 1}, Cassette(tmp_path, "replay")).ask(ASK)

    run(scene())


def test_the_cache_calls_once_across_runs_and_at_the_same_time(tmp_path: Path) -> None:
    async def scene(call: Caller) -> list[Any]:
        cache = Cache(tmp_path / "cache")
        try:
            return list(await asyncio.gather(*(cache.through({"q": 1}, call) for _ in range(5))))
        finally:
            cache.close()

    caller = Caller(ModelError("busy"), {"passed": True})

    async def failing() -> None:
        with pytest.raises(ModelError):
            await Cache(tmp_path / "cache").through({"q": 1}, caller)

    run(failing())
    assert run(scene(caller)) == [{"passed": True}] * 5
    assert run(scene(Caller())) == [{"passed": True}] * 5
    assert caller.calls == 2


def test_the_cache_sees_what_another_process_adds(tmp_path: Path) -> None:
    async def scene() -> None:
        one, other = Cache(tmp_path), Cache(tmp_path)
        assert await one.through({"q": 1}, Caller("a")) == "a"
        assert await other.through({"q": 1}, Caller()) == "a"
        assert await other.through({"q": 2}, Caller("b")) == "b"
        assert await one.through({"q": 2}, Caller()) == "b"
        one.close()
        other.close()

    run(scene())


def test_the_cache_is_bounded_and_drops_the_oldest(tmp_path: Path) -> None:
    async def scene() -> None:
        cache = Cache(tmp_path, most_bytes=20_000)
        for number in range(200):
            await cache.through({"q": number}, Caller("x" * 500))
            assert await cache.through({"q": number}, Caller()) == "x" * 500
        fresh = Cache(tmp_path, most_bytes=20_000)
        assert await fresh.through({"q": 199}, Caller()) == "x" * 500
        for dropped in (cache, fresh):
            assert await dropped.through({"q": 0}, Caller(f"again {id(dropped)}", 0)) != "x" * 500
        cache.close()
        fresh.close()

    run(scene())
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 24_000


def test_the_cache_passes_over_damage_and_shows_no_secret(tmp_path: Path) -> None:
    async def scene() -> None:
        cache = Cache(tmp_path, ["secret-1"])
        assert await cache.through({"q": 1}, Caller("a secret-1")) == "a secret-1"
        file = tmp_path / "000001.jsonl"
        assert b"secret" not in file.read_bytes()
        file.write_bytes(b"\0damaged\n" + file.read_bytes() + b'{"key":"to')
        fresh = Cache(tmp_path)
        assert await fresh.through({"q": 1}, Caller()) == "a ***"
        assert await fresh.through({"q": 2}, Caller("b")) == "b"
        assert await Cache(tmp_path).through({"q": 2}, Caller()) == "b"
        assert fresh.problem is None

    run(scene())


def test_a_cache_that_cannot_be_written_says_so_and_the_answer_is_there(tmp_path: Path) -> None:
    async def scene() -> None:
        cache = Cache(tmp_path / "file" / "cache")
        assert await cache.through({"q": 1}, Caller("a")) == "a"
        assert cache.problem is not None
        assert str(tmp_path / "file" / "cache") in cache.problem

    (tmp_path / "file").write_text("")
    run(scene())


def cache_many(folder: str, own: int) -> None:
    async def scene() -> None:
        cache = Cache(Path(folder), most_bytes=10_000_000)
        for number in range(200):
            await cache.through({"own": own, "number": number}, Caller([own, number, "x" * 2000]))
        cache.close()

    run(scene())


def test_several_processes_may_share_a_cache(tmp_path: Path) -> None:
    in_four_processes(cache_many, tmp_path)
    found = [json.loads(line) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert len(found) == 800
    assert len({line["key"] for line in found}) == 800


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    record(tmp_path / "cassette", (parts(), 1))
    record(tmp_path / "cassette", (parts(), 2), (parts("b"), 2))
    replay(tmp_path / "cassette", parts())
    cache_many(str(tmp_path / "cache"), 1)
    assert open_files() == before
