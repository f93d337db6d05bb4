"""The sentences that have an exact meaning: a table of their forms, and the assertion that each stands for.

To add a form, add a line to `FORMS`. A form must leave nothing to judge: every reader of the sentence must come to the
same verdict as the check. Left out on purpose, because no check means exactly this:

- "the response is …": in Markdown tests an answer need only be reasonably close, and the assessor decides on that;
- "the response is valid JSON": checks look for JSON in prose, too;
- "the file x was deleted": no check knows whether it was there.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from atp.checks.artifacts import ArtifactExists
from atp.checks.behavior import Behavior
from atp.checks.expectations.grammar import Form, Match
from atp.checks.expectations.names import Often
from atp.checks.expectations.words import Sentence, read_object
from atp.checks.groups import AllOf, AnyOf, NoneOf
from atp.checks.output import Contains, NotContains, RegexMatch
from atp.checks.snapshot import SnapshotAssertion
from atp.checks.tools import NotToolCalled, ToolCalled, ToolOrder
from atp.suite.assertion import Assertion

MOST_TIMES = 20
"""A bound on the calls of one tool becomes a check for each number below it."""


def _called(match: Match) -> Assertion | None:
    """A tool was called, or called so often."""
    if not match.has("times"):
        name = match.tool()
        return ToolCalled(type="tool_called", name=name) if name and not match.has("only") else None
    how_often = match.often("times")
    if match.has("only") and how_often and how_often.least != how_often.most:
        return None
    return _so_often(match, how_often)


def _calls_to(match: Match) -> Assertion | None:
    return _so_often(match, match.often("number"))


def _so_often(match: Match, how_often: Often | None) -> Assertion | None:
    name = match.tool()
    if name is None or how_often is None:
        return None
    least, most = how_often
    if most == 0:
        return NotToolCalled(type="not_tool_called", name=name)
    if how_often == (1, None):
        return ToolCalled(type="tool_called", name=name)
    if max(least, most or 0) > MOST_TIMES and least != most:
        return None
    if most is None:
        return NoneOf(type="none_of", assertions=[_times(name, number) for number in range(least)])
    exact = [_times(name, number) for number in range(least, most + 1)]
    return exact[0] if len(exact) == 1 else AnyOf(type="any_of", assertions=exact)


def _times(name: str, number: int) -> Assertion:
    return ToolCalled(type="tool_called", name=name, times=number)


def _not_called(match: Match) -> Assertion | None:
    name = match.tool()
    return NotToolCalled(type="not_tool_called", name=name) if name else None


def _not_more_often(match: Match) -> Assertion | None:
    most = match.often("times")
    return _so_often(match, Often(0, most.most)) if most and most.least == most.most else None


def _called_when(match: Match) -> Assertion | None:
    name, other = match.tool(), match.tool("other")
    if name is None or other is None or name == other:
        return None
    return ToolCalled.model_validate({"type": "tool_called", "name": name, match.word("when"): other})


def _arguments(match: Match) -> dict[str, Any] | None:
    """The arguments, with `$literal` around lists and objects, so that a part of them is not enough."""
    piece = match.piece("arguments")
    given = read_object(piece.text) if piece else None
    if given is None or any(key.startswith("$") for key in given):
        return None
    return {key: {"$literal": value} if isinstance(value, dict | list) else value for key, value in given.items()}


def _called_with(match: Match) -> Assertion | None:
    name, arguments = match.tool(), _arguments(match)
    return ToolCalled(type="tool_called", name=name, arguments=arguments) if name and arguments else None


def _not_called_with(match: Match) -> Assertion | None:
    name, arguments = match.tool(), _arguments(match)
    return NotToolCalled(type="not_tool_called", name=name, arguments=arguments) if name and arguments else None


def _no_tools(match: Match) -> Assertion | None:
    return None if match.may_be_about_code(match.word("noun")) else Behavior(type="behavior", max_tool_calls=0)


def _tool_calls(match: Match) -> Assertion | None:
    how_often = match.often("number")
    if how_often is None or (match.word("noun") == "function" and not match.has("made")):
        return None  # "no function calls" may be match of code
    return Behavior(type="behavior", min_tool_calls=how_often.least or None, max_tool_calls=how_often.most)


def _some_tool(_match: Match) -> Assertion:
    return Behavior(type="behavior", min_tool_calls=1)


def _in_order(match: Match) -> Assertion | None:
    tools = match.tools()
    return ToolOrder(type="tool_order", tools=tools) if tools else None


def _no_errors(_match: Match) -> Assertion:
    return Behavior(type="behavior", check_="no_errors")


def _file(match: Match) -> Assertion | None:
    path = match.file()
    if path is None or (match.has("text") and match.text() is None):
        return None
    return ArtifactExists(type="artifact_exists", path=path, contains=match.text())


def _no_file(match: Match) -> Assertion | None:
    path = match.file()
    return ArtifactExists(type="artifact_exists", path=path, negate=True) if path else None


def _not_there(match: Match) -> Assertion | None:
    path = match.file()
    return ArtifactExists(type="artifact_exists", path=path, untouched=True, negate=True) if path else None


def _file_without(match: Match) -> Assertion | None:
    there = _file(match)
    if not isinstance(there, ArtifactExists):
        return None
    alone = ArtifactExists(type="artifact_exists", path=there.path)
    return AllOf(type="all_of", assertions=[alone, there.model_copy(update={"negate": True})])


def _contains(match: Match) -> Assertion | None:
    text = match.text()
    return Contains(type="contains", value=text, ignore_case=match.has("mention")) if text else None


def _contains_not(match: Match) -> Assertion | None:
    text = match.text()
    return NotContains(type="not_contains", value=text, ignore_case=match.has("mention")) if text else None


def _matches(match: Match) -> Assertion | None:
    piece = match.piece("pattern")
    if piece is None or (piece.kind != "regex" and not match.has("is_regex")):
        return None
    return RegexMatch(type="regex", pattern=piece.text, negate=match.has("not"))


def _snapshot(match: Match) -> Assertion | None:
    """The answer, or the sequence of tool calls, is what a golden file has."""
    kind = "tools" if match.has("calls") else match.word("kind").strip() or "text"
    ignored = match.pieces("ignored")
    if any(piece.kind not in ("code", "quoted") for piece in ignored):
        return None
    return SnapshotAssertion.model_validate(
        {"type": "snapshot", "match": kind, "ignore": [piece.text for piece in ignored]}
    )


_MATCH = (
    r"(?:(?P<is_regex>(?:the )?(?:regex|regular expression) )|the pattern )?<(?P<pattern>(?:regex|code|quoted)\d+)>"
)
_SNAPSHOT = (
    r"(?:match|matches|matched|(?:should|must|will) match) (?:the|its|their) (?P<kind>normalized |json )?snapshot"
)
_IGNORING = r"(?: ignoring (?P<ignored><\w+>(?:(?: ,)?(?: and)? <\w+>){0,9}))?"
_BEFORE = r"(?P<when>before|after) (?:calling |invoking )?{other}(?: (?:is|was) (?:called|invoked))?"
_MENTION = r"(?P<mention>mentions|mentioned|(?:should|must|will) mention)"
_NO_MENTION = r"(?P<mention>(?:does|did|should|must|will) (?:not|never) mention|never mentions)"
_WERE_MADE = r"{be} (?:made|used|performed)"
_HAPPEN = (
    r"(?:occurs?|occurred|happens?|happened|(?:should|must|will) (?:occur|happen)|{be} (?:raised|thrown|encountered))"
)

FORMS: list[tuple[Form, Callable[[Match], Assertion | None]]] = [
    (Form(template), build)
    for template, build in [
        # A tool was called, so often, or not.
        ("{tool} (?:{be} )?(?P<only>(?:only|just) )?{called}(?: {times})?{by}", _called),
        ("{subject}{calls} {tool}(?: {times})?", _called),
        ("the (?:tool|function) (?:that (?:is|was) )?{called} (?:is|was) {tool}", _called),
        ("{tool} {not_be} {called}{by}", _not_called),
        ("{subject}{not_calls} {tool}", _not_called),
        ("{tool} {not_be} {called} more than {times}{by}", _not_more_often),
        ("{subject}{not_calls} {tool} more than {times}", _not_more_often),
        ("(?:there {be} )?{number} calls? to {tool}(?: {be} made)?{by}", _calls_to),
        ("{number} calls? {be} made to {tool}{by}", _calls_to),
        ("{subject}{makes} {number} calls? to {tool}", _calls_to),
        # With what, and before or after which other.
        ("{tool} (?:{be} )?{called} with {arguments}{by}", _called_with),
        ("{subject}{calls} {tool} with {arguments}", _called_with),
        ("{tool} {not_be} {called} with {arguments}{by}", _not_called_with),
        ("{subject}{not_calls} {tool} with {arguments}", _not_called_with),
        (f"{{tool}} (?:{{be}} )?{{called}} {_BEFORE}", _called_when),
        (f"{{subject}}{{calls}} {{tool}} {_BEFORE}", _called_when),
        ("(?:the )?(?:tools |functions )?{list} {be} {called} in (?:this|that) order", _in_order),
        # Calls of any tool.
        ("no {tools} {be} {called}{by}", _no_tools),
        ("{subject}{calls} no {tools}", _no_tools),
        ("{subject}{not_calls} any {tools}", _no_tools),
        ("(?:an?|any|some|at least one) tool {be} {called}{by}", _some_tool),
        (f"(?:there {{be}} )?{{number}} (?P<noun>tool|function) calls?(?P<made> {_WERE_MADE})?{{by}}", _tool_calls),
        ("{subject}(?P<made>{makes}) {number} (?P<noun>tool|function) calls?", _tool_calls),
        # Errors.
        ("(?:there {be} )?no errors?", _no_errors),
        ("there (?:(?:is|are|was|were) not|(?:should|must|will) not be) any errors?", _no_errors),
        (f"no errors? {_HAPPEN}{{by}}", _no_errors),
        ("{subject}(?:encounters|encountered|raises|raised) no errors?", _no_errors),
        ("{subject}(?:runs|ran|completes|completed|finishes|finished) without (?:any )?errors?", _no_errors),
        # Files that the agent made.
        ("{file} (?:exists|(?:should|must|will) exist|is there|is present)", _file),
        ("there (?:is|was|(?:should|must|will) be) {file}(?: (?:containing|that contains) {text})?", _file),
        ("{file} (?:{be} )?{made}{by}", _file),
        ("{subject}{makes} {file}(?: (?:containing|that contains) {text})?", _file),
        ("{file} {contains} {text}", _file),
        ("{file} {not_contains} {text}", _file_without),
        ("{file} {not_be} {made}{by}", _no_file),
        ("no {file} {be} {made}{by}", _no_file),
        ("{file} (?:(?:does|did|should|must|will) (?:not|never) exist|is not (?:there|present))", _not_there),
        ("no {file} exists", _not_there),
        ("there (?:is|was|(?:should|must|will) be) no {file}", _not_there),
        ("{subject}{not_makes} {file}", _no_file),
        # The last answer.
        ("{response} {contains} {text}", _contains),
        ("{response} {not_contains} {text}", _contains_not),
        (f"{{response}} {_MENTION} {{text}}", _contains),
        (f"{{response}} {_NO_MENTION} {{text}}", _contains_not),
        (f"{{response}} (?:matches|matched|(?:should|must|will) match) {_MATCH}", _matches),
        (f"{{response}} (?P<not>(?:does|did|should|must|will) (?:not|never) match) {_MATCH}", _matches),
        # What is as it was.
        (f"{{response}} {_SNAPSHOT}{_IGNORING}", _snapshot),
        (f"(?:the )?(?P<calls>tool calls) {_SNAPSHOT}{_IGNORING}", _snapshot),
    ]
]


def find_form(sentence: Sentence) -> Assertion | None:
    """The assertion that a sentence stands for, if it has one of the forms."""
    for form, build in FORMS:
        match = form.read(sentence)
        try:
            found = build(match) if match is not None else None
        except ValidationError:
            continue
        if found is not None:
            return found
    return None


def pattern_mistake(sentence: Sentence) -> str | None:
    """Why the regular expression that a sentence names can't be compiled; None if it names none, or one that can."""
    for form, build in FORMS:
        match = form.read(sentence) if build is _matches else None
        try:
            if match is not None:
                build(match)
        except ValidationError as error:
            return error.errors()[0]["msg"]
    return None
