"""Checks of what the agent answered: equals, contains, not_contains, regex, json_path, type, json_schema.

Each rule is a function of what it looks at, so that a tool's result or a file can be looked at in the same way.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field

from atp.base.json.canonical import canonical
from atp.base.json.found import MISSING, SearchCutShort
from atp.base.secrets import MASK
from atp.checks.evidence import Evidence, NotKept, Subject
from atp.checks.matching.compare import (
    contained,
    difference,
    expects_absence,
    fits_one,
    has_type,
    text_in_json,
    type_of,
)
from atp.checks.matching.json_paths import look_up, may_find_nothing, unlike
from atp.checks.matching.patterns import search
from atp.checks.verdicts import SHORT, failed, favourable_outcome, passed, show, unjudged
from atp.suite.assertion import Assertion
from atp.suite.matcher import check_matchers, check_no_matchers, is_matcher
from atp.suite.paths import JsonPathText, JsonSchemaObject
from atp.suite.record import Json, Regex, check_sought
from atp.suite.result import Verdict

Matched = Annotated[Json, AfterValidator(check_matchers)]
"""A JSON value in which an object such as `{"$gt": 3}` is a matcher."""
Contained = Annotated[Json, AfterValidator(check_no_matchers), AfterValidator(check_sought)]
"""A JSON value to look for, not the empty text; matchers have no meaning in it, only `$literal`."""
TypeName = Literal["string", "number", "integer", "boolean", "object", "array", "null"]


class Equals(Assertion):
    """The output is this value."""

    type: Literal["equals"]
    """Always `equals`."""
    value: Matched
    """The expected value. Key order and 1 against 1.0 don't matter; true is not 1."""

    def check(self, evidence: Evidence) -> Verdict:
        verdict, by_absence = is_value(self.value, evidence.answer), expects_absence(self.value)
        if not needs_json(self.value):
            return verdict
        return unless_json_is_unread(verdict, self, evidence.answer, by_absence=by_absence)


def is_value(value: Any, subject: Subject, *, subset: bool = False) -> Verdict:
    """The verdict on a subject that should be a value. A value that isn't text is compared with JSON in the text."""
    if is_matcher(value):
        return equals_matcher(value, subject)
    found = subject.value
    if subject.is_text and not isinstance(value, str):
        found = subject.json
        if found is MISSING:
            return _no_json(f"expected {show(value, SHORT)}", value, subject)
    differs = difference(value, found, subset=subset)
    if differs is None:
        return passed(f"{subject.name} is as expected", expected=value, where=subject.where)
    place = f"${differs.path}" if differs.path else subject.where
    if differs.expected is MISSING:
        message = f"unexpected {show(differs.found, SHORT)} at {place}"
    else:
        message = f"expected {show(differs.expected, SHORT)} at {place}, found {_shown(differs.found)}"
        if isinstance(value, str) and isinstance(found, str) and value.split() == found.split():
            message += " (they differ only in blanks)"
    where = f"{subject.where}, {place}" if differs.path else subject.where
    return failed(message, expected=value, found=found, where=where)


def equals_matcher(matcher: dict[str, Any], subject: Subject) -> Verdict:
    """The verdict on a subject that should fit a matcher object."""
    for name, operand in matcher.items():
        found = _looked_at(name, operand, subject)
        if not fits_one(name, operand, found):
            message = f"expected {subject.name} to fit {show({name: operand}, SHORT)}, found {show(found, SHORT)}"
            return failed(message, expected=matcher, found=found, where=subject.where)
    return passed(f"{subject.name} fits", expected=matcher, found=subject.value, where=subject.where)


def _looked_at(name: str, operand: Any, subject: Subject) -> Any:
    """The text, or the JSON in the text if there is any and the matcher is about JSON values."""
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
            return any(needs_json(one) for one in operand)
    return needs_json(operand)


def needs_json(operand: Any) -> bool:
    """Whether a value or matcher is compared with the JSON in a text, not with the text."""
    if is_matcher(operand):
        return any(_asks_for_json(*one) for one in operand.items())
    return not isinstance(operand, str)


def unless_json_is_unread(
    verdict: Verdict, assertion: Assertion, subject: Subject, *, by_absence: bool = False
) -> Verdict:
    """The verdict on a check that needs JSON; unjudged if it is in the agent's favour and not all JSON was looked at.

    What is not in the JSON that was read may be in other JSON of the same text. What is there is there, whatever else
    is. `by_absence` says that the check may hold because something is not there.
    """
    if verdict.outcome != favourable_outcome(assertion):
        return verdict
    shows_absence = by_absence or verdict.outcome == "failed"
    if (shows_absence or subject.json is MISSING) and subject.unread_json is not None:
        return unjudged(f"{subject.name} has {subject.unread_json}: {show(subject.value, SHORT)}", where=verdict.where)
    return verdict


