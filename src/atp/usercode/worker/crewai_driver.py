"""Runs CrewAI crews and flows: a turn of the conversation in, tasks, models and tools as events, its answer out."""

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
from ..signature import AGENT_OFFER, Callee, required
from ..threads import in_thread
from .drivers import PROMPT_KEYS, Sought, check_maker
from .events import Events

QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TESTING": "true",  # nobody is asked to share traces, and no record of the run is left in the folder
    "ANONYMIZED_TELEMETRY": "false",  # of the vector store that comes with it
    "OTEL_SDK_DISABLED": "true",
}
"""What keeps CrewAI from calling home and from asking questions. It is read when the package is imported."""
_SOUGHT = Sought("crew or flow", "crews or flows", "name it: `crew_path: file.py:name`", ("crew", "flow"))


def make_crewai(place: str, name: str | None, folders: Sequence[Path]) -> Callee:
    """The agent that is a crew or a flow. Raises `UnusableCode`."""
    os.environ.update(QUIET)
    try:
        import crewai.events  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        raise UnusableCode(
            "CrewAI is not installed in this environment",
            "install `crewai` 1.0 or newer, or name the interpreter of an environment that has it in `python:`",
            missing="crewai",
        ) from error
    found = _SOUGHT.find(place, name, folders, (_is_crew, _is_class))
    if _is_flow(found):
        # What a flow loads when it is first kicked off takes seconds, which would be the first trial's.
        with contextlib.suppress(Exception):
            importlib.import_module("crewai.memory.storage.lancedb_storage")
    return Callee(_Agent(found, name or place).turn, AGENT_OFFER)


def _is_crew(value: Any, _module: ModuleType | None = None) -> bool:
    from crewai import Crew, Flow

    return isinstance(value, (Crew, Flow))


def _is_class(value: Any, module: ModuleType) -> bool:
    """A flow's class, or one that makes a crew (`@CrewBase`)."""
    from crewai import Flow

    own = inspect.isclass(value) and value.__module__ == module.__name__
    return own and (issubclass(value, Flow) or callable(getattr(value, "crew", None)))


def _is_flow(found: Any) -> bool:
    from crewai import Flow

    return isinstance(found, Flow) or (inspect.isclass(found) and issubclass(found, Flow))


class _Agent:
    """A crew, a flow, or what makes one, as an agent."""

    def __init__(self, found: Any, name: str) -> None:
        if not _is_crew(found) and not callable(found):
            raise UnusableCode(f"`{name}` is not a crew or a flow", f"it is of type {type(found).__name__}")
        if not _is_crew(found):
            check_maker(found, name, "crew or flow")
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
        """Kick it off for a turn."""
        from .crewai_watch import Watcher, hearing, nobody_to_ask

        session, before = context["session_id"], context["state"] or {}
        steps = before.get("steps", 0) if before.get("session") == session else 0
        given = {
            "prompt": prompt,
            "messages": messages,
            "task": task.get("description") or prompt,
            "workspace": str(workspace),
        }
        given.update({key: value for key, value in options.items() if value is not None})
        given.update(task.get("input_data") or {})
        events = Events()
        watcher = Watcher(events, steps)
        with hearing(watcher), nobody_to_ask():
            async for event in events.during(self._kickoff(given, options, watcher)):
                yield event
        yield {
            "output": _answer_of(events.result),
            "usage": watcher.usage(),
            "state": {"session": session, "steps": watcher.step},
        }

    async def _kickoff(self, given: dict[str, Any], options: dict[str, Any], watcher: Any) -> Any:
        crew = await self._fresh(options)
        before = _counted(crew)
        result = await in_thread(lambda: _kick_off(crew, given))
        watcher.check()
        watcher.count(_counted(crew), before)
        return result

    async def _fresh(self, options: dict[str, Any]) -> Any:
        """A crew for this turn alone: what it remembers of one trial must not be there in another."""
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


def _kick_off(crew: Any, given: dict[str, Any]) -> Any:
    from crewai.events import crewai_event_bus

    try:
        result = crew.kickoff(inputs=_inputs(crew, given))
        if hasattr(result, "result") and hasattr(result, "__iter__") and hasattr(result, "__next__"):
            for _ in result:  # one that streams works while it is listened to
                pass
            result = result.result
        return result
    finally:
        crewai_event_bus.flush()  # what its listeners print and write belongs to this turn


def _inputs(crew: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What it is kicked off with. A flow whose state has a shape takes only what is in that."""
    fields = getattr(type(getattr(crew, "state", None)), "model_fields", None)
    if fields is None:
        return given
    key = next((one for one in PROMPT_KEYS if one in fields), None)
    prompt = {} if key is None else {key: given["prompt"]}
    return {**prompt, **{name: value for name, value in given.items() if name in fields}}


def _counted(crew: Any) -> Any:
    """What its models have used, all in all."""
    return crew.calculate_usage_metrics() if hasattr(crew, "calculate_usage_metrics") else None


def _answer_of(result: Any) -> Any:
    """The answer: a crew's last task gives text, JSON or a model; a flow anything."""
    if hasattr(result, "raw") and hasattr(result, "tasks_output"):
        if result.pydantic is not None:
            return jsonable(result.pydantic)
        return jsonable(result.json_dict) if result.json_dict is not None else result.raw
    return jsonable(result)
