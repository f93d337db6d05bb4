"""References to generators on the command line, and the suites that come of them."""

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.support.project import Project
from tests.roles.support.doubles import Scripted

from atp.base.diagnostics import Diagnostics, LoadError
from atp.base.errors import ConfigurationError
from atp.base.secrets import Secrets, masking
from atp.engine.prepare.generated import (
    MOST_CASES,
    Generated,
    Reference,
    generate_suite,
    generated_path,
    parse_reference,
    script_generator,
)
from atp.engine.prepare.sources import is_reference
from atp.engine.prepare.untrusted import ALLOWED
from atp.roles.ask import RoleClient, RoleError
from atp.suite.assertion import ASSERTIONS, Assertion
from atp.suite.case import Case
from atp.suite.result import Verdict

GEN = Reference("agents", "test.gen", 2)


def parsed(text: str) -> Reference:
    notes = Diagnostics()
    reference = parse_reference(text, notes)
    assert list(notes) == []
    assert reference is not None
    return reference


def refused(text: str) -> list[str]:
    notes = Diagnostics()
    assert parse_reference(text, notes) is None
    assert {one.code for one in notes} == {"reference"}
    return [one.message for one in notes if one.severity == "error"]


def cases(*texts: str) -> list[dict[str, Any]]:
    return [{"id": text, "input": text} for text in texts]


def suite(client: RoleClient, root: Path, reference: Reference = GEN, **more: Any) -> Generated:
    return asyncio.run(generate_suite(reference, client, "expense", root, **more))


def test_the_documents_references() -> None:
    text = "agents:workers.test.generator?count=10&focus=edge-cases"
    assert parsed(text) == Reference("agents", "workers.test.generator", 10, {"focus": "edge-cases"})
    assert parsed("scripts:tests.gen?count=25") == Reference("scripts", "tests.gen", 25)
    assert parsed("agents:workers.test.gen") == Reference("agents", "workers.test.gen", 10)
    assert parsed("agents:gen").name == "agents:gen"


def test_parameters_are_text_or_scalars() -> None:
    found = parsed("agents:g?a=1&b=1.5&c=true&d=null&e=a+b%26c&f=&g=%22x%22&h=[1]&i=-0.5e3&Größe=ä&j=a=b").parameters
    assert found == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": None,
        "e": "a b&c",
        "f": "",
        "g": "x",
        "h": "[1]",
        "i": -500.0,
        "Größe": "ä",
        "j": "a=b",
    }


@pytest.mark.parametrize(
    "text", ["agents:", "agents:?count=3", "agents:a b", "agents:a..b", "scripts:gen", "scripts:.a"]
)
def test_references_that_name_nothing(text: str) -> None:
    [message] = refused(text)
    assert message.startswith(f"`{text}` names no ")


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "many", "", "true", "null", str(MOST_CASES + 1), "9" * 5000])
def test_a_count_that_is_none(count: str) -> None:
    [message] = refused(f"agents:g?count={count}")
    assert message.endswith(f"must be a whole number from 1 to {MOST_CASES}")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "a parameter of `agents:g?` is empty"),
        ("focus", "`focus` in `agents:g?focus` is no parameter"),
        ("=1", "`=1` in `agents:g?=1` is no parameter"),
        ("a=1&a=2", "the parameter `a` of `agents:g?a=1&a=2` is given twice"),
        ("target_agent=x", "the parameter `target_agent` of `agents:g?target_agent=x` is set by atp itself"),
    ],
)
def test_parameters_that_are_none(query: str, message: str) -> None:
    assert refused(f"agents:g?{query}") == [message]


def test_all_that_is_wrong_is_said() -> None:
    assert len(refused("agents:?count=no&x&a=1&a=2")) == 4


