"""Agents that are Python code, called in our own process.

`config.entry` names a function, sync or async, a generator or an async generator, an object that can be called, or a
class of such. Its further configuration is handed to it in `options`, below the case's own, and in `context["config"]`;
the state that its last reply asked for in `context["state"]`.
"""

import contextlib
import contextvars
import inspect
import traceback
from collections.abc import AsyncGenerator, Awaitable, Generator
from typing import Any

from atp.agents.adapter import Adapter, AgentError, ConfigurationError, Reply, Surroundings, TurnRequest
from atp.agents.answer import Answer
from atp.agents.breach import cut
from atp.agents.calling import Callee
from atp.agents.contain import contained
from atp.agents.entry import load_function
from atp.agents.printed import CAPTURE, Printed
from atp.agents.threads import Raised, Thread
from atp.suite.agent import Agent, AgentConfig, CustomConfig


class CustomAdapter(Adapter):
    """Calls a function of the user's."""

    def __init__(self, agent: Agent, surroundings: Surroundings) -> None:
        config: CustomConfig = agent.config
        if config.python is not None:
            raise ConfigurationError(
                "`python`, an environment of its own, is not supported yet", "leave it out to run in ATP's environment"
            )
        if config.entry is None:
            raise ConfigurationError("`custom` needs `entry`", "write `entry: module:function` or `file.py:function`")
        known = {*AgentConfig.model_fields, "entry", "python"}
        further = {name: value for name, value in (config.model_extra or {}).items() if name not in known}
        try:
            self._callee = Callee(load_function(config.entry, surroundings), further)
        except ConfigurationError as error:
            raise ConfigurationError(f"`{config.entry}`: {error}", error.hint) from error
        self._capturing = False

    async def start(self) -> None:
        """From now on, what agents print goes to their trials' logs."""
        if not self._capturing:
            self._capturing = True
            CAPTURE.begin()

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
        answer = Answer(request)
        try:
            await self._call(request, answer, context)
        except _AgentRaised as raised:
            printed.write(_traceback(raised.error))
            raise AgentError(f"agent error: {_said(raised.error)}", reply=answer.finish()) from raised.error
        finally:
            for line in printed.finish():
                request.log(line)
        return answer.finish()

    async def _call(self, request: TurnRequest, answer: Answer, context: contextvars.Context) -> None:
        function = self._callee.function
        args, kwargs = self._callee.arguments(request)
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
            answer.given_back(made)


class _AgentRaised(Exception):
    """Something came out of the agent's code, as against our own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _value(outcome: Any) -> Any:
    if isinstance(outcome, Raised):
        raise _AgentRaised(outcome.error)
    return outcome


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
            Printed.aside(answer.yielded, item)
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
                    answer.given_back(outcome.error.value)
                return
            answer.yielded(_value(outcome))
    finally:
        thread.give_back(made.close)


def _said(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        text = "(its text can't be told)"
    return cut(f"{name}: {text}" if text else name)


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error, limit=-10))
    except BaseException:
        return "(the traceback can't be told)\n"
