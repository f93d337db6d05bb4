"""MCP servers in the files of an agent: what can be written, and every slip in it."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.support.prompts import Scripted, Stage
from tests.agents.support.talk import Talk

from atp.agents.agent_files import AgentFiles
from atp.agents.mcp.settings import MOST_SERVERS, ServerSettings, read_servers
from atp.agents.prompt.file import read_prompt_file
from atp.agents.prompt.package import read_package


@pytest.fixture
def stage(talk: Talk) -> Stage:
    return Stage(talk, Scripted())


def servers(stage: Stage, frontmatter: str, **environment: str) -> list[ServerSettings]:
    """The servers that a frontmatter names."""
    stage.write(**{"agents/x.md": f"---\n{frontmatter}\n---\nHi"})
    return settings(stage, **environment)[0]


def settings(stage: Stage, **environment: str) -> tuple[list[ServerSettings], AgentFiles]:
    files = AgentFiles(stage.root, {**os.environ, **environment})
    package = stage.root / "assistants/ocean"
    written = read_package(package, files) if package.exists() else read_prompt_file(stage.root / "agents/x.md", files)
    found = read_servers(written.head.mcp, written.path, written.locate, files)
    files.check()
    return found, files


def package(stage: Stage, mcp: str, **files: str) -> None:
    """A package with these servers, and further files."""
    place = "assistants/ocean"
    stage.write(**{f"{place}/package.yao": f'{{"mcp": {mcp}}}', f"{place}/prompts.yml": "[]", **files})


def test_a_mapping_of_servers(stage: Stage) -> None:
    stage.write(**{"agents/server.py": ""})
    one, other = servers(
        stage,
        """
mcp:
  weather:
    command: python3 -X utf8
    args: [server.py, --fast]
    env: {KEY: value}
    tools: [get_*]
    exclude: [get_all]
    scope: trial
    timeout: 5s
    ready_within: 1m30s
  shop:
    url: https://127.0.0.1/mcp
    headers: {X-Shop: blue}
