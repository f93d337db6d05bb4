"""Agents that are CrewAI crews and flows, in CrewAI's own environment, with a model of the mock server."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.crewai_environment import CREWAI, needs_crewai
from tests.agents.support.talk import HERE, LimitPassed, Talk, make_agent, run
from tests.engine.support.project import Project, Ran
from tests.models.mock_server import Answer, Heard, MockModels, calls, fails
from tests.waiting import WAIT_LIMIT

from atp.agents.adapter import AgentError, Reply
from atp.base.errors import ConfigurationError
from atp.suite.agent import Agent

CREWS = HERE / "crews.py"


def crew(name: str, **config: Any) -> Agent:
    """A crew of `crews.py`, in its environment."""
    given = {"crew_path": f"{CREWS}:{name}", "python": str(CREWAI), **config}
    return make_agent({"name": "c", "type": "crewai", "config": given})


def behave(heard: Heard) -> Answer:
    """Calls the weather tool for the city that is asked about, and answers with what that said."""
    asked = heard.prompt.lower()
    if "unreachable" in asked:
        return fails(400, "the model is unwell")
    if "as json" in asked:
        return {"sky": "clear"}
    if heard.tool_results:
        return f"It is {heard.tool_results[-1]}"
    city = next((one for one in ("Paris", "Atlantis") if one.lower() in asked), None)
    return calls(("weather", {"city": city})) if city and heard.tools else f"You said {len(heard.messages)} things"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MockModels]:
    needs_crewai()
    with MockModels(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))  # CrewAI keeps files there
        yield server


@pytest.fixture
def talk(tmp_path: Path, model: MockModels) -> Talk:
    """After the model's address is in the environment."""
    return Talk(tmp_path)


class Asked:
    """Turns with one agent, each a conversation of its own: CrewAI takes its time to start, so it does so seldom."""

    def __init__(self, talk: Talk, agent: Agent) -> None:
        self._talk = talk
        self._agent = agent
        self._number = 0

    async def __aenter__(self) -> "Asked":
        self._adapter = self._talk.adapter(self._agent)
        try:
            async with asyncio.timeout(WAIT_LIMIT):
                await self._adapter.start()
        except BaseException:
            await self._adapter.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._adapter.close()
        assert self._talk.alive() == []

    async def turn(self, prompt: str, **more: Any) -> Reply:
        """Ask it. What it tells is this turn's alone."""
        self._talk.events.clear()
        self._number += 1
        async with asyncio.timeout(WAIT_LIMIT):
            return await self._adapter.turn(
                self._talk.request(prompt, context={"session_id": f"s-{self._number}"}, **more)
            )

    async def fail(self, prompt: str, **more: Any) -> AgentError:
        """Ask it in vain."""
        with pytest.raises(AgentError) as caught:
            await self.turn(prompt, **more)
        return caught.value


def told(talk: Talk, kind: str) -> list[dict[str, Any]]:
    return [event.payload for event in talk.events if event.type == kind]


def file(talk: Talk, name: str, text: str) -> str:
    (talk.folder / name).write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport crews\n{text}\n")
    return name


def test_a_crew_with_a_tool(talk: Talk, model: MockModels) -> None:
    async def scene() -> None:
        async with Asked(talk, crew("", crew_path=file(talk, "one.py", "my_crew = crews.weather_crew"))) as asked:
            check_success(talk, await asked.turn("Paris"))
            reply = await asked.turn("Atlantis")
            assert reply.usage is not None
            assert reply.usage.llm_calls == 2, "what an earlier trial used is not counted"
            expected = {"tool": "weather", "input": {"city": "Atlantis"}, "output": "no such city", "status": "error"}
            assert told(talk, "tool_call") == [expected]
            error = await asked.fail("unreachable")
            assert "the model is unwell" in str(error)
            assert error.blame == "agent"
            talk.most_events = 1
            with pytest.raises(LimitPassed):
                await asked.turn("Paris")
            assert [event.type for event in talk.events] == ["progress", "llm_request"]

    asyncio.run(scene())
    assert "looking up Paris" in talk.logs
    assert {request.headers["Host"].partition(":")[0] for request in model.requests} == {"127.0.0.1"}


def check_success(talk: Talk, reply: Reply) -> None:
    assert reply.output == "It is clear in Paris"
    assert [event.type for event in talk.events] == ["progress", "llm_request", "tool_call", "llm_request"]
    assert told(talk, "progress") == [{"current_step": 1, "message": "answering"}]
    (call,) = told(talk, "tool_call")
    assert call.pop("duration_ms") >= 0
    assert call == {"tool": "weather", "input": {"city": "Paris"}, "output": "clear in Paris", "status": "success"}
    asked = told(talk, "llm_request")
    assert {one["model"] for one in asked} == {"mock-1"}
    assert reply.usage is not None
    assert (reply.usage.llm_calls, reply.usage.input_tokens, reply.usage.output_tokens) == (
        2,
        sum(one["input_tokens"] for one in asked),
        sum(one["output_tokens"] for one in asked),
    )


