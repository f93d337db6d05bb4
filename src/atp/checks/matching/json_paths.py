"""Evaluates JSONPath (RFC 9535) on a JSON value."""

import copy
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from atp.base.json.found import DEEPEST, MISSING
from atp.checks.matching.compare import difference, fits
from atp.checks.matching.patterns import check_time, run, time_limit
from atp.suite.matcher import is_matcher
from atp.suite.paths import full_path, is_one_place


class Place(NamedTuple):
    """A path, ready to be looked up."""

    query: Any
    """The compiled path."""
    single: bool
    """True if the path has names and indexes only, so that it finds at most one value."""
    steps: tuple[str | int, ...] | None
    """The names and indexes of a single path, unless they need escapes."""


_STEPS = re.compile(r"\['([^'\\]*)'\]|\[(-?\d+)\]")


def look_up(path: str, value: Any) -> Any:
    """The value that a path finds, or the list of all values if it finds several.

    `MISSING` if the path finds nothing. A list of one counts as its element.
    """
    place = _place(path)
    if place.steps is not None:
        return _walk(place.steps, value)
    with time_limit():
        found = [node.value for node in place.query.find(value)]
    return found[0] if len(found) == 1 else found or MISSING


def without(paths: Iterable[str], value: Any) -> Any:
    """A copy of a value without what the paths find. All paths are followed before anything is left out."""
    holders: dict[tuple[str | int, ...], set[str | int]] = {}
    with time_limit():
        for path in paths:
            for node in _place(path).query.find(value):
                if node.location:
                    holders.setdefault(tuple(node.location[:-1]), set()).add(node.location[-1])
    if not holders:
        return value
    copied = copy.deepcopy(value)
    for steps in sorted(holders, key=len, reverse=True):
        holder = _walk(steps, copied)
        for key in sorted(holders[steps], key=lambda one: one if isinstance(one, int) else 0, reverse=True):
            del holder[key]  # of a list, the last first: the others keep their places
    return copied


def names_one_place(path: str) -> bool:
    """Whether a path can only ever find one value."""
    return _place(path).single


def unlike(path: str, value: Any, found: Any) -> bool:
    """Whether what a path found is not the value that was expected there.

    An expected list may also list the values that a single value may have. A path that finds nothing differs from every
    value, except that a path which could find many is like an empty list.
    """
    if found is MISSING:
        return not may_find_nothing(path, value)
    if difference(value, found) is None:
        return False
    if isinstance(value, list) and not isinstance(found, list | dict):
        return all(difference(one, found) is not None for one in value)
    # A list of one counts as its element, but it still is a list.
    return names_one_place(path) or difference(value, [found]) is not None


def may_find_nothing(path: str, value: Any) -> bool:
    """Whether the value that is expected at a path is as expected if the path finds nothing."""
    if names_one_place(path):
        return False
    return value == [] or (is_matcher(value) and "$length" in value and fits(value, []))


def _walk(steps: tuple[str | int, ...], value: Any) -> Any:
    for step in steps:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return MISSING
        elif not isinstance(value, list) or not -len(value) <= step < len(value):
            return MISSING
        value = value[step]
    return value


@lru_cache(maxsize=1024)
def _place(path: str) -> Place:
    query = _environment().compile(full_path(path))
    text = str(query)
    _limit_filters(query)
    single = is_one_place(query)
    steps = None
    if single and "\\" not in text:
        steps = tuple(int(index) if index else name for name, index in _STEPS.findall(text))
    return Place(query, single, steps)


def _limit_filters(query: Any) -> None:
    """Let every filter of a compiled path look at the clock: filters inside filters take time without bound."""
    for segment in query.segments:
        for selector in segment.selectors:
            if (expression := getattr(selector, "expression", None)) is not None:
                selector.expression = _TimedFilter(expression)
                _limit_subqueries(expression)


def _limit_subqueries(expression: Any) -> None:
    """Do the same for the paths inside a filter. Its operands are in attributes of these names, by kind."""
    if (query := getattr(expression, "query", None)) is not None:
        _limit_filters(query)
    operands = [getattr(expression, name, None) for name in ("expression", "left", "right")]
    for operand in (*operands, *getattr(expression, "args", ())):
        if operand is not None:
            _limit_subqueries(operand)


class _TimedFilter:
    """The expression of a filter, within the time that a check has for searching."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def evaluate(self, context: Any) -> Any:
        check_time()
        return self._expression.evaluate(context)


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jsonpath_rfc9535  # loaded when there is a path to follow

    class Environment(jsonpath_rfc9535.JSONPathEnvironment):
        """Looks at the clock wherever a path descends (`..`), which several times in one path takes long."""

        @property
        def max_recursion_depth(self) -> int:  # type: ignore[override]  # a plain attribute in the library
            check_time()
            return DEEPEST + 1

    environment: Any = Environment()
    # The two major versions of the library keep their functions under different names.
    functions = getattr(environment, "functions", None) or environment.function_extensions
    for name, method in (("match", "fullmatch"), ("search", "search")):
        functions[name] = _TimedFunction(functions[name], method)
    return environment


class _TimedFunction:
    """A path's `match()` or `search()`, within the time that a check has for searching."""

    def __init__(self, standard: Any, method: str) -> None:
        self.arg_types = standard.arg_types
        self.return_type = standard.return_type
        self._method = method

    def __call__(self, text: object, pattern: object) -> bool:
        if not isinstance(text, str) or not isinstance(pattern, str):
            return False
        compiled = _i_regexp(pattern)
        return compiled is not None and bool(run(getattr(compiled, self._method), text))


_DOTS = re.compile(r"\\.|\[(?:[^\]\\]|\\.)*\]|\.", re.DOTALL)


@lru_cache(maxsize=256)
def _i_regexp(pattern: str) -> Any:
    """A pattern of RFC 9485, compiled; nothing if it isn't one."""
    import regex  # type: ignore[import-untyped]
    from iregexp_check import check

    if not check(pattern):
        return None
    standard = _DOTS.sub(lambda part: r"[^\n\r]" if part[0] == "." else part[0], pattern)
    try:
        return regex.compile(standard, regex.VERSION1)
    except regex.error:
        return None
