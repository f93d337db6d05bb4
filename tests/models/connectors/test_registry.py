"""The models of a project, from their ids."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.talk import run
from tests.models.mock_server import MockModels

from atp.base.errors import ConfigurationError
from atp.models.connections import ModelContext
from atp.models.connectors.connector import Connector
from atp.models.connectors.registry import MODELS, Models
from atp.models.model import Model, ModelAnswer, ModelRequest

HELLO = ModelRequest(messages=[{"role": "user", "content": "Hello"}])


class Parrot(Model):
    """A plugin's model."""

    type = "parrot"

    def __init__(self, connector: Connector, context: ModelContext) -> None:
        self.connector, self.name, self.settings = connector.id, connector.model, connector.settings
        self.closed = 0

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        return ModelAnswer(text=request.messages[-1]["content"] * self.settings["times"])

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    yield
    MODELS.unregister("parrot")


def models(env: dict[str, str] | None = None, **tables: Any) -> Models:
    return Models(Path("/nowhere"), env or {}, tables)


def test_both_formats_from_the_environment_alone() -> None:
    async def main() -> None:
        async with MockModels() as server:
            ours = models(server.env)
            try:
                for connector in ("openai.gpt-4.1", "anthropic.claude"):
                    model = ours.get(connector, "the judge")
                    assert ours.get(connector, "the simulator") is model
                    assert (await model.ask(HELLO)).text == "Hello"
                    assert (model.connector, model.name) == (connector, connector.partition(".")[2])
            finally:
                await ours.close()
            assert [one.body["model"] for one in server.requests] == ["gpt-4.1", "claude"]
            assert ours.secrets == {server.key}

    run(main())


@pytest.mark.parametrize(
    ("kind", "host", "path"),
    [
        ("openai", "", "/v1/chat/completions"),
        ("openai", "/v1/", "/v1/chat/completions"),
        ("openai", "/v1/chat/completions", "/v1/chat/completions"),
        ("anthropic", "", "/v1/messages"),
        ("anthropic", "/v1", "/v1/messages"),
        ("anthropic", "/v1/messages", "/v1/messages"),
    ],
)
def test_hosts_in_all_spellings(kind: str, host: str, path: str) -> None:
    async def main() -> None:
        async with MockModels() as server:
            ours = models(x={"type": kind, "model": "m", "host": server.url + host, "key": server.key})
            try:
                await ours.get("x", "a test").ask(HELLO)
            finally:
                await ours.close()
            assert server.requests[0].format == ("openai" if path.endswith("completions") else "anthropic")

    run(main())


def test_models_of_one_server_share_its_limit_and_its_connections() -> None:
    async def main() -> None:
        async with MockModels() as server:
            table = {"type": "openai", "host": server.url, "key": server.key}
            ours = models(a={**table, "model": "a"}, b={**table, "model": "b", "host": server.openai})
            other = models(c={**table, "model": "c"})
            try:
                first, second = ours.get("a", "x"), ours.get("b", "y")
                assert first._provider is second._provider  # type: ignore[attr-defined]
                assert first._provider is not other.get("c", "z")._provider  # type: ignore[attr-defined]
                await first.ask(HELLO)
            finally:
                await ours.close()
                await other.close()

    run(main())


def test_no_model_is_set() -> None:
    with pytest.raises(ConfigurationError, match="the judge needs a model, and none is set") as caught:
        models().get(None, "the judge")
    for word in ("-c openai", "OPENAI_API_KEY", "[connectors", "atp models install smollm2"):
        assert word in str(caught.value.hint)


def test_a_missing_model_names_who_needs_it() -> None:
    with pytest.raises(ConfigurationError, match="the simulator needs a model: there is no connector `x`"):
        models().get("x", "the simulator")


@pytest.mark.parametrize("host", ["example.com", "ftp://x", "http://", "http://x:port"])
def test_a_host_that_is_not_a_url(host: str) -> None:
    with pytest.raises(ConfigurationError, match="which is not a URL"):
        models(x={"type": "openai", "model": "m", "host": host}).get("x", "a test")


def test_a_plugins_model() -> None:
    MODELS.register(Parrot)

    async def main() -> None:
        ours = models(polly={"type": "parrot", "model": "p", "times": 2})
        parrot = ours.get("polly", "a test")
        assert (await parrot.ask(HELLO)).text == "HelloHello"
        await ours.close()
        await ours.close()
        assert isinstance(parrot, Parrot)
        assert parrot.closed == 1

    run(main())