def _no_json(expected: str, value: Any, subject: Subject) -> Verdict:
    message = f"{expected}, found no JSON in {show(subject.text, SHORT)}"
    return failed(message, expected=value, found=subject.text, where=subject.where)


def _shown(found: Any) -> str:
    return "nothing" if found is MISSING else show(found, SHORT)


class Contains(Assertion):
    """The output contains a text, an object's keys and values, or a list's element."""

    type: Literal["contains"]
    """Always `contains`."""
    value: Contained
    """Text is searched in the output's text; an object is a recursive subset; on a list, membership."""
    ignore_case: bool = False
    """Letter case doesn't matter."""

    def check(self, evidence: Evidence) -> Verdict:
        try:
            subject = evidence.answer
        except NotKept:
            # A text that stands beside the secrets stands there whatever these were.
            seen = has(self.value, evidence.for_judges().answer, self.ignore_case)
            if isinstance(self.value, str) and not set(MASK) & set(self.value) and seen.passed:
                return seen
            raise
        verdict = has(self.value, subject, self.ignore_case)
        return unless_json_is_unread(verdict, self, evidence.answer) if isinstance(self.value, dict | list) else verdict


def has(value: Any, subject: Subject, ignore_case: bool = False) -> Verdict:
    """The verdict on a subject that should contain a value."""
    if _contains(value, subject, ignore_case):
        return passed(f"{subject.name} contains {show(value, SHORT)}", expected=value, where=subject.where)
    expected = f"expected {subject.name} to contain {show(value, SHORT)}"
    if isinstance(value, dict | list) and subject.json is MISSING:
        return _no_json(expected, value, subject)
    found = subject.json if isinstance(value, dict | list) else subject.value
    return failed(f"{expected}, found {_shown(found)}", expected=value, found=found, where=subject.where)


class NotContains(Assertion):
    """The output does not contain it."""

    type: Literal["not_contains"]
    """Always `not_contains`."""
    value: Contained
    """As in `contains`."""
    ignore_case: bool = False
    """Letter case doesn't matter."""

    def check(self, evidence: Evidence) -> Verdict:
        value, subject = self.value, evidence.answer
        if not _contains(value, subject, self.ignore_case):
            message = f"{subject.name} does not contain {show(value, SHORT)}"
            verdict = passed(message, expected=value, where=subject.where)
            if not isinstance(value, dict | list):
                return verdict
            return unless_json_is_unread(verdict, self, subject, by_absence=True)
        message = f"expected {subject.name} not to contain {show(value, SHORT)}, found it"
        found = _around(value, subject.text) if isinstance(value, str) else subject.value
        return failed(message, expected=value, found=found, where=subject.where)


def _contains(value: Any, subject: Subject, ignore_case: bool) -> bool:
    if isinstance(value, str):
        return _text_contains(value, subject, ignore_case)
    if subject.is_text and subject.json_text is None and not isinstance(value, dict | list):
        return canonical(value) in subject.text
    if subject.json is MISSING:
        return False
    expected, found = (_folded(value), _folded(subject.json)) if ignore_case else (value, subject.json)
    return contained(expected, found, matchers=True)  # of which loading lets only `$literal` pass


def _text_contains(value: str, subject: Subject, ignore_case: bool) -> bool:
    text = subject.text
    if ignore_case:
        value, text = value.casefold(), text.casefold()
    if value in text:
        return True
    json_text = subject.json_text
    if json_text is None:
        return False
    return text_in_json(value, json_text.casefold() if ignore_case else json_text)


def _folded(value: Any) -> Any:
    """A copy with all texts and keys case-folded."""
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, dict):
        folded = {key.casefold(): _folded(item) for key, item in value.items()}
        if len(folded) < len(value):
            raise SearchCutShort("an object has keys that differ only in letter case, so which one counts is not known")
        return folded
    return [_folded(item) for item in value] if isinstance(value, list) else value


def _around(value: str, text: str) -> str:
    """The text around the first occurrence of `value`."""
    at = max(text.find(value), 0)
    return text[max(at - SHORT, 0) : at + len(value) + SHORT]


class RegexMatch(Assertion):
    """A regular expression is found in the output's text."""

    type: Literal["regex"]
    """Always `regex`."""
    pattern: Regex = Field(validation_alias=AliasChoices("pattern", "value"))
    """The expression, in Python's syntax."""

    def check(self, evidence: Evidence) -> Verdict:
        return has_match(self.pattern, evidence.answer)


