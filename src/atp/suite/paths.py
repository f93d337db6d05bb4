"""JSONPath and JSON Schema in a file, validated when the file is loaded."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from atp.base.near import near_miss
from atp.suite.record import JsonObject

DEEPEST_PATH = 30
"""Levels of brackets in a path: filters in filters are compiled, written and evaluated by recursion."""
MOST_STEPS = 200
"""Steps of a path: no JSON that ATP reads is nested deeper."""
_NAME = r"[A-Za-z_\u0080-\uD7FF\uE000-\U0010FFFF][A-Za-z0-9_\u0080-\uD7FF\uE000-\U0010FFFF]*"
_QUOTED_OR_NAME = re.compile(rf"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?P<dots>\.\.?)(?P<name>{_NAME})""", re.DOTALL)


def full_path(path: str) -> str:
    """The RFC 9535 form of a path: the documents also write `a.b` for `$.a.b`.

    A member name with letters beyond ASCII is put into brackets: `jsonpath-rfc9535` 1.0.1 reads `$.用户` as `$.用`
    followed by a mistake, because of a slip in its pattern for names.
    """
    path = path.strip()
    if not path.startswith("$"):
        path = f"${path}" if path.startswith("[") else f"$.{path}"
    return path if path.isascii() else _QUOTED_OR_NAME.sub(_bracketed, path)


def _bracketed(part: "re.Match[str]") -> str:
    if part["name"] is None or part["name"].isascii():
        return part[0]
    return f"{'..' if part['dots'] == '..' else ''}['{part['name']}']"


# Paths as the library writes them: `$['a'][0]`.
_SINGLE = re.compile(r"\$(?:\['(?:[^'\\]|\\.)*'\]|\[-?\d+\])*")


def is_one_place(path: object) -> bool:
    """Whether a compiled path matches at most one place, judged by its text."""
    return _SINGLE.fullmatch(str(path)) is not None


@lru_cache(maxsize=1024)
def _check_path(path: str) -> str:
    import jsonpath_rfc9535  # loaded when a file has a path at all

    try:
        if _depth(path) > DEEPEST_PATH:
            raise ValueError(f"it is nested deeper than {DEEPEST_PATH} levels")
        query = jsonpath_rfc9535.compile(full_path(path))
        if len(query.segments) > MOST_STEPS:
            raise ValueError(f"it has more than {MOST_STEPS} steps")
        _check_patterns(query)
    except (jsonpath_rfc9535.JSONPathError, ValueError) as error:  # Python reads no index of thousands of digits
        why = str(error).partition("\n")[0].partition(", line ")[0]
        raise PydanticCustomError("json_path", "not a JSONPath: {why}", {"why": why}) from error
    return path


def _check_patterns(query: Any) -> None:
    """Raise `ValueError` if a `match` or `search` has a pattern that is no regular expression, which finds nothing."""
    for function in _functions(query):
        pattern = getattr(function.args[-1], "value", None) if function.name in ("match", "search") else None
        if isinstance(pattern, str):
            from iregexp_check import check

            if not check(pattern):
                raise ValueError(f"{pattern!r} in `{function.name}` is not a regular expression of RFC 9485")


def _functions(node: Any) -> Iterator[Any]:
    """The calls of functions in a compiled path or in a part of one, whose parts are in attributes of these names."""
    if hasattr(node, "args"):
        yield node
    parts = [*getattr(node, "segments", ()), *getattr(node, "selectors", ()), *getattr(node, "args", ())]
    parts += [getattr(node, name, None) for name in ("query", "expression", "left", "right")]
    for part in parts:
        if part is not None:
            yield from _functions(part)


def _depth(path: str) -> int:
    """How deep the brackets of a path are nested, without those in quotes."""
    depth = deepest = 0
    for sign in re.findall(r"[\[(\])]", _QUOTED_OR_NAME.sub("", path)):
        depth += 1 if sign in "[(" else -1
        deepest = max(deepest, depth)
    return deepest


def _check_schema(schema: Any) -> Any:
    from jsonschema import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(step) for step in error.absolute_path)
        raise PydanticCustomError(
            "json_schema",
            "not a JSON Schema: {why}{where}",
            {"why": error.message, "where": f" (at {where})" if where else ""},
        ) from error
    _check_keywords(schema)
    return schema


_SCHEMAS = {
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
_LISTS_OF_SCHEMAS = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
_MAPS_OF_SCHEMAS = {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
_RULES = {
    "const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems",
    "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
    "multipleOf", "pattern", "required", "type", "uniqueItems",
}  # fmt: skip
_KEYWORDS = _SCHEMAS | _LISTS_OF_SCHEMAS | _MAPS_OF_SCHEMAS | _RULES
"""The keywords that a value must fit. A schema may have others, which say nothing about the value."""


def _check_keywords(schema: Any) -> None:
    """Raise if a schema has a keyword that is nearly a known one: by the standard, an unknown one has no effect."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if not isinstance(here, dict):
            continue
        for key, value in here.items():
            # Not those with `$`, nor short ones: `note` is nearly `not`.
            is_known = key in _KEYWORDS or key.startswith("$")
            meant = None if is_known else near_miss(key, (word for word in _KEYWORDS if len(word) > 3))
            if meant is not None:
                message = "not a JSON Schema: unknown keyword `{keyword}`"
                details = {"keyword": key, "hint": f"did you mean `{meant}`?"}
                raise PydanticCustomError("json_schema", message, details)
            if key in _SCHEMAS:
                waiting.append(value)
            if key in _LISTS_OF_SCHEMAS and isinstance(value, list):
                waiting.extend(value)
            if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
                waiting.extend(value.values())


def _check_artifact_path(path: str) -> str:
    steps = path.replace("\\", "/").split("/")
    why = None
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", path):
        why = "it is not relative"
    elif ".." in steps:
        why = "it has `..` in it"
    elif all(step in ("", ".") for step in steps) and not path.endswith("/"):
        why = "it names no file"
    if why is not None:
        raise PydanticCustomError(
            "artifact_path",
            "no agent can make `{path}`: {why}",
            {"path": path, "why": why, "hint": "write the path in the workspace, for example `out/report.json`"},
        )
    return path


ArtifactPath = Annotated[str, Field(min_length=1), AfterValidator(_check_artifact_path)]
"""The path of a file in a trial's workspace, or the name of an artifact; may be a glob."""
JsonPathText = Annotated[str, AfterValidator(_check_path)]
"""A JSONPath, or the short form `a.b`."""
JsonSchemaObject = Annotated[JsonObject, AfterValidator(_check_schema)]
"""A JSON Schema."""
