"""Compares an expected value with the value found: JSON equality, recursive subsets, matchers.

True is not 1, but 1 is 1.0; key order doesn't matter. A subset has the keys that are expected and perhaps more, at
every level; of a list it has each expected element somewhere, and an empty list expects an empty list.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from atp.base.json.canonical import canonical
from atp.base.json.found import MISSING
from atp.base.text import cut
from atp.checks.matching.patterns import search
from atp.suite.matcher import is_matcher

# Tuples, because building `int | float` for each value would cost more than the check.
_LIST = (list, tuple)
_NUMBER = (int, float)


class Difference(NamedTuple):
    """The first place at which two values differ."""

    path: str
    """From the value's root, as in `.a[0]`."""
    expected: Any
    """The value that should be there."""
    found: Any
    """The value that is there, or `MISSING`."""


def difference(expected: Any, actual: Any, *, subset: bool = False, matchers: bool = True) -> Difference | None:
    """The first place at which `actual` differs from what is expected, or None.

    With `subset`, objects and lists may have more; without `matchers`, an object such as `{"$gt": 3}` is a plain value.
    """
    if isinstance(expected, dict):
        if matchers and is_matcher(expected):
            return None if fits(expected, actual, subset=subset) else Difference("", expected, actual)
        return _in_object(expected, actual, subset, matchers)
    if isinstance(expected, _LIST):
        return _in_list(expected, actual, subset, matchers)
    return None if _same_scalar(expected, actual) else Difference("", expected, actual)


def equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same."""
    return difference(one, other, matchers=False) is None


def _same_scalar(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, _NUMBER):
        return isinstance(actual, _NUMBER) and expected == actual
    return type(expected) is type(actual) and bool(expected == actual)


def _in_object(expected: dict[str, Any], actual: Any, subset: bool, matchers: bool) -> Difference | None:
    if not isinstance(actual, dict):
        return Difference("", expected, actual)
    for key, value in expected.items():
        if key not in actual:
            return Difference(_step(key), value, MISSING)
        inner = difference(value, actual[key], subset=subset, matchers=matchers)
        if inner is not None:
            return inner._replace(path=_step(key) + inner.path)
    if not subset and len(actual) > len(expected):
        extra = next(key for key in actual if key not in expected)
        return Difference(_step(extra), MISSING, actual[extra])
    return None


def _in_list(expected: "list[Any] | tuple[Any, ...]", actual: Any, subset: bool, matchers: bool) -> Difference | None:
    if not isinstance(actual, _LIST) or (not expected and actual):
        return Difference("", expected, actual)
    if subset:
        for value in expected:
            if not any(difference(value, item, subset=True, matchers=matchers) is None for item in actual):
                return Difference("", value, actual)
        return None
    for index, (value, item) in enumerate(zip(expected, actual, strict=False)):
        inner = difference(value, item, matchers=matchers)
        if inner is not None:
            return inner._replace(path=f"[{index}]{inner.path}")
    if len(expected) > len(actual):
        return Difference(f"[{len(actual)}]", expected[len(actual)], MISSING)
    if len(expected) < len(actual):
        return Difference(f"[{len(expected)}]", MISSING, actual[len(expected)])
    return None


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{cut(key, 80)!r}]"


def contained(expected: Any, actual: Any, *, matchers: bool = False) -> bool:
    """Whether a value contains another: text in text or in JSON's text, an element of a list, a subset of an object."""
    if isinstance(expected, str):
        if isinstance(actual, str):
            return expected in actual
        if isinstance(actual, _LIST) and expected in actual:
            return True
        return text_in_json(expected, canonical(actual))
    if isinstance(actual, _LIST):
        return any(difference(expected, item, subset=True, matchers=matchers) is None for item in actual) or (
            isinstance(expected, _LIST) and difference(expected, actual, subset=True, matchers=matchers) is None
        )
    if isinstance(actual, dict) and not isinstance(expected, dict | list | tuple):
        return any(
            contained(expected, item) if isinstance(item, dict) else _same_scalar(expected, item)
            for item in actual.values()
        )
    return difference(expected, actual, subset=True, matchers=matchers) is None


def text_in_json(text: str, json_text: str) -> bool:
    """Whether a text stands in JSON, as it is or as JSON writes it inside a string."""
    return text in json_text or (('"' in text or "\\" in text or "\n" in text) and canonical(text)[1:-1] in json_text)


def type_of(value: Any) -> str:
    """The JSON type of a value; a number without a fraction is an `integer`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case dict():
            return "object"
        case list() | tuple():
            return "array"
    return "nothing" if value is MISSING else type(value).__name__


def has_type(value: Any, name: str) -> bool:
    """Whether a value has a JSON type. An integer is a number too."""
    found = type_of(value)
    return found == name or (name == "number" and found == "integer")


def fits(matcher: dict[str, Any], actual: Any, *, subset: bool = False) -> bool:
    """Whether a value fits all that a matcher object says."""
    return all(fits_one(name, operand, actual, subset=subset) for name, operand in matcher.items())


def fits_one(name: str, operand: Any, actual: Any, *, subset: bool = False) -> bool:
    """Whether a value fits one matcher."""
    if name == "$literal":
        return difference(operand, actual, subset=subset, matchers=False) is None
    matcher = _MATCHERS.get(name)
    if matcher is None:
        raise ValueError(f"unknown matcher `{name}`")
    return matcher(operand, actual)


def expects_absence(expected: Any) -> bool:
    """Whether an expected value has a matcher that holds because something is not there: `$ne`, `$not_in`."""
    if isinstance(expected, _LIST):
        return any(expects_absence(item) for item in expected)
    if not isinstance(expected, dict):
        return False
    if is_matcher(expected) and not expected.keys().isdisjoint(("$ne", "$not_in")):
        return True
    return any(expects_absence(item) for key, item in expected.items() if key != "$literal")


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A comparison that holds only between two numbers or two texts."""

    def holds(operand: Any, actual: Any) -> bool:
        if isinstance(actual, bool) or isinstance(operand, bool):
            return False
        numbers = isinstance(actual, _NUMBER) and isinstance(operand, _NUMBER)
        return (numbers or (isinstance(actual, str) and isinstance(operand, str))) and compare(actual, operand)

    return holds


def _matches(operand: Any, actual: Any) -> bool:
    return difference(operand, actual) is None


def _type_is(operand: Any, actual: Any) -> bool:
    return any(has_type(actual, name) for name in (operand if isinstance(operand, list) else [operand]))


def _length_is(operand: Any, actual: Any) -> bool:
    return isinstance(actual, str | list | tuple | dict) and _matches(operand, len(actual))


def _regex_found(operand: Any, actual: Any) -> bool:
    return isinstance(actual, str) and search(operand, actual) is not None


_MATCHERS: dict[str, Callable[[Any, Any], bool]] = {
    "$any": lambda _, actual: actual is not MISSING,
    "$contains": lambda operand, actual: contained(operand, actual, matchers=True),
    "$gt": _ordered(lambda actual, operand: bool(actual > operand)),
    "$gte": _ordered(lambda actual, operand: bool(actual >= operand)),
    "$in": lambda operand, actual: any(_matches(one, actual) for one in operand),
    "$length": _length_is,
    "$lt": _ordered(lambda actual, operand: bool(actual < operand)),
    "$lte": _ordered(lambda actual, operand: bool(actual <= operand)),
    "$ne": lambda operand, actual: not _matches(operand, actual),
    "$not_in": lambda operand, actual: not any(_matches(one, actual) for one in operand),
    "$regex": _regex_found,
    "$type": _type_is,
}
