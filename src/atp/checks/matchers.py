"""A matcher as all that is expected of an output: of its text, or of the JSON in it."""

from typing import Any

from atp.base.found_json import MISSING
from atp.checks.compare import fits_one
from atp.checks.subject import Subject
from atp.checks.verdicts import SHORT, failed, passed, show
from atp.suite.matcher import is_matcher
from atp.suite.result import Verdict


def equals_matcher(matcher: dict[str, Any], subject: Subject) -> Verdict:
    """Whether a subject fits all that a matcher object says."""
    for name, operand in matcher.items():
        found = _looked_at(name, operand, subject)
        if not fits_one(name, operand, found):
            message = f"expected {subject.name} to fit {show({name: operand}, SHORT)}, found {show(found, SHORT)}"
            return failed(message, expected=matcher, found=found, where=subject.where)
    return passed(f"{subject.name} fits", expected=matcher, found=subject.value, where=subject.where)


def _looked_at(name: str, operand: Any, subject: Subject) -> Any:
    """The text, or the JSON in it if there is any and the matcher asks about such values."""
    if not subject.is_text or not _asks_for_json(name, operand) or subject.json is MISSING:
        return subject.value
    if name == "$length" and not isinstance(subject.json, dict | list):
        return subject.value
    return subject.json


def _asks_for_json(name: str, operand: Any) -> bool:
    match name:
        case "$any" | "$regex":
            return False
        case "$length":
            return True
        case "$type":
            return bool(operand != "string")
        case "$in" | "$not_in":
            return any(_is_json(one) for one in operand)
    return _is_json(operand)


def _is_json(operand: Any) -> bool:
    if is_matcher(operand):
        return any(_asks_for_json(*one) for one in operand.items())
    return not isinstance(operand, str)
