"""Validates values against a JSON Schema, in bounded time and without the network."""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import jsonschema.validators
from jsonschema import ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from atp.base.json.canonical import canonical
from atp.checks.matching.patterns import check_time, search, time_limit
from atp.checks.verdicts import SHORT, failed, passed, show
from atp.suite.result import Verdict


def allows_text(schema: dict[str, Any]) -> bool:
    """Whether a schema asks for text, so that an answer without JSON in it may fit."""
    wanted = schema.get("type")
    return wanted == "string" or (isinstance(wanted, list) and "string" in wanted)


def forbids(schema: Any) -> bool:
    """Whether a schema has a `not` in it, so that a value may fit it because of what is not there."""
    if isinstance(schema, list):
        return any(forbids(one) for one in schema)
    return isinstance(schema, dict) and ("not" in schema or any(forbids(one) for one in schema.values()))


def fits_schema(schema: dict[str, Any], value: Any, where: str) -> Verdict:
    """The verdict on a value against a schema; a failure names the first mistake."""
    with time_limit():
        error = next(iter(_validator(canonical(schema)).iter_errors(value)), None)
    if error is None:
        return passed("it fits the schema", found=value, where=where)
    place = error.json_path
    rule = f"{error.validator}: {show(error.validator_value, SHORT)}"
    message = f"{place} does not fit the schema: found {show(error.instance, SHORT)}, expected {rule}"
    return failed(
        message, expected={str(error.validator): error.validator_value}, found=error.instance, where=f"{where}, {place}"
    )


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> Any:
    schema = json.loads(schema_text)
    validator: Any = _bounded(jsonschema.validators.validator_for(schema))
    # Only the standard's own schemas can be referred to: nothing is fetched.
    return validator(schema, registry=REGISTRY)


@lru_cache(maxsize=16)
def _bounded(standard: Any) -> Any:
    """The validator of a draft, with keywords that take bounded time on whatever an agent sends."""
    ours = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    }
    rules = {name: _timed(ours.get(name, rule)) for name, rule in standard.VALIDATORS.items()}
    return jsonschema.validators.extend(standard, rules)  # type: ignore[no-untyped-call]


def _timed(rule: Any) -> Any:
    """The rule of a keyword, which looks at the clock: alternatives inside alternatives take time without bound."""

    def timed(*arguments: Any) -> Any:
        check_time()
        return rule(*arguments)

    return timed


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and search(pattern, instance) is None:
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, schema in patterns.items():
            for key, value in instance.items():
                if search(pattern, key) is not None:
                    yield from validator.descend(value, schema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in known or any(search(pattern, key) is not None for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError("not allowed", path=[key], instance=value)
        elif allowed is not True:
            yield from validator.descend(value, allowed, path=key)


def _multiple_of(validator: Any, step: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Compare as written: to floats, 0.3 is no multiple of 0.1."""
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(step)):
        yield ValidationError("not a multiple")


def _unique_items(validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array"):
        seen = set()
        for item in instance:
            text = canonical(item)
            if text in seen:
                yield ValidationError("not unique")
                return
            seen.add(text)