""",
    )
    server = (stage.root / "agents/server.py").resolve()
    assert one.name == "weather"
    assert one.argv == ("python3", "-X", "utf8", str(server), "--fast")
    assert one.files == (server,)
    assert (one.tools, one.exclude, one.per_trial, one.in_workspace) == (("get_*",), ("get_all",), True, True)
    assert (one.seconds, one.ready_within, one.environment) == (5.0, 90.0, {"KEY": "value"})
    assert (other.name, other.url, other.headers) == ("shop", "https://127.0.0.1/mcp", {"X-Shop": "blue"})
    assert (other.per_trial, other.tools, other.seconds, other.ready_within) == (False, None, 60.0, 60.0)
    assert other.folder == (stage.root / "agents").resolve()


def test_a_list_of_servers_and_ids(stage: Stage) -> None:
    stage.write(**{"mcps/tools/search.mcp.yao": '{"transport": "stdio", "command": "search-server"}'})
    found = servers(
        stage,
        "mcp: [{name: a, command: [x, 'y z']}, tools.search, {name: b, server_id: tools.search, exclude: [z]}]",
    )
    assert [(one.name, one.argv, one.exclude) for one in found] == [
        ("a", ("x", "y z"), ()),
        ("tools_search", ("search-server",), ()),
        ("b", ("search-server",), ("z",)),
    ]


def test_a_file_of_a_server(stage: Stage) -> None:
    """JSON with comments, its paths, and what the agent says beside it."""
    package(
        stage,
        '{"servers": [{"server_id": "search", "tools": ["find"]}]}',
        **{
            "assistants/ocean/mcps/search.mcp.yao": """
                {
                  // what Yao has
                  "label": "Search", "description": "…", "transport": "stdio",
                  "command": "python3", "arguments": ["server.py"], /* a comment */
                  "env": {"API_TOKEN": "$ENV.SEARCH_TOKEN", "MODE": "a-$ENV.MODE"},
                  "timeout": "30s",
                }""",
            "server.py": "",
        },
    )
    (one,), files = settings(stage, SEARCH_TOKEN="s3cret-token", MODE="fast")
    assert one.name == "search"
    assert one.argv == ("python3", str(stage.root / "server.py"))
    assert one.environment == {"API_TOKEN": "s3cret-token", "MODE": "a-fast"}
    assert (one.folder, one.tools, one.seconds) == (stage.root, ("find",), 30.0)
    assert files.secrets == {"s3cret-token"}
    assert stage.root / "assistants/ocean/mcps/search.mcp.yao" in files.paths
    assert files.variables.used == {"SEARCH_TOKEN": "s3cret-token", "MODE": "fast"}


def test_an_id_finds_the_nearest_file(stage: Stage) -> None:
    place = "assistants/ocean/mcps/near.mcp.json"
    package(
        stage,
        '["near", "far", "agents.lake.deep"]',
        **{
            place: '{"command": "own"}',
            "mcps/near.mcp.yao": '{"command": "other"}',
            "mcps/far.mcp.yao": '{"transport": "http", "url": "http://h/mcp", "authorization_token": "$ENV.T"}',
            "assistants/lake/mcps/deep.mcp.yao": '{"command": "deep"}',
        },
    )
    (near, far, deep), files = settings(stage, T="a-long-token")
    assert (near.argv, deep.argv) == (("own",), ("deep",))
    assert far.headers == {"Authorization": "Bearer a-long-token"}
    assert (deep.name, "a-long-token" in files.secrets) == ("agents_lake_deep", True)


def test_variables_of_the_frontmatter(stage: Stage) -> None:
    (one,) = servers(
        stage,
        'mcp: {a: {url: "http://${HOST:h}/$ENV.PATHS", headers: {Authorization: "Bearer ${WORD}"}}}',
        PATHS="mcp",
        WORD="abracadabra",
    )
    assert (one.url, one.headers) == ("http://h/mcp", {"Authorization": "Bearer abracadabra"})
    assert "abracadabra" in settings(stage, PATHS="mcp", WORD="abracadabra")[1].secrets


@pytest.mark.parametrize("nothing", ["mcp:", "mcp: {}", "mcp: []", "mcp: {servers: []}", "mcp: {servers: null}"])
def test_no_servers(stage: Stage, nothing: str) -> None:
    assert servers(stage, nothing) == []


@pytest.mark.parametrize(
    ("mcp", "told"),
    [
        ("a", "`mcp` must be a mapping or a list of servers"),
        ("{command: x}", "`command` must be a server, a mapping (write a name, and below it the server"),
        ("{a: {}}", "a server has either a `command`, a `url` or the `server_id`"),
        ("{a: {command: x, url: 'http://h'}}", "a server has either"),
        ("{a: {comand: x}}", "x.md:2:11: unknown key `comand` (did you mean `command`?)"),
        ("{a: {command: x, arg: [y]}}", "did you mean `args`?"),
        ("{a: {command: x, args: [], arguments: []}}", "mean the same"),
        ("{a: {command: []}}", "`command` is empty"),
        ("{a: {command: 'x \"y'}}", "`command` can't be split"),
        ("{a: {}}", ":10: a server has either a `command`, a `url` or the `server_id`"),
        ("{a: {command: x, url: 'http://h'}}", ":10: a server has either a `command`, a `url` or the `server_id`"),
        ("{a: {command: x, headers: {A: b}}}", "`headers` goes with `url`"),
        ("{a: {url: 'http://h', env: {A: b}}}", "`env` goes with `command`"),
        ("{a: {url: 'ftp://h'}}", "an address that begins with http:// or https://"),
        ('{a: {url: "http://h", headers: {A: "b\\nc"}}}', "has a line break in it"),
        ("{a: {command: x, scope: test}}", "`scope` cannot be the text 'test'"),
        ("{a: {command: x, tools: []}}", "`tools` is empty"),
        ("{a: {command: x, tools: get}}", "`tools` must be a list"),
        ("{a: {command: x, timeout: soon}}", "expected a duration"),
        ("{a: {command: x, timeout: 0}}", "more than 0"),
        ("{a: {command: x, cwd: nowhere}}", "there is no folder nowhere"),
        ("{a: {command: x, env: {A: 1}}}", "put it in quotes"),
        ('{a: {command: x, env: {"A=B": c}}}', "the name 'A=B', which has a"),
        ("{a: {command: x, env: {A: $ENV.NO_SUCH_VARIABLE}}}", "the variable `NO_SUCH_VARIABLE` is not set"),
        ("{a: {command: x, env: {A: $CTX.USER_ID}}}", "`$CTX.USER_ID` has no value here"),
        ("{a: {name: b, command: x}}", "`name` is given twice"),
        ("{a b: {command: x}}", "'a b' is no name for an MCP server"),
        ("{a__b: {command: x}}", "'a__b' is no name"),
        (f"{{{'a' * 33}: {{command: x}}}}", "at most 32"),
        ("[{command: x}]", "the server has no name"),
        ("[5]", "a server must be a mapping or an id"),
        ("[{name: a, command: x}, {name: a, command: y}]", "two MCP servers are called `a`"),
        ("{servers: [], sever: 1}", "unknown key `sever` (did you mean `servers`?)"),
        ("[../../etc]", "there is no MCP server `../../etc`"),
        (
            f"[{', '.join(f'{{name: s{n}, command: x}}' for n in range(MOST_SERVERS + 1))}]",
            "there are 17 MCP servers: at most 16",
        ),
    ],
)
def test_mistakes(stage: Stage, mcp: str, told: str) -> None:
    assert told in stage.refuse(f"---\nmcp: {mcp}\n---\nHi")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"transport": "process", "tools": {"a": "scripts.a.B"}}', "`transport: process` calls code inside Yao"),
        ('{"transport": "sse", "url": "http://h"}', "`transport` cannot be 'sse' (one of: stdio, http)"),
        ('{"transport": "stdoi", "command": "x"}', "did you mean `stdio`?"),
        ('{"transport": "http", "command": "x"}', "`transport: http` needs `url`"),
        ('{"transport": "stdio", "comand": "x"}', "unknown key `comand` (did you mean `command`?)"),
        ('{"command": "x", "url": "http://h"}', "a server has either"),
        ('{"command": "x", "env": {"A": "$ENV.NO_SUCH_VARIABLE"}}', "`NO_SUCH_VARIABLE` is not set"),
        ("[]", "a server must be an object"),
        ('{"command": }', "mcps/a.mcp.yao:1:13: not JSON"),
    ],
)
def test_mistakes_in_a_file(stage: Stage, text: str, told: str) -> None:
    stage.write(**{"mcps/a.mcp.yao": text})
    assert told in stage.refuse("---\nmcp: [a]\n---\nHi")


def test_what_only_another_tool_reads_is_said(stage: Stage) -> None:
    stage.write(**{"mcps/a.mcp.yao": '{"command": "x"}'})
    made = stage.make("---\nmcp: [{server_id: a, resources: ['data://*']}]\n---\nHi")
    assert [one.message for one in made.warnings] == [
        "`resources` has no effect here: the model calls tools, and reads nothing else"
    ]


def test_its_files_decide_what_the_agent_does(stage: Stage) -> None:
    """They are part of what tells one trial from another."""
    stage.write(**{"mcps/a.mcp.yao": '{"command": "python3", "args": ["server.py"]}', "mcps/server.py": ""})
    made = stage.make("---\nmcp: [a]\n---\nHi")
    assert {path.name for path in made.files} == {"x.md", "a.mcp.yao", "server.py"}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists))
def test_anything_in_its_place_is_read_or_refused(value: object) -> None:
    """No value makes reading fail."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "assistants")
        place.mkdir()
        (place / "package.yao").write_text(json.dumps({"mcp": value}), encoding="utf-8")
        (place / "prompts.yml").write_text("[]")
        files = AgentFiles(Path(folder), {})
        written = read_package(place, files)
        assert isinstance(read_servers(written.head.mcp, written.path, written.locate, files), list)
