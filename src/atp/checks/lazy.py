"""A property that is worked out when it is first asked for, and kept from then on."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801  (a decorator, as `property` is)
    """Like `functools.cached_property`, without the lock that Python 3.11 has there: it costs more than most values."""

    def __init__(self, work_out: Callable[[Any], Value]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    def __get__(self, owner: Any, _kind: type | None = None) -> Value:
        value = owner.__dict__[self._name] = self._work_out(owner)
        return value
