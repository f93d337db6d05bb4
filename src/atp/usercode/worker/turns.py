"""Calls the agent in a worker for a turn, and reports what it yields and returns."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from pathlib import Path
from time import monotonic  # the agent may put another in its place
from typing import Any

from ..contain import value_of
from ..json_values import plain, refusal
from ..signature import Callee, is_async
from ..threads import Raised
from .events import AT_ONCE
from .jsonable import words


class _Refused(Exception):
    """The agent returned what is not JSON."""


class Turns:
    """Calls an agent, one turn at a time."""

    def __init__(
        self, callee: Callee, tell: Callable[[dict[str, Any]], None], end: Callable[[dict[str, Any]], None]
    ) -> None:
        self._callee = callee
        self._tell = tell
        self._end = end

    async def run(self, request: dict[str, Any]) -> None:
        """Call the agent, and report how the call ended."""
        for conversation in request["ended"]:
            self._callee.end(conversation)
        AT_ONCE.set(self._yielded)
        try:
            end = await self._call(request["turn"], request["conversation"])
        except _Refused as refused:
            end = {"refused": str(refused)}
        except Raised as raised:
            if isinstance(raised.error, _Refused):  # what a driver of ours tells is refused within its own code
                end = {"refused": str(raised.error)}
            else:
                end = {"raised": {"said": words(raised), "traceback": words(raised.traceback)}}
        self._end(end)

    async def _call(self, given: dict[str, Any], conversation: str) -> dict[str, Any]:
        if "workspace" in given:
            given["workspace"] = Path(given["workspace"])
        args, kwargs = self._callee.parameters.arguments(given)
        context = contextvars.copy_context()
        function = self._callee.find(conversation)
        if function is None:
            function = await value_of(lambda: self._callee.make(conversation), context)
        call = functools.partial(function, *args, **kwargs)
        value = await value_of(call, context, blocks=not is_async(function), on_yield=self._yielded)
        return {"ended": True} if value is None else {"returned": _checked(value)}

    def _yielded(self, item: Any) -> None:
        self._tell({"yielded": _checked(item), "at": monotonic()})


def _checked(value: Any) -> Any:
    try:
        return plain(value)
    except BaseException as error:
        raise _Refused(refusal(error)) from error
