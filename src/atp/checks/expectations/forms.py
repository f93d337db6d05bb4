"""The sentences that have an exact meaning: a table of their forms, and the assertion that each stands for.

To teach ATP a new one, add a line to `FORMS`. A form must leave nothing to judge: whoever reads the sentence must come
to the same verdict as the check. What is not here on purpose, because no check says exactly this:

- "the response is …": by document 2 an answer need only be reasonably close, and the assessor decides on that;
- "the response is valid JSON": checks look for JSON in prose, too;
- "the file x does not exist", "was deleted": `artifact_exists` is about what the agent made, so a file that was there
  from the beginning would pass for one that is gone. "Was not created" has an exact meaning.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from atp.checks.artifacts import ArtifactExists
from atp.checks.behavior import Behavior
from atp.checks.expectations.grammar import Form, Said
from atp.checks.expectations.names import Often
from atp.checks.expectations.words import Sentence, read_object
from atp.checks.groups import AllOf, AnyOf, NoneOf
from atp.checks.output import Contains, NotContains, RegexMatch
from atp.checks.tools import NotToolCalled, ToolCalled, ToolOrder
from atp.suite.assertion import Assertion

MOST_TIMES = 20
"""A bound on the calls of one tool becomes a check for each number below it."""


def _called(said: Said) -> Assertion | None:
    """Called at all, or so often."""
    if not said.has("times"):
        name = said.tool()
        return ToolCalled(type="tool_called", name=name) if name and not said.has("only") else None
    how_often = said.often("times")
    if said.has("only") and how_often and how_often.least != how_often.most:
        return None
    return _so_often(said, how_often)


def _calls_to(said: Said) -> Assertion | None:
    return _so_often(said, said.often("number"))


def _so_often(said: Said, how_often: Often | None) -> Assertion | None:
    name = said.tool(absent=how_often is not None and not how_often.least)
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


def _not_called(said: Said) -> Assertion | None:
    name = said.tool(absent=True)
    return NotToolCalled(type="not_tool_called", name=name) if name else None


def _not_more_often(said: Said) -> Assertion | None:
    most = said.often("times")
    return _so_often(said, Often(0, most.most)) if most and most.least == most.most else None


def _called_when(said: Said) -> Assertion | None:
    name, other = said.tool(), said.tool("other")
    if name is None or other is None or name == other:
        return None
    return ToolCalled.model_validate({"type": "tool_called", "name": name, said.word("when"): other})


def _arguments(said: Said) -> dict[str, Any] | None:
    """The arguments, each to be exactly what is written: otherwise a part of a list or of an object would do."""
    piece = said.piece("arguments")
    given = read_object(piece.text) if piece else None
    if given is None or any(key.startswith("$") for key in given):
        return None
    return {key: {"$literal": value} if isinstance(value, dict | list) else value for key, value in given.items()}


def _called_with(said: Said) -> Assertion | None:
    name, arguments = said.tool(), _arguments(said)
    return ToolCalled(type="tool_called", name=name, arguments=arguments) if name and arguments else None


def _not_called_with(said: Said) -> Assertion | None:
    name, arguments = said.tool(absent=True), _arguments(said)
    return NotToolCalled(type="not_tool_called", name=name, arguments=arguments) if name and arguments else None


def _no_tools(said: Said) -> Assertion | None:
    return None if said.may_be_about_code(said.word("noun")) else Behavior(type="behavior", max_tool_calls=0)


def _tool_calls(said: Said) -> Assertion | None:
    how_often = said.often("number")
    if how_often is None or (said.word("noun") == "function" and not said.has("made")):
        return None  # "no function calls" may be said of code
    return Behavior(type="behavior", min_tool_calls=how_often.least or None, max_tool_calls=how_often.most)


def _some_tool(_said: Said) -> Assertion:
    return Behavior(type="behavior", min_tool_calls=1)


def _in_order(said: Said) -> Assertion | None:
    tools = said.tools()
    return ToolOrder(type="tool_order", tools=tools) if tools else None


def _no_errors(_said: Said) -> Assertion:
    return Behavior(type="behavior", check_="no_errors")


def _file(said: Said) -> Assertion | None:
    path = said.file()
    if path is None or (said.has("text") and said.text() is None):
        return None
    return ArtifactExists(type="artifact_exists", path=path, contains=said.text())


def _no_file(said: Said) -> Assertion | None:
    path = said.file()
    return ArtifactExists(type="artifact_exists", path=path, negate=True) if path else None


def _file_without(said: Said) -> Assertion | None:
    there = _file(said)
    if not isinstance(there, ArtifactExists):
        return None
    alone = ArtifactExists(type="artifact_exists", path=there.path)
    return AllOf(type="all_of", assertions=[alone, there.model_copy(update={"negate": True})])


def _contains(said: Said) -> Assertion | None:
    text = said.text()
    return Contains(type="contains", value=text, ignore_case=said.has("mention")) if text else None


def _contains_not(said: Said) -> Assertion | None:
    text = said.text()
    return NotContains(type="not_contains", value=text, ignore_case=said.has("mention")) if text else None


def _matches(said: Said) -> Assertion | None:
    piece = said.piece("pattern")
    if piece is None or (piece.kind != "regex" and not said.has("is_regex")):
        return None
    return RegexMatch(type="regex", pattern=piece.text, negate=said.has("not"))


_MATCH = (
    r"(?:(?P<is_regex>(?:the )?(?:regex|regular expression) )|the pattern )?<(?P<pattern>(?:regex|code|quoted)\d+)>"
)
_BEFORE = r"(?P<when>before|after) (?:calling |invoking )?{other}(?: (?:is|was) (?:called|invoked))?"
_MENTION = r"(?P<mention>mentions|mentioned|(?:should|must|will) mention)"
_NO_MENTION = r"(?P<mention>(?:does|did|should|must|will) (?:not|never) mention|never mentions)"
_HAPPEN = (
    r"(?:occurs?|occurred|happens?|happened|(?:should|must|will) (?:occur|happen)|{be} (?:raised|thrown|encountered))"
)

FORMS: list[tuple[Form, Callable[[Said], Assertion | None]]] = [
    (Form(template), build)
    for template, build in [
        # A tool was called, so often, or not.
        ("{tool} (?:{be} )?(?P<only>(?:only|just) )?{called}(?: {times})?{by}", _called),
        ("{subject}{calls} {tool}(?: {times})?", _called),
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
        ("(?:there {be} )?{number} (?P<noun>tool|function) calls?(?P<made> {be} made)?{by}", _tool_calls),
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
        ("{subject}{not_makes} {file}", _no_file),
        # The last answer.
        ("{response} {contains} {text}", _contains),
        ("{response} {not_contains} {text}", _contains_not),
        (f"{{response}} {_MENTION} {{text}}", _contains),
        (f"{{response}} {_NO_MENTION} {{text}}", _contains_not),
        (f"{{response}} (?:matches|matched|(?:should|must|will) match) {_MATCH}", _matches),
        (f"{{response}} (?P<not>(?:does|did|should|must|will) (?:not|never) match) {_MATCH}", _matches),
    ]
]


def find_form(sentence: Sentence) -> Assertion | None:
    """The assertion that a sentence stands for, if it has one of the forms."""
    for form, build in FORMS:
        said = form.read(sentence)
        try:
            found = build(said) if said is not None else None
        except ValidationError:  # a regular expression that is none, for example
            continue
        if found is not None:
            return found
    return None