def test_what_a_function_makes(talk: Talk, model: MockModels) -> None:
    async def scene() -> None:
        async with Asked(talk, crew("chosen", inputs={"style": "dry", "place": "nowhere"})) as asked:
            task = {"description": "Hi", "input_data": {"place": "Rome"}}
            await asked.turn("Hi", task=task, options={"which": "styled"})
            assert "In the style dry, for Rome: Hi" in str(model.requests[0].messages)

            await asked.turn("Hi", options={"which": "two_tasks"})
            steps = [(one["current_step"], one["message"]) for one in told(talk, "progress")]
            assert steps == [(1, "looking"), (2, "telling")]

            reply = await asked.turn("Hi", options={"which": "reporting"})
            assert (talk.workspace / "reports/report.md").read_text("utf-8") == reply.output

            assert (await asked.turn("Hi", options={"which": "Based"})).output.startswith("You said")
            assert (await asked.turn("as json", options={"which": "structured"})).output == {"sky": "clear"}
            error = await asked.fail("rain", options={"which": "Failing"})
            assert str(error) == "agent error: LookupError: no rain here"
            error = await asked.fail("Hi", options={"which": "asks_a_person"})
            assert "the crew asks a person for feedback (`human_input`), and there is none" in str(error)
            error = await asked.fail("Hi", options={"which": "Verdict"})
            assert "`chosen` made a Verdict, which is neither a crew nor a flow" in str(error)

    asyncio.run(scene())


def test_a_flow_with_a_state_of_its_own(talk: Talk) -> None:
    async def scene() -> None:
        async with Asked(talk, crew("Shouting")) as asked:
            for prompt, said in (("hello", "HELLO"), ("again", "AGAIN")):
                assert (await asked.turn(prompt)).output == {"said": said, "rounds": 1}
                assert [one["message"] for one in told(talk, "progress")] == ["shout", "tell"]

    asyncio.run(scene())


SLOW_LISTENERS = """
import threading
from datetime import datetime

from crewai import Flow
from crewai.events import ToolUsageErrorEvent, ToolUsageFinishedEvent, crewai_event_bus
from crewai.flow.flow import start

heard, go_on = threading.Semaphore(0), threading.Semaphore(0)


def listener(number):
    def listens(source, event):
        go_on.acquire()
    return listens


# The bus calls the listeners of an event one after the other, in an order of its own.
for number in range(8):
    crewai_event_bus.on(ToolUsageFinishedEvent)(listener(number))
crewai_event_bus.on(ToolUsageErrorEvent)(lambda source, event: heard.release())


class Telling(Flow):
    @start()
    def tell(self):
        now = datetime.now()
        first = ToolUsageFinishedEvent(tool_name="first", tool_args={}, output="1", started_at=now, finished_at=now)
        crewai_event_bus.emit(self, first)
        crewai_event_bus.emit(self, event=ToolUsageErrorEvent(tool_name="second", tool_args={}, error="no"))
        heard.acquire()
        go_on.release(8)
        if self.state["prompt"] == "fail":
            raise LookupError("enough")
        return "told"
"""


def test_events_come_in_their_order(talk: Talk) -> None:
    """However long a crew's own listeners are busy with one, and however the crew ends."""

    async def scene() -> None:
        async with Asked(talk, crew("", crew_path=file(talk, "slow.py", SLOW_LISTENERS))) as asked:
            assert (await asked.turn("well")).output == "told"
            assert [one["tool"] for one in told(talk, "tool_call")] == ["first", "second"]
            assert str(await asked.fail("fail")) == "agent error: LookupError: enough"
            assert [one["tool"] for one in told(talk, "tool_call")] == ["first", "second"]

    asyncio.run(scene())


IN_THREADS = """
import threading
from datetime import datetime

from crewai import Flow
from crewai.events import ToolUsageFinishedEvent, crewai_event_bus
from crewai.flow.flow import start


def call(number):
    now = datetime.now()
    event = ToolUsageFinishedEvent(
        tool_name="search", tool_args={"number": number}, started_at=now, finished_at=now, output="found"
    )
    crewai_event_bus.emit(None, event)


class Busy(Flow):
    @start()
    def work(self):
        threads = [threading.Thread(target=call, args=(number,)) for number in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return "done"
"""