def test_a_warning_about_a_reference_does_not_end_the_run(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.write("scripts/make.py", "def cases(cont):\n    return [{'input': f'say {cont}'}]\n")
    ran = project.test("-i", "scripts:make.cases?count=1&cont=3", "-n", "agent.py:run")
    assert (ran.code, ran.summary["passed"]) == (0, 1), ran.err
    assert "the parameter `cont`" in ran.err
    assert "did you mean `count`?" in ran.err


def test_a_slip_of_count_is_handed_on_with_a_warning() -> None:
    notes = Diagnostics()
    reference = parse_reference("agents:g?Count=3", notes)
    assert reference == Reference("agents", "g", 10, {"Count": 3})
    assert [(one.severity, one.hint) for one in notes] == [("warning", "did you mean `count`?")]


@pytest.mark.parametrize(
    ("text", "is_test"),
    [
        ("scripts:expense_test", True),
        ("scripts:test_expense.TestSubmit", True),
        ("scripts:tests.gen", False),
        ("scripts:tests.latest", False),
        ("agents:test_gen", False),
        ("scripts.expense_test", True),
        ("scripts.tests.gen?count=3", False),
    ],
)
def test_which_scripts_are_tests(text: str, is_test: bool) -> None:
    assert is_reference(text)
    assert parsed(text).is_script_test is is_test


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    notes = Diagnostics()
    reference = parse_reference(f"agents:a?{text}", notes)
    assert (reference is None) == any(one.severity == "error" for one in notes)
    if reference is not None:
        assert generated_path(reference, "t", Path("/r")).name.startswith("a-")


@given(
    st.dictionaries(
        st.text("abcdefgh", min_size=1), st.one_of(st.integers(-(2**60), 2**60), st.booleans(), st.none()), max_size=5
    )
)
def test_parameters_come_back_as_they_were(parameters: dict[str, Any]) -> None:
    query = "".join(f"&{name}={json.dumps(value)}" for name, value in parameters.items())
    assert parsed(f"agents:a.b?count=3{query}") == Reference("agents", "a.b", 3, parameters)


def test_the_cases_are_kept_and_loaded(tmp_path: Path) -> None:
    found = suite(Scripted(cases("a", "b")), tmp_path)
    assert found.path.parent == tmp_path / ".atp" / "generated"
    assert found.path.name.startswith("test-gen-")
    assert [json.loads(line) for line in found.path.read_text().splitlines()] == cases("a", "b")
    assert [case.id for case in found.suite.cases] == ["a", "b"]
    assert found.suite.path == str(found.path)
    assert found.warnings == []
    assert found.usage.input_tokens == 10
    assert [one.name for one in found.path.parent.iterdir()] == [found.path.name]


def test_on_resume_they_are_found_again(tmp_path: Path) -> None:
    first = suite(Scripted(cases("a", "b")), tmp_path)
    silent = Scripted(RoleError("must not be asked"))
    again = suite(silent, tmp_path, reuse=True)
    assert again.suite == first.suite
    assert silent.calls == []
    other = suite(Scripted(cases("c", "d")), tmp_path)
    assert other.path == first.path
    assert [case.id for case in other.suite.cases] == ["c", "d"]


def test_without_a_file_a_resumed_run_makes_them(tmp_path: Path) -> None:
    assert len(suite(Scripted(cases("a", "b")), tmp_path, reuse=True).suite.cases) == 2


def test_another_request_has_another_file(tmp_path: Path) -> None:
    requests = [GEN, Reference("agents", "test.gen", 3), Reference("agents", "test.gen", 2, {"focus": "x"})]
    paths = {generated_path(one, target, tmp_path) for one in requests for target in ("a", "b")}
    assert len(paths) == 6


def test_a_file_that_was_spoilt_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = suite(Scripted(cases("a", "b")), tmp_path).path
    path.write_text('{"id": "a", "inptu": "x"}\n')
    with pytest.raises(LoadError) as raised:
        suite(Scripted([]), tmp_path, reuse=True)
    assert raised.value.diagnostics[0].file == str(path)


def test_a_generator_that_fails_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(LoadError) as raised:
        suite(Scripted(RoleError("test.gen: connection refused")), tmp_path)
    [one] = raised.value.diagnostics
    assert one.message == "agents:test.gen made no cases: test.gen: connection refused"
    with pytest.raises(LoadError):
        suite(Scripted([{"id": "a"}]), tmp_path)
    assert not (tmp_path / ".atp").exists()


def test_a_root_that_can_not_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".atp").write_text("a file")
    with pytest.raises(LoadError, match="can't be written"):
        suite(Scripted(cases("a", "b")), tmp_path)


