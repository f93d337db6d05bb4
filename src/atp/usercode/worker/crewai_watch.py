"""Watching a crew at work, on CrewAI's event bus.

The bus is one for the whole process, and calls its handlers in a pool of threads, in whatever order these come to it.
So the bus itself is listened to: an event is heard before the crew goes on, by whoever tells of it. A context variable
says whose trial it belongs to. Threads that the user starts don't have it: while only one trial is at work, as always
in a worker, it is that one's.
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

from ..json_values import told, words
from .events import Events

_CURRENT: contextvars.ContextVar[Any] = contextvars.ContextVar("atp_crewai_watcher", default=None)
_AT_WORK: list[Any] = []
"""The watchers of all trials that are at work."""


class Watcher:
    """Tells of one turn's tasks, models and tools."""

    def __init__(self, events: Events, steps: int) -> None:
        self._events = events
        self._lock = threading.Lock()
        self.step = steps
        """How many tasks, or methods of a flow, have begun in the conversation."""
        self._asked: dict[str, Any] = {}
        self._used: UsageMetrics | None = None
        self._model_calls = 0
        self._unread: tuple[str, Exception] | None = None

    def hear(self, source: Any, event: Any) -> None:
        """CrewAI tells of something."""
        try:
            getattr(self, _HEARD[type(event)])(source, event)
        except Exception as error:  # no fault of the crew's, which must not hear of it
            self._unread = self._unread or (type(event).__name__, error)

    def check(self) -> None:
        """See that all was heard: a limit on what was not would be kept by not looking. Raises `RuntimeError`."""
        if self._unread is not None:
            what, error = self._unread
            why = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"this version of CrewAI tells of a {what} that can't be read: {why}") from error

    def count(self, after: Any, before: Any) -> None:
        """What the crew's models say that they used, for those whose events don't."""
        if self._used is None and after is not None and before is not None:
            self._used = after.delta_since(before)
            self._model_calls = max(self._model_calls, self._used.successful_requests)

    def usage(self) -> dict[str, int]:
        """What all models used."""
        counts = {"llm_calls": self._model_calls}
        return counts if self._used is None else {**_tokens(self._used), **counts}

    def began(self, source: Any, event: Any) -> None:
        """A task begins, or a method of a flow."""
        method = getattr(event, "method_name", None)
        if method is not None and type(source).__module__.startswith("crewai."):
            return  # CrewAI's agents are flows themselves
        name = method or event.task_name or "task"
        with self._lock:
            self.step += 1
            self._events.tell("progress", current_step=self.step, message=str(name)[:200])

    def asked(self, _source: Any, event: Any) -> None:
        """A model is asked."""
        self._asked[event.call_id] = event.timestamp

    def answered(self, _source: Any, event: Any) -> None:
        """A model has answered."""
        used = UsageMetrics.from_provider_dict(event.usage)
        with self._lock:
            self._model_calls += 1
            if used is not None:
                self._used = self._used or UsageMetrics()
                self._used.add_usage_metrics(used)
        duration = _between(self._asked.pop(event.call_id, None), event.timestamp)
        tokens = {} if used is None else _tokens(used)
        self._events.tell("llm_request", model=event.model, duration_ms=duration, **tokens)

    def failed(self, _source: Any, event: Any) -> None:
        """A model could not be asked; what comes of it is the crew's business."""
        self._events.tell("error", error_type="LLMCallFailed", message=words(event.error)[:2000])

    def called(self, _source: Any, event: Any) -> None:
        """A tool has answered, or says that it failed."""
        failure = getattr(event, "failure", None)
        output = told(event.output) if failure is None else words(getattr(failure, "message", failure))
        duration = _between(event.started_at, event.finished_at)
        self._tell_call(event, output, failure is not None, duration)

    def broke(self, _source: Any, event: Any) -> None:
        """A tool failed."""
        self._tell_call(event, words(event.error), True, None)

    def _tell_call(self, event: Any, output: Any, failed: bool, duration: float | None) -> None:
        status = "error" if failed else "success"
        given = told(event.tool_args)
        self._events.tell(
            "tool_call", tool=event.tool_name, input=given, output=output, status=status, duration_ms=duration
        )


_HEARD: dict[Any, str] = {
    TaskStartedEvent: "began",
    MethodExecutionStartedEvent: "began",
    LLMCallStartedEvent: "asked",
    LLMCallCompletedEvent: "answered",
    LLMCallFailedEvent: "failed",
    ToolUsageFinishedEvent: "called",
    ToolUsageErrorEvent: "broke",
}


def _listen_to(bus: Any) -> None:
    emit = bus.emit

    @functools.wraps(emit)
    def heard(source: Any, event: Any) -> Any:
        watcher = _CURRENT.get() or (_AT_WORK[0] if len(_AT_WORK) == 1 else None)
        if watcher is not None and type(event) in _HEARD:
            watcher.hear(source, event)
        return emit(source, event)

    bus.emit = heard


_listen_to(crewai_event_bus)


@contextlib.contextmanager
def hearing(watcher: Watcher) -> Iterator[None]:
    """Have a watcher told of what happens in this context."""
    before = _CURRENT.get()
    _CURRENT.set(watcher)
    _AT_WORK.append(watcher)
    try:
        yield
    finally:
        _AT_WORK.remove(watcher)
        _CURRENT.set(before)


class _Nobody:
    """Whom a crew asks when it wants to ask a person."""

    def setup_messages(self, _context: Any) -> bool:
        """Nothing to prepare."""
        return False

    def post_setup_messages(self, _context: Any) -> None:
        """Nothing to prepare."""

    def handle_feedback(self, *_given: Any, **_more: Any) -> Any:
        """It has asked."""
        raise RuntimeError("the crew asks a person for feedback (`human_input`), and there is none")

    async def handle_feedback_async(self, *_given: Any, **_more: Any) -> Any:
        """It has asked."""
        return self.handle_feedback()


@contextlib.contextmanager
def nobody_to_ask() -> Iterator[None]:
    """Have a crew that asks a person fail, instead of waiting at a terminal."""
    try:
        from crewai.core.providers.human_input import set_provider  # type: ignore[import-not-found]
    except ImportError:  # an older one, which reads from the terminal; a worker has none
        yield
        return
    set_provider(_Nobody())
    yield


def _tokens(used: UsageMetrics) -> dict[str, int]:
    found = {"input_tokens": used.prompt_tokens, "output_tokens": used.completion_tokens}
    if used.cached_prompt_tokens:
        found["cache_read_tokens"] = used.cached_prompt_tokens
    if used.cache_creation_tokens:
        found["cache_creation_tokens"] = used.cache_creation_tokens
    return found


def _between(began: Any, ended: Any) -> float | None:
    return None if began is None or ended is None else round((ended - began).total_seconds() * 1000, 3)
