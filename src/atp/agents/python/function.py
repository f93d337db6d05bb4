"""Python code that is called in our own process: nothing but its answer, its events and what it prints comes out."""

import contextlib
import contextvars
import inspect
from collections.abc import AsyncGenerator, Awaitable, Generator
from typing import Any

from atp.agents.adapter import Adapter, AgentError, Finding, Reply, TurnRequest
from atp.agents.python.calling import Offer
from atp.agents.python.plain import plain, refusal
from atp.agents.reply import Answer
from atp.agents.wire import RAW_LENGTH
from atp.base.text import cut
from atp.usercode.contain import contained
from atp.usercode.exits import mark_foreign
from atp.usercode.printed import CAPTURE, Printed
from atp.usercode.signature import Callee
from atp.usercode.threads import Raised, Thread
from atp.usercode.worker.raised import said, traceback_text


class FunctionAdapter(Adapter):
    """Calls Python code in our own process."""

    def __init__(self, callee: Callee, offer: Offer) -> None:
        self._callee = callee
        self._takes = callee.takes
        self._offer = offer
        self._capturing = False

    async def start(self) -> None:
        """From now on, what agents print goes to their trials' logs."""
        if not self._capturing:
            self._capturing = True
            CAPTURE.begin()

    async def check(self) -> list[Finding]:
        """It was imported when this was made; to call it would be a test."""
        return [Finding(what="import", ok=True, detail="it could be imported")]

    async def close(self) -> None:
        """Give the process its output back."""
        if self._capturing:
            self._capturing = False
            CAPTURE.end()

    async def turn(self, request: TurnRequest) -> Reply:
        """Call it, and see to it that nothing but its answer comes out."""
        printed = Printed()
        context = contextvars.copy_context()
        context.run(printed.catch)
        context.run(mark_foreign)
        answer = Answer(request)
        try:
            await self._call(request, answer, context)
        except _AgentRaised as raised:
            printed.write(traceback_text(raised.error))
            raise AgentError(
                f"agent error: {cut(said(raised.error), RAW_LENGTH)}", reply=answer.finish()
            ) from raised.error
        finally:
            for line in printed.finish():
                request.log(line)
        return answer.finish()

    async def _call(self, request: TurnRequest, answer: Answer, context: contextvars.Context) -> None:
        function = self._callee.function
        args, kwargs = self._callee.arguments(self._offer.of(self._takes, request))
        if self._callee.is_async:
            made = function(*args, **kwargs)
        else:
            made = _value(await Thread(context).call(lambda: function(*args, **kwargs), last=True))
        if inspect.iscoroutine(made):
            made = _value(await contained(made, context))
        elif inspect.isawaitable(made):
            made = _value(await contained(_awaited(made), context))
        if inspect.isasyncgen(made):
            _ours(await contained(_stream(made, answer), context))
        elif inspect.isgenerator(made):
            await _drive(made, Thread(context), answer)
        else:
            answer.given_back(_plain(made))


class _AgentRaised(Exception):
    """Something came out of the agent's code, as against our own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _value(outcome: Any) -> Any:
    if isinstance(outcome, Raised):
        raise _AgentRaised(outcome.error)
    return outcome


def _plain(value: Any) -> Any:
    try:
        return plain(value)
    except BaseException as error:  # the agent's own class raises it, so it is neither our fault nor a real exit
        raise AgentError(f"agent error: {refusal(error)}") from error


def _ours(outcome: Any) -> None:
    if isinstance(outcome, Raised):
        raise outcome.error


async def _awaited(made: Awaitable[Any]) -> Any:
    return await made


async def _stream(made: AsyncGenerator[Any, Any], answer: Answer) -> None:
    """Take in what an async generator yields; what goes wrong in it is told apart from what goes wrong with us."""
    try:
        while True:
            try:
                item = await anext(made)
            except StopAsyncIteration:
                return
            except BaseException as error:
                raise _AgentRaised(error) from error
            Printed.aside(answer.yielded, _plain(item))
    finally:
        with contextlib.suppress(BaseException):  # it is stopped, and whatever it says to that changes nothing
            await made.aclose()


async def _drive(made: Generator[Any, Any, Any], thread: Thread, answer: Answer) -> None:
    """The same for a generator that may block: it does so in a thread, the same one for all its steps."""
    try:
        while True:
            outcome = await thread.call(lambda: next(made))
            if isinstance(outcome, Raised) and isinstance(outcome.error, StopIteration):
                if outcome.error.value is not None:
                    answer.given_back(_plain(outcome.error.value))
                return
            answer.yielded(_plain(_value(outcome)))
    finally:
        thread.give_back(made.close)
