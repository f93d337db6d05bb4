"""Notes the calls that models get while a trial runs, for its result: each request and its answer, without headers.

The log of a trial is a context variable, which the tasks of the trial inherit. Outside of a trial nothing is noted, and
a trial without model calls pays for an empty log only.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any

from atp.base.durations import milliseconds_since
from atp.base.json.text import encode
from atp.base.text import cut
from atp.suite.result import Asker, ModelCall, Usage

LONGEST_TEXT = 10_000
"""Characters that are kept of each text in a request or an answer."""
LONGEST_CALL = 60_000
"""Characters of a request or an answer that are kept as JSON. Of a longer one, the beginning is kept as text."""
MOST_IN_TRIAL = 1_000_000
"""Characters after which the requests and answers of a trial are left out."""
_FEWEST_REPEATED = 2
"""Messages. Judges get the same instructions each time, and a call should show them."""


class CallLog:
    """The model calls of one trial."""

    def __init__(self, asker: Callable[[], tuple[Asker, int]]) -> None:
        """`asker` says who asks at the moment, and in which turn."""
        self._asker = asker
        self._calls: list[ModelCall] = []
        self._began = time.monotonic()
        self._left = MOST_IN_TRIAL
        self._messages: dict[tuple[Asker, str], list[Any]] = {}
        """The messages of the newest call, by who asked and the connector."""

    def start(self, calls: list[ModelCall], began: float) -> None:
        """Add the calls from here on to this list, with times since `began`, which is one of the monotonic clock."""
        self._calls, self._began = calls, began
        self._messages.clear()

    def begin(self, connector: str, model: str, body: dict[str, Any]) -> ModelCall:
        """Add a call that is about to be made."""
        role, turn = self._asker()
        repeated = self._repeated((role, connector), body.get("messages"))
        if repeated:
            body = {**body, "messages": body["messages"][repeated:]}
        call = ModelCall(
            role=role,
            turn=turn,
            connector=connector,
            model=model,
            at_ms=round((time.monotonic() - self._began) * 1000, 3),
            repeated=repeated,
            request=self.bounded(body),
        )
        self._calls.append(call)
        return call

    def bounded(self, value: Any) -> Any:
        """The value with the current secrets masked and long texts cut; None if the trial has no room for more."""
        if self._left <= 0:
            return None
        try:
            kept = _shortened(value)
        except RecursionError:
            kept = cut(value, LONGEST_CALL)
        if len(encode(kept)) > LONGEST_CALL:
            kept = cut(value, LONGEST_CALL)
        self._left -= len(encode(kept))
        return kept

    def _repeated(self, asker: tuple[Asker, str], messages: Any) -> int:
        """How many messages at the beginning the call before had, too: a conversation is sent again with each call."""
        if not isinstance(messages, list):
            return 0
        before, self._messages[asker] = self._messages.get(asker, []), messages
        same = 0
        for one, other in zip(before, messages[:-1], strict=False):  # a call shows at least what is asked
            if one != other:
                break
            same += 1
        return same if same >= _FEWEST_REPEATED else 0


class CallNote:
    """Notes what becomes of one call."""

    def __init__(self, log: CallLog | None, call: ModelCall | None) -> None:
        """Without a log and a call it notes nothing."""
        self._log = log
        self._call = call

    def waited(self, milliseconds: float) -> None:
        """Add the time in which the request was not under way."""
        if self._call is not None:
            self._call.waited_ms = round(self._call.waited_ms + milliseconds, 3)

    def failed(self, why: str) -> None:
        """Add why a try failed after which the request is sent again."""
        if self._call is not None:
            self._call.retries.append(cut(why))

    def answered(self, raw: Any) -> None:
        """Set the body of the response."""
        if self._call is not None and self._log is not None:
            self._call.answer = self._log.bounded(raw)

    def used(self, usage: Usage) -> None:
        """Set what the answer used."""
        if self._call is not None:
            self._call.usage = copy(usage)


NOTHING_NOTED = CallNote(None, None)
"""The note of a call that no trial makes."""
_LOG: ContextVar[CallLog | None] = ContextVar("log", default=None)


@contextmanager
def noting_calls(log: CallLog) -> Iterator[None]:
    """Have the models note their calls in this log, also in the tasks and threads that are started inside."""
    before = _LOG.get()
    _LOG.set(log)
    try:
        yield
    finally:
        _LOG.set(before)


@contextmanager
def noted_call(connector: str, model: str, body: dict[str, Any]) -> Iterator[CallNote]:
    """Note a call with this body: when it began and how long it took, and the error if it fails."""
    log = _LOG.get()
    if log is None:
        yield NOTHING_NOTED
        return
    began, call = time.perf_counter(), log.begin(connector, model, body)
    try:
        yield CallNote(log, call)
    except Exception as error:
        call.error = cut(str(error) or type(error).__name__)
        raise
    except BaseException:  # the trial's time is up, or a limit is exceeded
        call.error = "cancelled before there was an answer"
        raise
    finally:
        call.duration_ms = milliseconds_since(began)


def _shortened(value: Any) -> Any:
    """The value with each text in it cut. Pictures are texts, too."""
    if isinstance(value, str):
        return cut(value, LONGEST_TEXT)
    if isinstance(value, dict):
        return {cut(key) if isinstance(key, str) else key: _shortened(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(one) for one in value]
    return value