SCRIPT = """
import itertools

def by_count(count):
    return [{"id": f"c{n}", "input": f"say {n}"} for n in range(count)]

def told(count, target_agent, focus="none", *, options, context):
    said = [target_agent, focus, options["metadata"]["count"], context["metadata"]["test_mode"], context["count"]]
    return [{"input": str(said)}] * count

def everything(**told):
    return {"cases": [{"input": ",".join(sorted(told))}]}

def endless():
    for n in itertools.count():
        yield {"input": f"say {n}"}

async def later(count):
    return by_count(count)

async def one_by_one():
    for n in itertools.count():
        yield {"input": f"say {n}"}

def as_text():
    return '{"input": "a"}\\n{"input": "b"}'

def needs(number):
    return []

def breaks():
    raise ValueError("not today")

def wrong():
    return [{"input": "a"}, {"inputs": "b"}]

def Gen_Cases(count):
    return by_count(count)

not_json = lambda: [{"input": {1, 2}}]
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "made.py").write_text(SCRIPT)
    return tmp_path


def scripted(root: Path, query: str) -> Generated:
    reference = parsed(f"scripts:made.{query}")
    return suite(script_generator(reference, [root]), root, reference)


@pytest.mark.parametrize("function", ["by_count", "endless", "later", "one_by_one", "gen-cases"])
def test_scripts_of_all_kinds(scripts: Path, function: str) -> None:
    found = scripted(scripts, f"{function}?count=3")
    assert [case.input for case in found.suite.cases] == ["say 0", "say 1", "say 2"]
    assert found.warnings == []


def test_what_a_script_is_told(scripts: Path) -> None:
    found = scripted(scripts, "told?count=1&focus=dates")
    assert found.suite.cases[0].input == "['expense', 'dates', 1, 'generator', 1]"
    found = scripted(scripts, "everything?count=1&focus=dates")
    assert found.suite.cases[0].input == "context,count,focus,options,target_agent,test_mode"


def test_a_script_with_fewer_cases_is_a_warning(scripts: Path) -> None:
    found = scripted(scripts, "as_text")
    assert [case.input for case in found.suite.cases] == ["a", "b"]
    assert [one.message for one in found.warnings] == ["scripts:made.as_text made 2 of 10 cases"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("needs", "it takes `number`; a generator is given, by name, test_mode, target_agent, count, options, context"),
        ("breaks", "raised ValueError: not today"),
        ("wrong", "generated case `gen-002`: unknown key `inputs`"),
        ("not_json", "a set at `[0].input`"),
    ],
)
def test_scripts_that_do_not_work(scripts: Path, function: str, message: str) -> None:
    with pytest.raises(LoadError) as raised:
        scripted(scripts, f"{function}?count=2")
    assert message in str(raised.value)


def test_scripts_that_are_not_there(scripts: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no `by_cuont`"):
        scripted(scripts, "by_cuont")
    with pytest.raises(ConfigurationError, match="there is no scripts/other"):
        script_generator(parsed("scripts:other.gen"), [scripts])


def test_a_script_with_dots_is_the_script_and_no_message(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.write("scripts/gen.py", "def one():\n    return [{'id': 'made', 'input': 'x'}]\n")
    project.write("scripts/a_test.py", "def test_it(t, ctx):\n    t.assert_.equal(1, 1)\n")
    ran = project.test("-i", "scripts.gen.one?count=1", "-n", "agent.py:run")
    assert ran.statuses == {"made": "passed"}, ran.err
    ran = project.test("-i", "scripts.a_test.test_it", "-n", "agent.py:run")
    assert set(ran.statuses.values()) == {"passed"}
    ran = project.test("-i", "scripts.gen.two", "-n", "agent.py:run")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no `two` in" in ran.err
    ran = project.test("-i", "scripts.a.b are fine", "-n", "agent.py:run")
    assert ran.statuses == {"message": "passed"}


ADDRESS_KEYS = {"image": "source", "image_url": "image_url", "file": "source", "audio": "source"}
BY_SCRIPT = {"type": "script", "script": "scripts.a.b"}
HELD = {"id": "c", "assert": {"type": "contains", "value": "x"}}
FILE = {"type": "file", "source": "file:///etc/hostname"}


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({"before_hook": "/elsewhere/evil.py:go"}, "`before_hook`"),
        ({"after_hook": "hooks:go"}, "`after_hook`"),
        ({"workspace": "/etc/apt"}, "`workspace`"),
        ({"workspace": "data"}, "`workspace`"),
        ({"assert": BY_SCRIPT}, "`script` scripts.a.b"),
        ({"assert": {"type": "any_of", "assertions": [BY_SCRIPT]}}, "`script` scripts.a.b"),
        ({"checkpoints": [{"id": "c", "assert": BY_SCRIPT}], "simulator": {"use": "x"}}, "`script` scripts.a.b"),
        ({"simulator": {"use": "scripts.a.b"}, "checkpoints": [HELD]}, "`scripts.a.b`"),
        ({"simulator": {"use": "evil.py:go"}, "checkpoints": [HELD]}, "`evil.py:go`"),
        ({"assert": {"type": "llm_eval", "criteria": "x", "judge": "http://evil/"}}, "`http://evil/`"),
        ({"assert": {"type": "llm_eval", "criteria": "x", "judge": "/tmp/evil.md"}}, "`/tmp/evil.md`"),
        ({"messages": [{"role": "user", "content": [FILE]}]}, "the attachment file:///etc/hostname"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "file://../x.png"}]}]},
            "the attachment file://../x.png",
        ),
        ({"skip": True}, "`skip`"),
        ({"runs": 1000}, "`runs`"),
        ({"timeout": "100h"}, "`timeout_seconds`"),
        ({"constraints": {"budget_usd": 1e6}}, "`budget_usd`"),
        ({"pass_rate": 0.01}, "`pass_rate`"),
        ({"min_score": 0}, "`min_score`"),
        ({"user": "admin"}, "`user`"),
        ({"team": "admins"}, "`team`"),
        ({"options": {"connector": "openai.gpt"}}, "`options`"),
        ({"simulator": {"use": "x"}, "max_turns": 1000, "checkpoints": [HELD]}, "`max_turns`"),
        (
            {"simulator": {"use": "x", "options": {"connector": "a.b"}}, "checkpoints": [HELD]},
            "the options `connector` of `simulator`",
        ),
        (
            {"assert": {"type": "agent", "use": "agents:x", "options": {"mode": "b"}}},
            "the options `mode` of `agents:x`",
        ),
        (
            {"assert": {"type": "none_of", "assertions": [{"type": "llm_eval", "criteria": "x", "votes": 99}]}},
            "`votes`",
        ),
    ],
)
def test_cases_of_an_agent_may_not_run_code_or_leave_the_project(
    tmp_path: Path, more: dict[str, Any], refused: str
) -> None:
    case = {"id": "a", **({} if "messages" in more else {"input": "x"}), **more}
    reference = Reference("agents", "test.gen", 1)
    with pytest.raises(LoadError) as raised:
        suite(Scripted([case], [case]), tmp_path, reference)
    assert raised.value.diagnostics[0].code == "untrusted-case"
    assert raised.value.diagnostics[0].message.startswith(f"generated case `a`: {refused}")
    path = generated_path(reference, "expense", tmp_path)
    assert not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(case) + "\n")
    with pytest.raises(LoadError, match="untrusted-case"):
        suite(Scripted([]), tmp_path, reference, reuse=True)
    script = suite(Scripted([case]), tmp_path, Reference("scripts", "gen.one", 1))
    assert [one.id for one in script.suite.cases] == ["a"]


@pytest.mark.parametrize(
    "address",
    [
        *(
            "file:///etc/hostname",
            "FILE:///etc/hostname",
            "File://in.txt",
            "file:/etc/hostname",
            "file:in.txt",
            "in.txt",
        ),
        *("/etc/hostname", " file://in.txt", "jar:file:///etc/hostname", "file://localhost/etc/hostname", "ftp://x/y"),
        *("file://..%2fx", "file://%2e%2e/x", "file:///etc%2fhostname", "file://a%00b", "file://in.txt%0a", "file://"),
        *("file://link", "file://folder/hostname", "file://loop", "file://~/in.txt", "file://$HOME/in.txt", "file://."),
        *("file:///proc/self/environ", "file:///tmp/is-not-there-yet", f"file://{'a' * 5000}", "..\\x", "C:\\x"),
    ],
)
def test_an_attachment_is_a_file_of_the_project_in_every_spelling(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("x")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "loop").symlink_to("loop")
    part = {"type": "image_url", "image_url": {"url": address}}
    case = {"id": "a", "messages": [{"role": "user", "content": [part]}]}
    with pytest.raises(LoadError) as raised:
        suite(Scripted([case], [case]), tmp_path.resolve(), Reference("agents", "test.gen", 1))
    assert raised.value.diagnostics[0].code == "untrusted-case"


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *((name, "not send hidden files or settings") for name in (".env", ".git/config", ".atp/runs/a.jsonl")),
        *((name, "not send hidden files or settings") for name in ("a/.netrc", ".hidden/a/b.txt", "ATP.toml")),
        *((name, "not send hidden files or settings") for name in ("a/atp.toml", "pyproject.toml", "prod.env")),
        *((name, "not send hidden files or settings") for name in ("connectors/a/b.txt", "a/house.conn.yao")),
        *((name, "not send hidden files or settings") for name in ("link-to-hidden.txt", ".link-to-plain")),
        *((name, "not send a file with a secret in it") for name in ("a/key.txt", "utf-16.txt", "wrapped.json")),
        ("huge.bin", "not send a file with a secret in it"),
        ("a/plain.txt", None),
        ("connectors.txt", None),
        ("a/connectors/plain.txt", None),
    ],
)
def test_hidden_files_settings_and_secrets_are_no_attachments(
    name: str, rule: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = 'sk-0123456789"abcdef'
    contents = {
        "a/key.txt": f"the key is {secret}".encode(),
        "utf-16.txt": secret.encode("utf-16"),
        "wrapped.json": json.dumps({"key": secret}).encode(),
    }
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / ".secret").write_text("x")
    (tmp_path / "plain.txt").write_text("x")
    if "link" in name:
        file.symlink_to(".secret" if "hidden" in name else "plain.txt")
    else:
        file.write_bytes(contents.get(name, b"harmless"))
    if name == "huge.bin":
        with file.open("r+b") as sparse:
            sparse.truncate(2**26 + 1)
    case = {"id": "a", "messages": [{"role": "user", "content": [{"type": "file", "source": f"file://{name}"}]}]}
    reference = Reference("agents", "test.gen", 1)
    with masking(Secrets([secret])):
        if rule is None:
            assert len(suite(Scripted([case]), tmp_path.resolve(), reference).suite.cases) == 1
            return
        with pytest.raises(LoadError) as raised:
            suite(Scripted([case], [case]), tmp_path.resolve(), reference)
    assert raised.value.diagnostics[0].code == "untrusted-case"
    assert raised.value.diagnostics[0].message.endswith(f"a case that an agent generated may {rule}")


@pytest.mark.parametrize("kind", ["image", "image_url", "file", "audio"])
@pytest.mark.parametrize("address", ["http://localhost/a.png", "https://example.com/a", "HTTP://x/y"])
def test_an_address_on_the_net_is_no_attachment(kind: str, address: str, tmp_path: Path) -> None:
    case = {"id": "a", "messages": [{"role": "user", "content": [{"type": kind, ADDRESS_KEYS[kind]: address}]}]}
    with pytest.raises(LoadError, match="untrusted-case"):
        suite(Scripted([case], [case]), tmp_path, Reference("agents", "test.gen", 1))
    case["messages"][0]["content"][0][ADDRESS_KEYS[kind]] = "data:text/plain,hello"  # type: ignore[index]
    assert len(suite(Scripted([case]), tmp_path, Reference("agents", "test.gen", 1)).suite.cases) == 1


def test_secrets_of_the_run_reach_no_model_by_an_attachment(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.write(".env", "SOME_KEY=a-secret-of-this-project\n")
    project.write("notes.txt", "our key: a-secret-of-this-project\n")
    project.write("letter.txt", "our key: of-the-agent-under-test\n")
    project.write("agents/gen.md", "---\ntype: custom\nconfig: {entry: ../gen.py:run}\n---\n")
    headers = "{Authorization: Bearer of-the-agent-under-test}"
    project.write(
        "agents/x.md", f"---\ntype: http\nconfig:\n  endpoint: http://127.0.0.1:9/\n  headers: {headers}\n---\n"
    )
    project.write("plain.txt", "x")
    for name in (".env", "notes.txt", "letter.txt", "plain.txt"):
        part = {"type": "file", "source": f"file://{name}"}
        case = {"id": "dot", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, part]}]}
        project.write("gen.py", f"def run(prompt):\n    return {json.dumps([case])!r}\n")
        ran = project.test("-i", "agents:gen?count=1", "-n", "agents/x.md", "--dry-run")
        assert ("untrusted-case" in ran.err) == (name != "plain.txt"), ran.err
        assert (ran.code == 2) == (name != "plain.txt")


def test_an_attachment_beside_an_agent_of_another_project_is_refused(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
    (other / "a.txt").write_text("x")
    case = {"id": "a", "messages": [{"role": "user", "content": [{"type": "file", "source": "file://a.txt"}]}]}
    with pytest.raises(LoadError, match="untrusted-case"):
        suite(Scripted([case], [case]), root, Reference("agents", "test.gen", 1), folders=[other])


def test_only_the_listed_fields_of_a_case_are_the_generators() -> None:
    """A field that is new must be decided on: either it is refused, or it is named here and allowed."""
    refused = {"intent", "skip", "agents", "befores", "before_sequence", "iterations", "runs", "path", "timeout"}
    refused |= {
        "scoring",
        "min_score",
        "pass_rate",
        "confidence",
        "margin",
        "user",
        "team",
        "options",
        "workspace",
        "before_hook",
        "after_hook",
        "tools",  # no key of a file: set from the agents under test, later
    }
    assert Case.model_fields.keys() - ALLOWED == refused


def test_a_check_of_a_plugin_is_refused(tmp_path: Path) -> None:
    class Polite(Assertion):
        type: Literal["polite"]

        def check(self, evidence: Any) -> Verdict:
            raise NotImplementedError

    ASSERTIONS.register(Polite)
    case = {"id": "a", "input": "x", "assert": {"type": "all_of", "assertions": [{"type": "polite"}]}}
    try:
        with pytest.raises(LoadError, match="`polite`: a case that an agent generated may only use the checks of atp"):
            suite(Scripted([case], [case]), tmp_path, Reference("agents", "test.gen", 1))
    finally:
        ASSERTIONS.unregister("polite")


def test_a_case_of_an_agent_may_not_keep_golden_files(tmp_path: Path) -> None:
    case = {"id": "a", "input": "x", "assert": {"type": "all_of", "assertions": [{"type": "snapshot"}]}}
    with pytest.raises(LoadError, match="`snapshot`: a case that an agent generated may not keep golden files"):
        suite(Scripted([case], [case]), tmp_path, Reference("agents", "test.gen", 1))


def test_cases_of_an_agent_may_have_checks_and_files_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    case = {
        "id": "a",
        "messages": [{"role": "user", "content": [{"type": "file", "source": f"file://{tmp_path}/a.txt"}]}],
        "assertions": [
            {"type": "contains", "value": "x"},
            {"type": "llm_eval", "criteria": "x", "judge": "openai.gpt"},
        ],
        "expectations": ["it is polite"],
        "constraints": {"max_steps": 5, "allowed_tools": ["search"]},
        "metadata": {"about": "files"},
    }
    assert len(suite(Scripted([case]), tmp_path.resolve(), Reference("agents", "test.gen", 1)).suite.cases) == 1
