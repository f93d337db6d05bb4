"""JSONPath and JSON Schema in a file, validated when the file is loaded."""

import re
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from atp.suite.record import JsonObject


def full_path(path: str) -> str:
    """The RFC 9535 form of a path: the documents also write `a.b` for `$.a.b`."""
    path = path.strip()
    if path.startswith("$"):
        return path
    return f"${path}" if path.startswith("[") else f"$.{path}"


# Paths as the library writes them: `$['a'][0]`.
_SINGLE = re.compile(r"\$(?:\['(?:[^'\\]|\\.)*'\]|\[-?\d+\])*")


def is_one_place(path: object) -> bool:
    """Whether a compiled path matches at most one place, judged by its text."""
    return _SINGLE.fullmatch(str(path)) is not None


@lru_cache(maxsize=1024)
def _check_path(path: str) -> str:
    import jsonpath_rfc9535  # loaded when a file has a path at all

    try:
        jsonpath_rfc9535.compile(full_path(path))
    except (jsonpath_rfc9535.JSONPathError, RecursionError) as error:
        why = str(error).partition("\n")[0].partition(",")[0] or "too deep"
        raise PydanticCustomError("json_path", "not a JSONPath: {why}", {"why": why}) from error
    return path


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
    return schema


JsonPathText = Annotated[str, AfterValidator(_check_path)]
"""A JSONPath, or the short form `a.b`."""
JsonSchemaObject = Annotated[JsonObject, AfterValidator(_check_schema)]
"""A JSON Schema."""
