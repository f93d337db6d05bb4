"""Runs LangGraph graphs: a turn of the conversation in, what the graph did as events, its answer out."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..json_values import kind
from ..load import UnusableCode
from ..signature import AGENT_OFFER, Callee, required
from ..threads import in_thread
from .drivers import Sought, check_maker
from .events import Events
from .langgraph_state import Entrance, answer_of, in_words

if TYPE_CHECKING:
    from .langgraph_watch import Watcher

KEPT_THREADS = 1000
"""So many conversations a checkpointer in memory keeps: a run may hold a hundred thousand."""
_SOUGHT = Sought("graph", "graphs", "name it: `graph_path: file.py:name`", ("graph",))


class Interrupted(Exception):
    """The graph waits for a person, and there is none."""


def make_langgraph(place: str, name: str | None, folders: Sequence[Path]) -> Callee:
    """The agent that is a graph. Raises `UnusableCode`."""
    try:
        import langgraph.pregel  # noqa: F401
    except ModuleNotFoundError as error:
        raise UnusableCode(
            "LangGraph is not installed in this environment",
            "install `langgraph`, or name the interpreter of an environment that has it in `python:`",
            missing="langgraph",
        ) from error
    found = _SOUGHT.find(place, name, folders, (_is_graph, _is_draft))
    return Callee(_Agent(found, name or place).turn, (*AGENT_OFFER, "constraints"))


def _is_graph(value: Any, _module: ModuleType | None = None) -> bool:
    from langgraph.pregel.protocol import PregelProtocol

    return isinstance(value, PregelProtocol)


def _is_draft(value: Any, _module: ModuleType | None = None) -> bool:
    from langgraph.graph import StateGraph

    return isinstance(value, StateGraph)


class _Agent:
    """A graph, or a function that makes one, as an agent."""

    def __init__(self, found: Any, name: str) -> None:
        if not (_is_graph(found) or _is_draft(found) or callable(found)):
            raise UnusableCode(f"`{name}` is not a graph", f"it is of type {type(found).__name__}")
        if not _is_graph(found) and not _is_draft(found):
            check_maker(found, name, "graph")
        self._found = found
        self._name = name
        self._made: Any = None
        self._making: asyncio.Future[Any] | None = None
        self._entrance: Entrance | None = None
        self._threads: OrderedDict[str, None] = OrderedDict()

    async def turn(
        self,
        *,
        messages: list[dict[str, Any]],
        prompt: str,
        task: dict[str, Any],
        context: dict[str, Any],
        options: dict[str, Any],
        constraints: dict[str, Any],
        workspace: Path,
    ) -> AsyncIterator[dict[str, Any]]:
        """Run the graph for a turn."""
        from .langgraph_watch import Watcher  # where there is no LangGraph, that is said when the graph is loaded

        graph = await self._graph(context["config"])
        if self._entrance is None:
            self._entrance = Entrance(graph)
        session = context["session_id"]
        # The folder is made for every trial, as it is for commands: LangGraph copies what is in a `configurable`, so
        # nobody could tell when a graph looks at it. A setting of the user's own of that name goes before it.
        configurable = {"workspace": str(workspace), **options, "thread_id": session}
        config: dict[str, Any] = {"configurable": configurable}
        before = context["state"] or {}
        before = before if before.get("thread") == session else {"messages": 0, "steps": 0}
        known = before["messages"] if await self._remembers(graph, config, before) else 0
        events = Events()
        watcher = Watcher(events, before["steps"])
        config["callbacks"] = [watcher]
        if constraints.get("max_steps") is not None:
            # One more than is allowed: LangGraph raises when it has used up its limit, even if it has come to its end.
            # The step too many is told as an event when it begins, and so is stopped.
            config["recursion_limit"] = max(constraints["max_steps"] - before["steps"], 0) + 1
        given = self._entrance.take(messages[known:], prompt, task)
        if left_out := self._entrance.left_out(task):
            sys.stderr.write(f"the graph takes no {', '.join(left_out)}: left out of the `input_data`\n")
        async for event in events.during(_run(graph, given, config, watcher)):
            yield event
        self._keep(graph, session)
        state = _put_out(graph, events.result)
        answer = answer_of(state)
        if answer is None and isinstance(state, dict):
            sys.stderr.write(f"the graph added no message; its state has: {', '.join(map(str, state))}\n")
        yield {
            "output": answer,
            "tool_calls": watcher.unanswered(),
            "usage": watcher.usage(),
            # The conversation goes on with our answer, which a checkpointer has already.
            "state": {"thread": session, "messages": len(messages) + 1, "steps": watcher.step},
        }

    async def _graph(self, config: dict[str, Any]) -> Any:
        """The graph itself, made once."""
        if self._made is None:
            making = self._making = self._making or asyncio.ensure_future(self._make(config))
            try:
                self._made = await asyncio.shield(making)
            finally:
                if making.done():
                    self._making = None  # if it failed, the next turn tries again
        return self._made

    async def _make(self, config: dict[str, Any]) -> Any:
        made = self._found
        if not _is_graph(made) and not _is_draft(made):
            made = await _called(made, ({"configurable": config},) if required(made) else ())
            if inspect.isawaitable(made):
                made = await made
        if _is_draft(made):
            made = made.compile(checkpointer=_memory(made))
        if not _is_graph(made):
            raise TypeError(f"`{self._name}` made {kind(made)}, which is not a graph")
        return made

    async def _remembers(self, graph: Any, config: dict[str, Any], before: dict[str, Any]) -> bool:
        """Whether a checkpointer has the conversation so far; it may have been in a process that is gone."""
        if not before["messages"] or not getattr(graph, "checkpointer", None):
            return False
        try:
            snapshot = await graph.aget_state(config)
        except NotImplementedError:
            snapshot = graph.get_state(config)
        return bool(snapshot.values)

    def _keep(self, graph: Any, session: str) -> None:
        """Remember this conversation, and let a checkpointer in memory forget the oldest."""
        from langgraph.checkpoint.memory import InMemorySaver

        saver = getattr(graph, "checkpointer", None)
        if not isinstance(saver, InMemorySaver):
            return
        self._threads[session] = None
        self._threads.move_to_end(session)
        while len(self._threads) > KEPT_THREADS:
            saver.delete_thread(self._threads.popitem(last=False)[0])


async def _called(maker: Any, given: tuple[Any, ...]) -> Any:
    """Call what makes a graph, in a thread: it may block, and then its trial's time could not run out."""
    if not inspect.iscoroutinefunction(maker):
        try:
            return await in_thread(lambda: maker(*given))
        except RuntimeError as error:
            if "no running event loop" not in str(error):  # checkpointers for asyncio are made within its loop
                raise
    return maker(*given)


