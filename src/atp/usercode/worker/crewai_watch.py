"""Reports what a crew does, from the events on CrewAI's event bus.

There is one bus per process, and it calls its handlers in a pool of threads, in no certain order. So `emit` itself is
wrapped: an event is reported in the thread that emits it, before the crew goes on. A context variable names the trial
of an event. Threads that the user's code starts don't have the variable: their events belong to the only active trial,
if there is just one, as always in a worker.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
from collections.abc import Iterator
from typing import Any

from crewai.events import (  # type: ignore[import-not-found]
    LLMCallCompletedEvent,
    LLMCallFailedEvent,
    LLMCallStartedEvent,
    MethodExecutionStartedEvent,
    TaskStartedEvent,
    ToolUsageErrorEvent,
    ToolUsageFinishedEvent,
    crewai_event_bus,
)
from crewai.types.usage_metrics import UsageMetrics  # type: ignore[import-not-found]

from ..json_values import event_value, safe_text
from .events import Events

_CURRENT: contextvars.ContextVar[Any] = contextvars.ContextVar("atp_crewai_watcher", default=None)
_ACTIVE: list[Any] = []
"""The watchers of all turns that are running."""


class Watcher:
    """Reports the tasks, model calls and tool calls of one turn."""

    def __init__(self, events: Events, steps: int) -> None:
        self._events = events
        self._lock = threading.Lock()
        self.step = steps
        """The number of tasks, or methods of a flow, that have started in the conversation."""
        self._started: dict[str, Any] = {}
        self._used: UsageMetrics | None = None
        self._model_calls = 0
        self._failure: tuple[str, Exception] | None = None

    def on_event(self, source: Any, event: Any) -> None:
        """Report an event of CrewAI."""
        try:
            getattr(self, _HANDLERS[type(event)])(source, event)
        except Exception as error:  # not an error of the crew, so raised by `check`, not in the crew's code
            self._failure = self._failure or (type(event).__name__, error)

    def check(self) -> None:
        """Raise `RuntimeError` if an event could not be read: limits would not count what it reports."""
        if self._failure is not None:
            what, error = self._failure
            why = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"this version of CrewAI reports a {what} that can't be read: {why}") from error

    def count(self, after: Any, before: Any) -> None:
        """Use the crew's own usage metrics if the events of its models have no usage."""
        if self._used is None and after is not None and before is not None:
            self._used = after.delta_since(before)
            self._model_calls = max(self._model_calls, self._used.successful_requests)

    def usage(self) -> dict[str, int]:
        """The usage of all models."""
        counts = {"llm_calls": self._model_calls}
        return counts if self._used is None else {**_tokens(self._used), **counts}

    def on_start(self, source: Any, event: Any) -> None:
        """Report the start of a task, or of a method of a flow."""
        method = getattr(event, "method_name", None)
        if method is not None and type(source).__module__.startswith("crewai."):
            return  # CrewAI's own agents are flows too
        name = method or event.task_name or "task"
        with self._lock:
            self.step += 1
            self._events.report("progress", current_step=self.step, message=str(name))

    def on_model_start(self, _source: Any, event: Any) -> None:
        """Note when a model call started."""
        self._started[event.call_id] = event.timestamp

    def on_model_end(self, _source: Any, event: Any) -> None:
        """Report a model call."""
        used = UsageMetrics.from_provider_dict(event.usage)
        with self._lock:
            self._model_calls += 1
            if used is not None:
                self._used = self._used or UsageMetrics()
                self._used.add_usage_metrics(used)
        duration = _duration_ms(self._started.pop(event.call_id, None), event.timestamp)
        tokens = {} if used is None else _tokens(used)
        self._events.report("llm_request", model=event.model, duration_ms=duration, **tokens)

    def on_model_error(self, _source: Any, event: Any) -> None:
        """Report a failed model call. The crew decides whether the turn fails."""
        self._events.report("error", error_type="LLMCallFailed", message=safe_text(event.error))

    def on_tool_end(self, _source: Any, event: Any) -> None:
        """Report a tool call that returned, with a result or a failure."""
        failure = getattr(event, "failure", None)
        output = event_value(event.output) if failure is None else safe_text(getattr(failure, "message", failure))
        duration = _duration_ms(event.started_at, event.finished_at)
        self._report_call(event, output, failure is not None, duration)

    def on_tool_error(self, _source: Any, event: Any) -> None:
        """Report a tool call that raised."""
        self._report_call(event, safe_text(event.error), True, None)

    def _report_call(self, event: Any, output: Any, failed: bool, duration: float | None) -> None:
        status = "error" if failed else "success"
        arguments = event_value(event.tool_args)
        self._events.report(
            "tool_call", tool=event.tool_name, input=arguments, output=output, status=status, duration_ms=duration
        )


_HANDLERS: dict[Any, str] = {
    TaskStartedEvent: "on_start",
    MethodExecutionStartedEvent: "on_start",
    LLMCallStartedEvent: "on_model_start",
    LLMCallCompletedEvent: "on_model_end",
    LLMCallFailedEvent: "on_model_error",
    ToolUsageFinishedEvent: "on_tool_end",
    ToolUsageErrorEvent: "on_tool_error",
}


def _wrap_emit(bus: Any) -> None:
    emit = bus.emit

    @functools.wraps(emit)
    def reporting_emit(source: Any, event: Any) -> Any:
        watcher = _CURRENT.get() or (_ACTIVE[0] if len(_ACTIVE) == 1 else None)
        if watcher is not None and type(event) in _HANDLERS:
            watcher.on_event(source, event)
        return emit(source, event)

    bus.emit = reporting_emit


_wrap_emit(crewai_event_bus)


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Pass the events of this context to a watcher."""
    before = _CURRENT.get()
    _CURRENT.set(watcher)
    _ACTIVE.append(watcher)
    try:
        yield
    finally:
        _ACTIVE.remove(watcher)
        _CURRENT.set(before)


class _NoHumanInput:
    """A provider of human input for CrewAI that raises."""

    def setup_messages(self, _context: Any) -> bool:
        """Do nothing."""
        return False

    def post_setup_messages(self, _context: Any) -> None:
        """Do nothing."""

    def handle_feedback(self, *_given: Any, **_more: Any) -> Any:
        """Raise `RuntimeError`."""
        raise RuntimeError("the crew asks a person for feedback (`human_input`), and there is none")

    async def handle_feedback_async(self, *_given: Any, **_more: Any) -> Any:
        """Raise `RuntimeError`."""
        return self.handle_feedback()


@contextlib.contextmanager
def no_human_input() -> Iterator[None]:
    """Make a crew that asks for human input fail, instead of waiting at a terminal."""
    try:
        from crewai.core.providers.human_input import set_provider  # type: ignore[import-not-found]
    except ImportError:  # an older version, which reads from the terminal; a worker has no terminal
        yield
        return
    set_provider(_NoHumanInput())
    yield


def _tokens(used: UsageMetrics) -> dict[str, int]:
    found = {"input_tokens": used.prompt_tokens, "output_tokens": used.completion_tokens}
    if used.cached_prompt_tokens:
        found["cache_read_tokens"] = used.cached_prompt_tokens
    if used.cache_creation_tokens:
        found["cache_creation_tokens"] = used.cache_creation_tokens
    return found


def _duration_ms(start: Any, end: Any) -> float | None:
    return None if start is None or end is None else round((end - start).total_seconds() * 1000, 3)
