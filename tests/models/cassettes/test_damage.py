"""A damaged cassette is replayed or refused by name, and a damaged line of the judge's cache is asked for again."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, Literal

from hypothesis import example, given, settings
from tests.damage import damaged_bytes

from atp.models.cassettes.cassette import Cassette, begin_trial
from atp.models.cassettes.parts import key_of, line_of, plain
from atp.models.cassettes.store import Cache
from atp.models.model import CassetteError, CassetteMiss

ASKED = [{"model": "m", "messages": [{"role": "user", "content": text}], "run": 1} for text in ("a", "é", "a")]


async def answer() -> Any:
    return {"text": "new"}


async def never() -> Any:
    raise AssertionError("a replay calls nobody")


async def ask_all(folder: Path, mode: Literal["record", "replay"]) -> list[Any]:
    begin_trial()
    cassette = Cassette(folder, mode)
    found: list[Any] = []
    try:
        for parts in ASKED:
            try:
                found.append(await cassette.through("model", parts, answer if mode == "record" else never))
            except CassetteMiss as miss:
                found.append(miss)
    finally:
        cassette.close()
    return found


def recorded() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(ask_all(Path(name), "record"))
        return (Path(name) / "model.jsonl").read_bytes()


CASSETTE = recorded()


def check_cassette(data: bytes) -> None:
    """Replay a cassette and record over it: each answer is there, missed or refused, and no other line is lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.jsonl").write_bytes(data)
        replayed = _asked(folder, "replay")
        assert isinstance(replayed, CassetteError) or len(replayed) == len(ASKED)
        if isinstance(_asked(folder, "record"), CassetteError):
            assert (folder / "model.jsonl").read_bytes() == data
        else:
            assert _asked(folder, "replay") == [{"text": "new"}] * len(ASKED)


def _asked(folder: Path, mode: Literal["record", "replay"]) -> list[Any] | CassetteError:
    """The answers, or why the cassette is refused."""
    try:
        return asyncio.run(ask_all(folder, mode))
    except CassetteError as error:
        refused = error
    assert str(folder) in str(refused)
    assert refused.hint
    return refused


def test_the_cassette_itself_is_whole() -> None:
    check_cassette(CASSETTE)
    assert len(CASSETTE.splitlines()) == len(ASKED)


@settings(max_examples=60)
@given(damaged_bytes(CASSETTE))
@example(CASSETTE.replace(b"new", b"n\xffw"))
@example(CASSETTE.replace(b'"user"', b'"us\xffr"'))
@example(CASSETTE.replace(b'"new"', b"9" * 5_000))
@example(CASSETTE.replace(b'"user"', b"9" * 5_000))
@example(CASSETTE.replace(b'"new"', b"[" * 5_000))
@example(CASSETTE.replace(b'"new"', b"[" * 5_000 + b"]" * 5_000))
@example(CASSETTE[:-1])
@example(b"")
@example(CASSETTE + b"{}")
def test_a_damaged_cassette_is_replayed_or_refused_by_name(data: bytes) -> None:
    check_cassette(data)


CACHED = b"".join(line_of({"key": key_of(plain(parts)), "answer": {"text": "old"}}) for parts in ASKED[:2])


def check_cache(data: bytes) -> None:
    """Ask through a cache: every answer is the kept one or a new one, and is kept then."""

    async def ask() -> list[Any]:
        cache = Cache(folder)
        try:
            return [await cache.through(parts, answer, _usable) for parts in ASKED]
        finally:
            cache.close()
            assert cache.problem is None

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "000001.jsonl").write_bytes(data)
        first = asyncio.run(ask())
        assert all(map(_usable, first))
        assert json.dumps(asyncio.run(ask())) == json.dumps(first)


def _usable(kept: Any) -> bool:
    return isinstance(kept, dict) and "text" in kept


@settings(max_examples=60)
@given(damaged_bytes(CACHED))
@example(CACHED)
@example(CACHED.replace(b"old", b"\xff"))
@example(CACHED.replace(b'"old"', b"9" * 5_000))
@example(CACHED.replace(b'"old"', b"[" * 5_000))
def test_a_damaged_line_of_the_cache_is_asked_for_again(data: bytes) -> None:
    check_cache(data)
