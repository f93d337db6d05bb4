"""Agents that are LangGraph graphs, with a model that follows a script."""

import asyncio
import contextlib
import dataclasses
import os
import threading
from typing import Annotated, Any

from langchain_core.callbacks import CallbackManagerForLLMRun, adispatch_custom_event, dispatch_custom_event
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.types import Command, StreamWriter, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict


@tool
def weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    print(f"looking up {city}")  # noqa: T201
    return {"city": city, "sky": "clear"}


class ScriptedModel(BaseChatModel):
    """Calls the weather tool for a city in quotes, answers with what the tool said, else tells what it was told."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_more: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_more: Any,
    ) -> ChatResult:
        answer = self._answer(messages)
        answer.usage_metadata = {"input_tokens": len(messages), "output_tokens": 2, "total_tokens": len(messages) + 2}
        answer.response_metadata = {"model_name": "scripted-1"}
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        text = str(last.content)
        if isinstance(last, ToolMessage):
            return AIMessage(f"The tool said: {text}")
        if text.startswith("weather "):
            cities = text.split()[1:]
            calls = [{"name": "weather", "args": {"city": one}, "id": f"{one}-{len(messages)}"} for one in cities]
            return AIMessage("", tool_calls=calls)
        if text == "misname":
            return AIMessage("", tool_calls=[{"name": "wether", "args": {}, "id": "x"}])
        said = [str(one.content) for one in messages if isinstance(one, HumanMessage)]
        return AIMessage(f"I heard: {' | '.join(said)} ({len(messages)} messages)")


def chat(state: MessagesState) -> dict[str, Any]:
    return {"messages": [ScriptedModel().invoke(state["messages"])]}


async def async_chat(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await ScriptedModel().ainvoke(state["messages"])]}


def make_draft(node: Any = chat) -> Any:
    draft = StateGraph(MessagesState)
    draft.add_node("chat", node)
    draft.add_node("tools", ToolNode([weather], handle_tool_errors=True))
    draft.add_edge(START, "chat")
    draft.add_conditional_edges("chat", tools_condition)
    draft.add_edge("tools", "chat")
    return draft


draft = make_draft()
stateless = make_draft().compile()
remembering = make_draft(async_chat).compile(checkpointer=InMemorySaver())


def make_graph() -> Any:
    return make_draft().compile()


async def make_graph_later(config: RunnableConfig) -> Any:
    await asyncio.sleep(0)
    graph = StateGraph(MessagesState)
    told = config["configurable"]
    graph.add_node("say", lambda _state: {"messages": [AIMessage(f"made for {told}")]})
    graph.add_edge(START, "say")
    return graph


def make_no_graph() -> int:
    return 3


def one_node(node: Any, shape: Any = MessagesState, **compiled: Any) -> Any:
    graph = StateGraph(shape)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile(**compiled)


def _configured(_state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    known = {key: value for key, value in config["configurable"].items() if not key.startswith(("__", "checkpoint"))}
    return {"messages": [AIMessage(str(sorted(known.items())))]}


configured = one_node(_configured)


def _fails(_state: MessagesState) -> dict[str, Any]:
    raise LookupError("the node broke")


failing = one_node(_fails)


def _exits(_state: MessagesState) -> dict[str, Any]:
    raise SystemExit(0)


exiting = one_node(_exits)


def _asks(_state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(str(interrupt("may I?")))]}


asking = one_node(_asks, checkpointer=InMemorySaver())


def _large(_state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("ä🙂" * 1_700_000)]}  # 10 MB


large = one_node(_large)


async def _waits(_state: MessagesState) -> dict[str, Any]:
    await asyncio.sleep(3600)
    return {}


waiting = one_node(_waits)


class Sum(TypedDict, total=False):
    question: str
    total: int
    seen: list[str]


summing = one_node(lambda state: {"total": len(state["question"]), "seen": [state["question"]]}, Sum)


class Silent(TypedDict, total=False):
    amount: int


silent = one_node(lambda state: {"amount": state["amount"] + 1}, Silent)


class Counted(MessagesState):
    count: int


def _count(state: Counted) -> dict[str, Any]:
    count = state.get("count", 0) + 1
    return {"count": count, "messages": [AIMessage(f"turn {count}, {len(state['messages'])} messages")]}


counting = StateGraph(Counted)
counting.add_node("count", _count)
counting.add_edge(START, "count")


class Looping(MessagesState):
    pass


loop = StateGraph(Looping)
loop.add_node("round", lambda _state: {"messages": [AIMessage("again")]})
loop.add_edge(START, "round")
loop.add_conditional_edges("round", lambda state: END if len(state["messages"]) > 30 else "round")
loop = loop.compile()  # type: ignore[assignment]
short_loop = loop.with_config(recursion_limit=5)  # type: ignore[attr-defined]


def _calls_only(_state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=[{"name": "open_door", "args": {"door": 2}, "id": "1"}])]}


calls_only = one_node(_calls_only)


def _by_hand(_state: MessagesState) -> dict[str, Any]:
    call = AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1}, "id": "1"}])
    return {"messages": [call, ToolMessage("[1, 2]", tool_call_id="1"), AIMessage("done")]}


by_hand = one_node(_by_hand)


def _with_usage(state: MessagesState) -> dict[str, Any]:
    used = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    said = [AIMessage(text, usage_metadata=used) for text in ("one", "two")]
    return {"messages": said}


def _again(state: MessagesState) -> dict[str, Any]:
    return {"messages": state["messages"]}


by_another_library = StateGraph(MessagesState)
by_another_library.add_node("first", _with_usage)
by_another_library.add_node("again", _again)
by_another_library.add_edge(START, "first")
by_another_library.add_edge("first", "again")


def _inner(state: MessagesState) -> dict[str, Any]:
    return chat(state)


nested = one_node(one_node(_inner))


def _tells(state: MessagesState) -> dict[str, Any]:
    told = [[one.type, one.content] for one in state["messages"]]
    return {"messages": [AIMessage(str(told))]}


telling = one_node(_tells)


class SyncSaver(InMemorySaver):
    """A checkpointer that knows no asyncio, like the one for SQLite."""

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        raise NotImplementedError("use the async saver")

    async def aput(self, *_given: Any) -> Any:
        raise NotImplementedError("use the async saver")


without_asyncio = make_draft().compile(checkpointer=SyncSaver())


@dataclasses.dataclass
class Taste:
    style: str = "plain"


def _styled(_state: MessagesState, runtime: Runtime[Taste]) -> dict[str, Any]:
    return {"messages": [AIMessage(f"in {runtime.context.style}")]}


@dataclasses.dataclass
class Spot:
    workspace: str


def _placed(_state: MessagesState, runtime: Runtime[Spot]) -> dict[str, Any]:
    return {"messages": [AIMessage(f"in {runtime.context.workspace}")]}


def with_context(node: Any, schema: Any) -> Any:
    draft: Any = StateGraph(MessagesState, context_schema=schema)
    draft.add_node("say", node)
    draft.add_edge(START, "say")
    return draft.compile()


styled = with_context(_styled, Taste)
placed = with_context(_placed, Spot)


def saying(*events: Any) -> Any:
    """A graph that hands these over."""

    def node(_state: MessagesState) -> dict[str, Any]:
        for event in events:
            dispatch_custom_event("atp", event)
        return {"messages": [AIMessage("done")]}

    return one_node(node)


REPORT = {"type": "file", "path": "report.txt", "content": "all well ✓"}
SUMMARY = {"type": "structured", "name": "summary", "data": {"well": True}}
inside = saying({"artifacts": [SUMMARY]}, {"usage": {"cost_usd": 0.25}})


async def _hands_over(state: MessagesState, writer: StreamWriter) -> Any:
    writer({"atp": "for whoever looks at the graph's stream"})
    await adispatch_custom_event("words", {"usage": "nothing of ATP's"})
    await adispatch_custom_event("atp", {"artifacts": [REPORT], "usage": {"cost_usd": 0.5}})
    return await inside.ainvoke(state)


handing_over = one_node(_hands_over)
misnaming = saying({"artefacts": [REPORT]})
misshaping = saying("done")
mispricing = saying({"usage": {"cost_usd": "cheap"}})


@tool
def remember(word: str, state: Annotated[Any, InjectedState], call: Annotated[str, InjectedToolCallId]) -> Any:
    """Keep a word; the graph gives the tool its state, and takes a command from it."""
    return Command(update={"messages": [ToolMessage(f"kept {word} of {len(state['messages'])}", tool_call_id=call)]})


def _remembers(_state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=[{"name": "remember", "args": {"word": "x"}, "id": "1"}])]}


_injected: Any = StateGraph(MessagesState)
_injected.add_node("ask", _remembers)
_injected.add_node("tools", ToolNode([remember]))
_injected.add_edge(START, "ask")
_injected.add_edge("ask", "tools")
injected = _injected.compile()


async def _directly(_state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(str(await weather.ainvoke({"city": "Oslo"})))]}


direct = one_node(_directly)


async def _dies(_state: MessagesState) -> dict[str, Any]:
    await weather.ainvoke({"city": "Oslo"})
    os._exit(3)


dying = one_node(_dies)

_NEXT_TURN = threading.Event()
_WAITING: list[threading.Thread] = []


def _goes_on(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """Leaves a thread behind, which calls a tool while the next turn is at work."""

    def call_late() -> None:
        _NEXT_TURN.wait()
        weather.invoke({"city": "Oslo"}, config)

    if not _WAITING:
        _WAITING.append(threading.Thread(target=call_late))
        _WAITING[0].start()
    else:
        _NEXT_TURN.set()
        _WAITING[0].join()
    return {"messages": [AIMessage("done")]}


going_on = one_node(_goes_on)


def _forks(_state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """What a copy of the process does is not told: it may go on after the turn."""
    if (child := os.fork()) == 0:
        weather.invoke({"city": "Oslo"}, config)
        os._exit(0)
    os.waitpid(child, 0)
    return {"messages": [AIMessage("done")]}


forking = one_node(_forks)


async def _hands_over_no_json(_state: MessagesState) -> dict[str, Any]:
    await adispatch_custom_event("atp", {"artifacts": [set()]})
    await asyncio.sleep(0)
    await weather.ainvoke({"city": "Oslo"})  # too late
    return {}


hands_over_what_is_no_json = one_node(_hands_over_no_json)


def one_node_of(node: Any, shape: Any) -> Any:
    return one_node(node, shape)


class Moody(MessagesState):
    mood: str


mute = one_node(lambda _state: {"mood": "low"}, Moody)


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Opaque(BaseModel):
    thing: Any


RING: dict[str, Any] = {}
RING["ring"] = RING
ODD = {
    "model": Opaque(thing=object()),
    "bytes": Opaque(thing=b"\xff"),
    "ring": RING,
    "mute": Mute(),
    "nested": {"fine": 1, "inner": {"odd": Mute()}},
    "half": "half \ud800",
}
ODD_ERRORS = {"error": Speechless(), "half error": RuntimeError("half \ud800")}


@tool
def odd(which: str) -> Any:
    """Gives back what is no JSON."""
    if which in ODD_ERRORS:
        raise ODD_ERRORS[which]
    return ODD[which]


def _is_odd(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    which = str(state["messages"][-1].content)
    if which == "own message":
        return {"messages": [ToolMessage("half \udcff", tool_call_id="1"), AIMessage("well")]}
    with contextlib.suppress(Speechless, RuntimeError):
        odd.invoke({"which": which}, config)
    return {"messages": [AIMessage("well")]}


is_odd = one_node(_is_odd)


@tool(response_format="content_and_artifact")
def with_artifact(city: str) -> Any:
    """The weather, and what it was made from."""
    return f"clear in {city}", Mute()


def _asks_for_an_artifact(state: MessagesState) -> dict[str, Any]:
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage("well")]}
    return {"messages": [AIMessage("", tool_calls=[{"name": "with_artifact", "args": {"city": "Oslo"}, "id": "1"}])]}


draft_with_artifacts = StateGraph(MessagesState)
draft_with_artifacts.add_node("chat", _asks_for_an_artifact)
draft_with_artifacts.add_node("tools", ToolNode([with_artifact]))
draft_with_artifacts.add_edge(START, "chat")
draft_with_artifacts.add_conditional_edges("chat", tools_condition)
draft_with_artifacts.add_edge("tools", "chat")


class Total(TypedDict):
    total: int


_discreet = StateGraph(Sum, output_schema=Total)
_discreet.add_node("node", lambda state: {"total": len(state["question"])})
_discreet.add_edge(START, "node")
discreet = _discreet.compile()
