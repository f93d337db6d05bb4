"""Records as the plain data a file holds: what was said and nothing more, in one spelling."""

from typing import Any, get_args

from atp.suite.assertion import Assertion, Group
from atp.suite.record import Record


def said(record: Record) -> dict[str, Any]:
    """The keys that were given, defaults that were spelled out included: they were written for a reason."""
    plain = {
        field.serialization_alias or name: _plain(getattr(record, name), _takes_fractions(field.annotation))
        for name, field in type(record).model_fields.items()
        if name in record.model_fields_set and not field.exclude
    }
    return plain | (record.model_extra or {})


def _plain(value: Any, is_number: bool) -> Any:
    if isinstance(value, Record):
        return said(value)
    if isinstance(value, list):
        return [_plain(item, is_number=False) for item in value]
    if is_number and isinstance(value, float) and value.is_integer():
        return int(value)  # `timeout: 30` has become 30.0; a free value's 30.0 is left as it is
    return value


def _takes_fractions(annotation: Any) -> bool:
    return annotation is float or any(_takes_fractions(part) for part in get_args(annotation))


def flat_assertion(assertion: Assertion) -> dict[str, Any]:
    """An assertion as documents 4 and 5 write it: the kind's own keys beside the common ones."""
    own, common = _parts(assertion, flat_assertion)
    return {"type": assertion.type, **own, **common}


def nested_assertion(assertion: Assertion) -> dict[str, Any]:
    """An assertion as document 1 writes it: the kind's own keys in `config`."""
    own, common = _parts(assertion, nested_assertion)
    if isinstance(assertion, Group) or not own:
        return {"type": assertion.type, **own, **common}
    return {"type": assertion.type, "config": own, **common}


def _parts(assertion: Assertion, inner: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    own, common = said(assertion), {}
    for key in Assertion.model_fields:
        if key in own:
            common[key] = own.pop(key)
    del common["type"]
    if isinstance(assertion, Group):
        own["assertions"] = [inner(one) for one in assertion.assertions]
    return own, common
