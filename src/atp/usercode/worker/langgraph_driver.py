"""Runs LangGraph graphs as agents: a run of the graph per turn, with an event per step, model call and tool call."""

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
from ..signature import AGENT_VALUES, Callee, required
from ..threads import in_thread
from .drivers import AgentFinder, check_factory
from .events import Events
from .langgraph_state import GraphInput, answer_of, interrupt_text

if TYPE_CHECKING:
    from .langgraph_watch import Watcher

KEPT_THREADS = 1000
"""The number of conversations that an in-memory checkpointer keeps: a run may have a hundred thousand."""
_FINDER = AgentFinder("graph", "graphs", "name it: `graph_path: file.py:name`", ("graph",))


class Interrupted(Exception):
    """Raised when the graph waits for human input."""


def make_langgraph(place: str, name: str | None, folders: Sequence[Path]) -> Callee:
    """Load a graph as an agent. Raises `UnusableCode`."""
    try:
        import langgraph.pregel  # noqa: F401
    except ModuleNotFoundError as error:
        raise UnusableCode(
            "LangGraph is not installed in this environment",
            "install `langgraph`, or name the interpreter of an environment that has it in `python:`",
            missing="langgraph",
        ) from error
    found = _FINDER.find(place, name, folders, (_is_graph, _is_builder))
    return Callee(_Agent(found, name or place).turn, (*AGENT_VALUES, "constraints"))


def _is_graph(value: Any, _module: ModuleType | None = None) -> bool:
    from langgraph.pregel.protocol import PregelProtocol

    return isinstance(value, PregelProtocol)


def _is_builder(value: Any, _module: ModuleType | None = None) -> bool:
    from langgraph.graph import StateGraph

    return isinstance(value, StateGraph)


class _Agent:
    """A graph, or a function that makes one, as an agent."""

    def __init__(self, found: Any, name: str) -> None:
        if not (_is_graph(found) or _is_builder(found) or callable(found)):
            raise UnusableCode(f"`{name}` is not a graph", f"it is of type {type(found).__name__}")
        if not _is_graph(found) and not _is_builder(found):
            check_factory(found, name, "graph")
        self._found = found
        self._name = name
        self._made: Any = None
        self._making: asyncio.Future[Any] | None = None
        self._input: GraphInput | None = None
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
        from .langgraph_watch import Watcher  # a missing LangGraph is reported by `make_langgraph`

        graph = await self._graph(context["config"])
        if self._input is None:
            self._input = GraphInput(graph)
        session = context["session_id"]
        # The folder is made for every trial, as for commands: LangGraph copies the `configurable`, so a lazy value
        # would always be read. A `workspace` in the user's options overrides the folder.
        configurable = {"workspace": str(workspace), **options, "thread_id": session}
        config: dict[str, Any] = {"configurable": configurable}
        before = context["state"] or {}
        before = before if before.get("thread") == session else {"messages": 0, "steps": 0}
        known = before["messages"] if await self._remembers(graph, config, before) else 0
        events = Events()
        watcher = Watcher(events, before["steps"])
        config["callbacks"] = [watcher]
        if constraints.get("max_steps") is not None:
            # One more than is allowed: LangGraph raises when its limit is used up, even if the graph has just ended.
            # The engine stops the trial at the event of the step that is one too many.
            config["recursion_limit"] = max(constraints["max_steps"] - before["steps"], 0) + 1
        graph_input = self._input.values(messages[known:], prompt, task)
        if left_out := self._input.unused_data(task):
            sys.stderr.write(f"the graph takes no {', '.join(left_out)}: left out of the `input_data`\n")
        async for event in events.during(_run(graph, graph_input, config, watcher)):
            yield event
        self._limit_threads(graph, session)
        state = _output(graph, events.result)
        answer = answer_of(state)
        if answer is None and isinstance(state, dict):
            sys.stderr.write(f"the graph added no message; its state has: {', '.join(map(str, state))}\n")
        yield {
            "output": answer,
            "tool_calls": watcher.unanswered(),
            "usage": watcher.usage(),
            # The next turn's messages include this answer, which a checkpointer has already.
            "state": {"thread": session, "messages": len(messages) + 1, "steps": watcher.step},
        }

    async def _graph(self, config: dict[str, Any]) -> Any:
        """The compiled graph, made at the first turn."""
        if self._made is None:
            making = self._making = self._making or asyncio.ensure_future(self._make(config))
            try:
                self._made = await asyncio.shield(making)
            finally:
                if making.done():
                    self._making = None  # after a failure, the next turn tries again
        return self._made

    async def _make(self, config: dict[str, Any]) -> Any:
        made = self._found
        if not _is_graph(made) and not _is_builder(made):
            made = await _call_factory(made, ({"configurable": config},) if required(made) else ())
            if inspect.isawaitable(made):
                made = await made
        if _is_builder(made):
            made = made.compile(checkpointer=_own_checkpointer(made))
        if not _is_graph(made):
            raise TypeError(f"`{self._name}` made {kind(made)}, which is not a graph")
        return made

    async def _remembers(self, graph: Any, config: dict[str, Any], before: dict[str, Any]) -> bool:
        """True if the checkpointer has the conversation so far. A checkpointer in an ended process's memory is lost."""
        if not before["messages"] or not getattr(graph, "checkpointer", None):
            return False
        try:
            snapshot = await graph.aget_state(config)
        except NotImplementedError:
            snapshot = graph.get_state(config)
        return bool(snapshot.values)

    def _limit_threads(self, graph: Any, session: str) -> None:
        """Delete the oldest conversations of an in-memory checkpointer."""
        from langgraph.checkpoint.memory import InMemorySaver

        saver = getattr(graph, "checkpointer", None)
        if not isinstance(saver, InMemorySaver):
            return
        self._threads[session] = None
        self._threads.move_to_end(session)
        while len(self._threads) > KEPT_THREADS:
            saver.delete_thread(self._threads.popitem(last=False)[0])