def test_threads_of_the_users_own_are_heard(talk: Talk) -> None:
    """What they do is checked, too: it must not pass by not looking."""
    (talk.folder / "busy.py").write_text(IN_THREADS)

    async def scene() -> None:
        async with Asked(talk, crew("", crew_path="busy.py:Busy")) as asked:
            assert (await asked.turn("go")).output == "done"
            assert sorted(one["input"]["number"] for one in told(talk, "tool_call")) == [0, 1, 2]

    asyncio.run(scene())


UNREADABLE = """
from crewai import Flow
from crewai.events import ToolUsageErrorEvent, crewai_event_bus
from crewai.flow.flow import start


class Odd(Flow):
    @start()
    def tell(self):
        crewai_event_bus.emit(self, ToolUsageErrorEvent.model_construct(tool_name="odd", tool_args={}))
        return "told"
"""


def test_events_that_cannot_be_read(talk: Talk) -> None:
    """What is not heard is not counted: that must not go unnoticed."""

    async def scene() -> None:
        async with Asked(talk, crew("", crew_path=file(talk, "odd.py", UNREADABLE))) as asked:
            error = await asked.fail("x")
            assert "CrewAI reports a ToolUsageErrorEvent that can't be read: AttributeError: " in str(error)

    asyncio.run(scene())


def test_two_crews_in_a_file(talk: Talk) -> None:
    async def scene() -> None:
        agent = crew("", crew_path=file(talk, "two.py", "b = crews.weather_crew\na = crews.styled"))
        with pytest.raises(AgentError, match=r"there are 2 crews or flows in two.py: a, b \(name it: `crew_path:"):
            async with Asked(talk, agent):
                pass

    asyncio.run(scene())


def test_an_environment_without_crewai(tmp_path: Path) -> None:
    error = run(Talk(tmp_path).fail(crew("weather_crew", python=sys.executable)))
    assert "CrewAI is not installed in this environment (install `crewai`" in str(error)
    assert error.blame == "environment"
    with pytest.raises(ConfigurationError, match="CrewAI is not installed in this environment") as refused:
        Talk(tmp_path).adapter(crew("weather_crew", python=None))
    assert "`python:`" in (refused.value.hint or "")


def test_frameworks_that_exclude_each_other_in_one_run(
    model: MockModels, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph in our process, CrewAI and code of the user's in environments of their own: one suite, one run."""
    for name, value in model.env.items():
        monkeypatch.setenv(name, value)
    agents = [
        {"name": "graph", "type": "langgraph", "config": {"graph_path": f"{HERE}/graphs.py:stateless", "model": "m"}},
        {"name": "crew", "type": "crewai", "config": crew("weather_crew", parallel=1).config.model_dump(mode="json")},
        {"name": "own", "type": "custom", "config": {"entry": "shop/agent.py:main", "python": sys.executable}},
    ]
    project.write(
        "shop/agent.py",
        """
        async def main(prompt, workspace):
            print("at work")
            (workspace / "note.txt").write_text(prompt)
            call = {"tool": "weather", "input": {"city": "Paris"}, "output": "clear", "status": "success"}
            yield {"event_type": "tool_call", "payload": call}
            yield "clear in Paris"
        """,
    )
    checks = [
        {"type": "contains", "value": "clear"},
        {"type": "tool_called", "name": "weather", "arguments": {"city": "Paris"}},
        {
            "type": "any_of",
            "assertions": [
                {"type": "tool_result", "name": "weather", "value": {"$regex": "clear"}},
                {"type": "tool_result", "name": "weather", "value": {"city": "Paris", "sky": "clear"}},
            ],
        },
    ]
    case = {"id": "paris", "task": {"description": "weather Paris"}, "assertions": checks}
    limited = {**case, "id": "limited", "assertions": [], "constraints": {"allowed_tools": ["search"]}}
    suite = project.suite(agents, [case, limited])
    process = project.start("test", suite, "--json", "--runs", "2")
    # A trial that is stopped ends its worker: CrewAI is imported three times.
    out, err = process.communicate(timeout=3 * WAIT_LIMIT)
    ran = Ran(process.returncode, out, err)
    found = {(one["agent_id"], one["id"]): one for one in ran.events if one["type"] == "result"}
    assert {key: one["status"] for key, one in found.items()} == {
        (name, case): status
        for name in ("graph", "crew", "own")
        for case, status in (("paris", "passed"), ("limited", "failed"))
    }, ran.out + ran.err
    assert ran.code == 1
    assert ran.err.count("Traceback") == 0