def run_with_plugin(folder: Path, module: str, code: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a process in which a package `theirs` is installed, whose model plugin `parrot` is this module."""
    (folder / "theirs.py").write_text(module)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[atp.models]\nparrot = theirs\n")
    paths = [str(folder), str(Path(__file__).parents[3])]
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_plugin_is_found_by_its_entry_point(tmp_path: Path) -> None:
    module = (
        "from atp.models.connectors.registry import MODELS\n"
        "from tests.models.connectors.test_registry import Parrot\n"
        "MODELS.register(Parrot)\n"
    )
    code = (
        "from pathlib import Path\nfrom atp.models.connectors.registry import Models\n"
        "print(Models(Path(), {}, {'x': {'type': 'parrot', 'model': 'p'}}).get('x', 'a test').name)"
    )
    done = run_with_plugin(tmp_path, module, code)
    assert (done.stdout, done.stderr) == ("p\n", "")


def test_a_broken_plugin_is_a_configuration_error(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nimport atp\nfrom atp.models.connectors.registry import Models\n"
        "try:\n    Models(Path(), {}, {'x': {'type': 'parrot', 'model': 'p'}}).get('x', 'a test')\n"
        "except atp.ConfigurationError as error:\n    print(error, error.hint, sep='\\n')"
    )
    done = run_with_plugin(tmp_path, "import a_module_that_is_not_installed", code)
    message, hint = done.stdout.splitlines()
    assert (
        "the connector `x` has the type `parrot`: the plugin `parrot` of the package theirs can't be loaded" in message
    )
    assert hint == "fix the package theirs, or uninstall it"


def test_an_unknown_type() -> None:
    with pytest.raises(ConfigurationError, match="has the type `martian`, which isn't installed") as caught:
        models(x={"type": "martian"}).get("x", "a test")
    assert "`anthropic`, `local`, `openai`, `provider`" in str(caught.value.hint)


def test_what_a_project_has(tmp_path: Path) -> None:
    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "mine.conn.yao").write_text(
        '{"type": "openai", "options": {"model": "m", "key": "$ENV.K"}}'
    )
    tables = {
        "good": {"type": "anthropic", "model": "claude", "key": "secret-key"},
        "bad": {"type": "openai", "modell": "x"},
        "no-host": {"type": "openai", "model": "m", "host": "x"},
    }
    ours = Models(tmp_path, {"OPENAI_API_KEY": "sk-0123456", "ATP_DATA_DIR": str(tmp_path)}, tables)
    known = {one.id: one for one in ours.known()}
    assert list(known) == ["bad", "good", "mine", "no-host", "openai.<model>", "anthropic.<model>", "local"]
    assert known["good"].ready
    assert (known["good"].type, known["good"].model, known["good"].where) == ("anthropic", "claude", "atp.toml")
    assert (known["bad"].ready, known["bad"].hint) == (False, "did you mean `model`?")
    assert "needs the variable K" in str(known["mine"].problem)
    assert known["mine"].where == "connectors/mine.conn.yao"
    assert "not a URL" in str(known["no-host"].problem)
    assert (known["no-host"].type, known["no-host"].model) == ("openai", "m")
    assert known["openai.<model>"].ready
    assert known["anthropic.<model>"].problem == "ANTHROPIC_API_KEY is not set"
    assert not known["local"].ready
    assert "secret-key" in ours.secrets


def test_a_connector_can_be_described_without_its_key() -> None:
    ours = models(x={"type": "openai", "model": "m", "key": "$ENV.NONE", "temperature": 1})
    described = ours.described("x", "the judge")
    assert (described.model, described.settings) == ("m", {"temperature": 1})
    with pytest.raises(ConfigurationError, match="the judge needs a model: there is no connector `y`"):
        ours.described("y", "the judge")


def test_one_event_loop_after_another() -> None:
    with MockModels() as server:
        ours = models(server.env)

        async def main() -> None:
            assert (await ours.get("openai.m", "a test").ask(HELLO)).text == "Hello"
            await ours.close()

        run(main())
        run(main())


def test_a_model_that_was_closed_can_be_asked_again() -> None:
    async def main() -> None:
        async with MockModels() as server:
            ours = models(server.env)
            await ours.close()
            model = ours.get("openai.m", "a test")
            assert (await model.ask(HELLO)).text == "Hello"
            await ours.close()

    run(main())


def test_nothing_heavy_is_loaded_before_a_model_is_asked_for() -> None:
    code = (
        "import sys, atp.models.connectors.registry, pathlib\n"
        "ours = atp.models.connectors.registry.Models(pathlib.Path('.'), {}, {})\n"
        "print({'aiohttp', 'jsonschema', 'pydantic_ai', 'genai_prices', 'xllamacpp'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