async def _call_factory(factory: Any, args: tuple[Any, ...]) -> Any:
    """Call a function that makes a graph, in a thread: it may block, and would block the trial's time limit too."""
    if not inspect.iscoroutinefunction(factory):
        try:
            return await in_thread(lambda: factory(*args))
        except RuntimeError as error:
            if "no running event loop" not in str(error):  # asyncio checkpointers need a running loop
                raise
    return factory(*args)


def _own_checkpointer(builder: Any) -> Any:
    """An in-memory checkpointer for a graph with messages, which has one in production too. None for other graphs."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    # With pickle, so that any state can be saved: the user did not ask for a checkpointer.
    return InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=True)) if "messages" in builder.channels else None


async def _run(graph: Any, graph_input: Any, config: dict[str, Any], watcher: Watcher) -> Any:
    """Run a graph, and return its last state."""
    last: list[Any] = [{}]

    def on_chunk(mode: str, chunk: Any) -> None:
        if mode == "values":
            last[0] = chunk
        elif "__interrupt__" in chunk:
            raise Interrupted(
                f"the graph waits for a person{interrupt_text(chunk['__interrupt__'])}, and there is none"
            )
        else:
            watcher.on_update(chunk)

    # Only these two modes, which LangGraph uses itself: with others, or with `subgraphs`, a run takes a tenth longer.
    more = {"stream_mode": ["updates", "values"], **_context(graph, config)}
    try:
        async for one in graph.astream(graph_input, config, **more):
            on_chunk(*one)
    except NotImplementedError:
        if watcher.has_started:
            raise
        # A checkpointer without async methods, like the one for SQLite.

        def run() -> None:
            for one in graph.stream(graph_input, config, **more):
                on_chunk(*one)

        await in_thread(run)
    return last[0]


def _output(graph: Any, state: Any) -> Any:
    """The output channels of a graph's last state."""
    channels = getattr(graph, "output_channels", None)
    if not isinstance(state, dict) or not isinstance(channels, (list, tuple)):
        return state
    return {key: value for key, value in state.items() if key in channels}


def _context(graph: Any, config: dict[str, Any]) -> dict[str, Any]:
    """The `context` argument for a graph with a context schema: the settings that the schema has."""
    schema = getattr(graph, "context_schema", None)
    if schema is None:
        return {}
    names = getattr(schema, "__annotations__", {})
    return {"context": {name: value for name, value in config["configurable"].items() if name in names}}
