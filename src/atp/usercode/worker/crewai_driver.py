"""Runs CrewAI crews and flows as agents: a kickoff per turn, with an event per task, model call and tool call."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..json_values import jsonable, kind
from ..load import UnusableCode
from ..signature import AGENT_VALUES, Callee, required
from ..threads import in_thread
from .drivers import PROMPT_KEYS, AgentFinder, check_factory
from .events import Events

QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TESTING": "true",  # no question whether to share traces, and no record of the run in the folder
    "ANONYMIZED_TELEMETRY": "false",  # of CrewAI's vector store
    "OTEL_SDK_DISABLED": "true",
}
"""Variables that turn off CrewAI's telemetry and questions. CrewAI reads them when it is imported."""
_FINDER = AgentFinder("crew or flow", "crews or flows", "name it: `crew_path: file.py:name`", ("crew", "flow"))


def make_crewai(place: str, name: str | None, folders: Sequence[Path]) -> Callee:
    """Load a crew or a flow as an agent. Raises `UnusableCode`."""
    os.environ.update(QUIET)
    try:
        import crewai.events  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        raise UnusableCode(
            "CrewAI is not installed in this environment",
            "install `crewai` 1.0 or newer, or name the interpreter of an environment that has it in `python:`",
            missing="crewai",
        ) from error
    found = _FINDER.find(place, name, folders, (_is_crew, _is_class))
    if _is_flow(found):
        # A flow imports this module at its first kickoff. It takes seconds, which would count for the first trial.
        with contextlib.suppress(Exception):
            importlib.import_module("crewai.memory.storage.lancedb_storage")
    return Callee(_Agent(found, name or place).turn, AGENT_VALUES)


def _is_crew(value: Any, _module: ModuleType | None = None) -> bool:
    from crewai import Crew, Flow

    return isinstance(value, (Crew, Flow))


def _is_class(value: Any, module: ModuleType) -> bool:
    """True for a class of flows, or a class that makes a crew (`@CrewBase`)."""
    from crewai import Flow

    own = inspect.isclass(value) and value.__module__ == module.__name__
    return own and (issubclass(value, Flow) or callable(getattr(value, "crew", None)))


def _is_flow(found: Any) -> bool:
    from crewai import Flow

    return isinstance(found, Flow) or (inspect.isclass(found) and issubclass(found, Flow))


class _Agent:
    """A crew, a flow, or a class or function that makes one, as an agent."""

    def __init__(self, found: Any, name: str) -> None:
        if not _is_crew(found) and not callable(found):
            raise UnusableCode(f"`{name}` is not a crew or a flow", f"it is of type {type(found).__name__}")
        if not _is_crew(found):
            check_factory(found, name, "crew or flow")
        self._found = found
        self._name = name

    async def turn(
        self,
        messages: list[dict[str, Any]],
        prompt: str,
        task: dict[str, Any],
        context: dict[str, Any],
        options: dict[str, Any],
        workspace: Path,
    ) -> AsyncIterator[dict[str, Any]]:
        """Kick off a new crew for a turn."""
        from .crewai_watch import Watcher, no_human_input, watching

        session, before = context["session_id"], context["state"] or {}
        steps = before.get("steps", 0) if before.get("session") == session else 0
        inputs = {
            "prompt": prompt,
            "messages": messages,
            "task": task.get("description") or prompt,
            "workspace": str(workspace),
        }
        inputs.update({key: value for key, value in options.items() if value is not None})
        inputs.update(task.get("input_data") or {})
        events = Events()
        watcher = Watcher(events, steps)
        with watching(watcher), no_human_input():
            async for event in events.during(self._kickoff(inputs, options, watcher)):
                yield event
        yield {
            "output": _answer_of(events.result),
            "usage": watcher.usage(),
            "state": {"session": session, "steps": watcher.step},
        }

    async def _kickoff(self, inputs: dict[str, Any], options: dict[str, Any], watcher: Any) -> Any:
        crew = await self._new_crew(options)
        before = _total_usage(crew)
        result = await in_thread(lambda: _kick_off(crew, inputs))
        watcher.check()
        watcher.count(_total_usage(crew), before)
        return result

    async def _new_crew(self, options: dict[str, Any]) -> Any:
        """Make a crew for this turn alone: the memory of a crew must not carry over to another trial."""
        from crewai import Crew, Flow

        found = self._found
        if isinstance(found, Crew):
            return await in_thread(found.copy)
        if isinstance(found, Flow):
            return await in_thread(type(found))
        made = await in_thread(lambda: found(options) if required(found) else found())
        if inspect.isawaitable(made):
            made = await made
        if not _is_crew(made) and callable(getattr(made, "crew", None)):
            made = await in_thread(made.crew)
        if not _is_crew(made):
            raise TypeError(f"`{self._name}` made {kind(made)}, which is neither a crew nor a flow")
        return made


def _kick_off(crew: Any, inputs: dict[str, Any]) -> Any:
    from crewai.events import crewai_event_bus

    try:
        result = crew.kickoff(inputs=_inputs(crew, inputs))
        if hasattr(result, "result") and hasattr(result, "__iter__") and hasattr(result, "__next__"):
            for _ in result:  # a streaming crew works only while its stream is read
                pass
            result = result.result
        return result
    finally:
        crewai_event_bus.flush()  # what CrewAI's event listeners print belongs to this turn


def _inputs(crew: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a kickoff. A flow whose state has a schema takes only the fields of the schema."""
    fields = getattr(type(getattr(crew, "state", None)), "model_fields", None)
    if fields is None:
        return inputs
    key = next((one for one in PROMPT_KEYS if one in fields), None)
    prompt = {} if key is None else {key: inputs["prompt"]}
    return {**prompt, **{name: value for name, value in inputs.items() if name in fields}}


def _total_usage(crew: Any) -> Any:
    """The usage of all models of a crew so far."""
    return crew.calculate_usage_metrics() if hasattr(crew, "calculate_usage_metrics") else None


def _answer_of(result: Any) -> Any:
    """The answer: of a crew, the text, JSON or model of its last task; of a flow, any value."""
    if hasattr(result, "raw") and hasattr(result, "tasks_output"):
        if result.pydantic is not None:
            return jsonable(result.pydantic)
        return jsonable(result.json_dict) if result.json_dict is not None else result.raw
    return jsonable(result)