def has_match(pattern: str, subject: Subject) -> Verdict:
    """The verdict on a subject in whose text a regular expression should be found."""
    match = search(pattern, subject.text)
    if match is None and subject.is_text and subject.json_text is not None:
        match = search(pattern, subject.json_text)
    if match is not None:
        message = f"{show(pattern, SHORT)} matches at character {match.start()}"
        return passed(message, expected=pattern, found=match[0], where=subject.where)
    message = f"expected a match of {show(pattern, SHORT)}, found none in {show(subject.text, SHORT)}"
    return failed(message, expected=pattern, found=subject.text, where=subject.where)


class JsonPath(Assertion):
    """The place a JSONPath names exists, or holds a value."""

    type: Literal["json_path"]
    """Always `json_path`."""
    path: JsonPathText
    """RFC 9535, or the short form `a.b`."""
    value: Matched = None
    """The expected value; a list against a single result means one of them. Left out: the place exists."""

    def check(self, evidence: Evidence) -> Verdict:
        value = self.value if "value" in self.model_fields_set else MISSING
        verdict = is_at_path(self.path, value, evidence.answer)
        by_absence = expects_absence(value) or may_find_nothing(self.path, value)
        return unless_json_is_unread(verdict, self, evidence.answer, by_absence=by_absence)


def is_at_path(path: str, value: Any, subject: Subject) -> Verdict:
    """The verdict on a subject whose JSON should have a value at a path; with `MISSING`, any value."""
    given = None if value is MISSING else value
    expected = f"expected {path} to exist" if value is MISSING else f"expected {path} to be {show(value, SHORT)}"
    if subject.json is MISSING:
        return _no_json(expected, given, subject)
    where = f"{subject.where}, {path}"
    found = look_up(path, subject.json)
    if (found is MISSING) if value is MISSING else unlike(path, value, found):
        seen = None if found is MISSING else found
        return failed(f"{expected}, found {_shown(found)} there", expected=given, found=seen, where=where)
    message = f"{path} exists" if value is MISSING else f"{path} is as expected"
    return passed(message, expected=given, found=None if found is MISSING else found, where=where)


class TypeIs(Assertion):
    """The output, or a place in it, has a JSON type."""

    type: Literal["type"]
    """Always `type`."""
    value: TypeName
    """The expected type."""
    path: JsonPathText | None = None
    """Look there instead of at the whole output."""

    def check(self, evidence: Evidence) -> Verdict:
        verdict = self._compare(evidence.answer)
        asks_for_json = self.path is not None or self.value in ("object", "array")
        return unless_json_is_unread(verdict, self, evidence.answer) if asks_for_json else verdict

    def _compare(self, subject: Subject) -> Verdict:
        wanted, path = self.value, self.path
        found = subject.value
        name, where = subject.name, subject.where
        if path is not None:
            name, where = path, f"{where}, {path}"
            if subject.json is MISSING:
                return _no_json(f"expected {path} to be of type {wanted}", wanted, subject)
            found = look_up(path, subject.json)
        elif wanted in ("object", "array") and subject.is_text and subject.json is not MISSING:
            found = subject.json
        if has_type(found, wanted):
            return passed(f"{name} is of type {wanted}", expected=wanted, found=found, where=where)
        if found is MISSING:
            return failed(f"expected {name} to be of type {wanted}, found nothing there", expected=wanted, where=where)
        message = f"expected {name} to be of type {wanted}, found {type_of(found)}: {show(found, SHORT)}"
        return failed(message, expected=wanted, found=found, where=where)


class JsonSchema(Assertion):
    """The output's JSON fits a JSON Schema."""

    type: Literal["json_schema"]
    """Always `json_schema`."""
    schema_: JsonSchemaObject = Field(validation_alias=AliasChoices("schema", "value"), serialization_alias="schema")
    """The schema."""
    path: JsonPathText | None = None
    """Look there instead of at the whole output."""

    def check(self, evidence: Evidence) -> Verdict:
        from atp.checks.matching.schema import allows_text, fits_schema, forbids

        path, subject = self.path, evidence.answer
        found, where = subject.json, subject.where
        if found is MISSING and path is None and subject.is_text and allows_text(self.schema_):
            return fits_schema(self.schema_, subject.value, where)
        if found is MISSING:
            verdict = _no_json("expected JSON that fits the schema", None, subject)
        else:
            if path is not None:
                where = f"{where}, {path}"
                found = look_up(path, found)
            if found is MISSING:
                verdict = failed(f"expected {path} to fit the schema, found nothing there", where=where)
            else:
                verdict = fits_schema(self.schema_, found, where)
        return unless_json_is_unread(verdict, self, subject, by_absence=forbids(self.schema_))