def _memory(draft: Any) -> Any:
    """A checkpointer of ours for a draft that talks: its state is kept from turn to turn, as it would be in use."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    # Whatever is in its state: it was not the user who asked for it to be written down.
    return InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=True)) if "messages" in draft.channels else None


async def _run(graph: Any, given: Any, config: dict[str, Any], watcher: Watcher) -> Any:
    """Run a graph to its end. Its last state."""
    last: list[Any] = [{}]

    def see(mode: str, chunk: Any) -> None:
        if mode == "values":
            last[0] = chunk
        elif "__interrupt__" in chunk:
            raise Interrupted(f"the graph waits for a person{in_words(chunk['__interrupt__'])}, and there is none")
        else:
            watcher.see(chunk)

    # Only these two, which LangGraph needs itself: with any other, or with graphs in nodes, it waits in another way,
    # which costs a tenth more.
    more = {"stream_mode": ["updates", "values"], **_context(graph, config)}
    try:
        async for one in graph.astream(given, config, **more):
            see(*one)
    except NotImplementedError:
        if watcher.began:
            raise
        # A checkpointer that knows no asyncio, like the one for SQLite.

        def run() -> None:
            for one in graph.stream(given, config, **more):
                see(*one)

        await in_thread(run)
    return last[0]


def _put_out(graph: Any, state: Any) -> Any:
    """What of its last state a graph gives to whoever calls it."""
    channels = getattr(graph, "output_channels", None)
    if not isinstance(state, dict) or not isinstance(channels, (list, tuple)):
        return state
    return {key: value for key, value in state.items() if key in channels}


def _context(graph: Any, config: dict[str, Any]) -> dict[str, Any]:
    """What a graph with a schema for its context gets as such: those of the settings that it knows."""
    schema = getattr(graph, "context_schema", None)
    if schema is None:
        return {}
    names = getattr(schema, "__annotations__", {})
    return {"context": {name: value for name, value in config["configurable"].items() if name in names}}
