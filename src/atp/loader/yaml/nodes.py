"""YAML as plain data that still knows where everything stands.

libyaml composes the nodes; the walk over them builds JSON values, finds keys given twice, and bounds what a hostile
file can cost. Places are looked up in the nodes only when there is something to say about them.

Plain words are read as YAML 1.2 reads them: only `true` and `false` are booleans, dates and `1:30` are text.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.source import DEEPEST, MOST_VALUES, Source, place_of
from atp.loader.validate import DataPath, Unfilled
from atp.suite.record import Filled

try:
    _Base: Any = yaml.CSafeLoader
except AttributeError:  # PyYAML built without libyaml
    _Base = yaml.SafeLoader

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}
_OLD_BOOL = {word for base in ("yes", "no", "on", "off") for word in (base, base.title(), base.upper())}
_INT = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_OLD_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_COLON = re.compile(r":\s")
"""What ends a key."""
_MAY_NOT_BE_TEXT = set("0123456789+-.~tTfFnNyYoO")
_STANDARD = "tag:yaml.org,2002:"


class _TooMuch(Exception):
    def __init__(self, code: str, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.place = code, message, place


def _tag(word: str) -> str:
    """The type of a plain word. Text, the most common type, is the empty tag."""
    if not word:
        return "null"
    if word[0] not in _MAY_NOT_BE_TEXT:
        return "merge" if word == "<<" else ""
    if word in _NULL:
        return "null"
    if word in _TRUE or word in _FALSE:
        return "bool"
    if _INT.fullmatch(word):
        return "int"
    if _FLOAT.fullmatch(word):
        return "float"
    if word in _OLD_BOOL:
        return "old-bool"
    return "not-finite" if _NOT_FINITE.fullmatch(word) else ""


class _Loader(_Base):  # type: ignore[misc]
    """libyaml with our own types for plain words, and limits on depth and count."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.count = 0
        self.tags: dict[str, str] = {}

    def descend_resolver(self, _parent: Any, _index: Any) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _TooMuch("too-deep", f"nested deeper than {DEEPEST} levels")

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        self.count += 1
        if self.count > MOST_VALUES:
            raise _TooMuch("too-large", f"more than {MOST_VALUES:,} values in one file")
        if kind is not ScalarNode or not implicit[0]:
            return ""
        tag = self.tags.get(value)
        if tag is None:
            tag = self.tags[value] = _tag(value)
        return tag


class Places:
    """Turns libyaml's marks into places in the file, where the text begins at `first_line`."""

    def __init__(self, text: str, first_line: int) -> None:
        self.first_line = first_line
        # libyaml ends lines where YAML 1.1 did, too; editors and people don't.
        self._text = None if text.isascii() or not _OLD_LINE_ENDS.search(text) else text

    def at(self, mark: Any) -> Place:
        """The place of a mark."""
        if self._text is not None:
            return place_of(self._text, mark.index, self.first_line)
        return Place(mark.line + self.first_line, mark.column + 1)


@dataclass(slots=True)
class NodeLocator:
    """Places in a YAML text, by path."""

    root: Node
    places: Places

    def key(self, path: DataPath) -> Place:
        """The place of the last key of the path; for a missing key, of the mapping that should have it."""
        parent = self._find(path[:-1])
        if path and isinstance(parent, MappingNode):
            for key, _ in reversed(parent.value):
                if isinstance(key, ScalarNode) and key.value == path[-1]:
                    return self.places.at(key.start_mark)
        return self.places.at(parent.start_mark)

    def value(self, path: DataPath) -> Place:
        """The place of the value; for a missing value, of the nearest value around it."""
        return self.places.at(self._find(path).start_mark)

    def written(self, path: DataPath) -> str:
        """The text of a scalar, as written."""
        return str(self._find(path).value)

    def _find(self, path: DataPath) -> Node:
        node = self.root
        for step in path:
            below = _child(node, step)
            if below is None:
                break
            node = below
        return node


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    if isinstance(node, MappingNode):
        merged: list[Node] = []
        for key, value in reversed(node.value):
            if isinstance(key, ScalarNode) and key.value == step:
                return value  # type: ignore[no-any-return]
            if isinstance(key, ScalarNode) and key.tag == "merge":
                merged.extend(value.value if isinstance(value, SequenceNode) else [value])
        return next((found for one in merged if (found := _child(one, step)) is not None), None)
    return None


@dataclass(slots=True)
class Dollar:
    """A text value with a dollar sign in it, which may hold variables."""

    holder: Any
    key: Any
    node: ScalarNode


@dataclass(slots=True)
class Parsed:
    """Plain data, with the places of its values and the uses of variables."""

    data: Any
    locator: NodeLocator
    dollars: list[Dollar] = field(default_factory=list)


class _Walk:
    """Turns nodes into plain values."""

    def __init__(self, notes: Diagnostics, places: Places, most: int) -> None:
        self.notes = notes
        self.places = places
        self.left = most
        self.dollars: list[Dollar] = []

    def value(self, node: Node, depth: int = 0) -> Any:
        if node.__class__ is ScalarNode:
            return node.value if not node.tag else self.scalar(node)
        if depth > DEEPEST:
            raise _TooMuch("too-deep", f"nested deeper than {DEEPEST} levels", self.places.at(node.start_mark))
        self.left -= len(node.value)
        if self.left < 0:
            message = "the aliases in this file expand to too many values"
            raise _TooMuch("alias-bomb", message, self.places.at(node.start_mark))
        if node.tag and node.tag not in (f"{_STANDARD}map", f"{_STANDARD}seq"):
            self.unknown_tag(node)
        return self.mapping(node, depth + 1) if node.__class__ is MappingNode else self.sequence(node, depth + 1)

    def sequence(self, node: Node, depth: int) -> list[Any]:
        items: list[Any] = []
        for number, item in enumerate(node.value):
            items.append(self.value(item, depth))
            if item.__class__ is ScalarNode and "$" in item.value:
                self.dollars.append(Dollar(items, number, item))
        return items

    def mapping(self, node: Node, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: list[Node] = []
        for key, item in node.value:
            if key.__class__ is not ScalarNode:
                self.note("bad-key", "a key must be text", key, "write the key as one word or in quotes")
                continue
            name = key.value
            if key.tag == "merge":
                merged.extend(item.value if item.__class__ is SequenceNode else [item])
                continue
            if name in result:
                self.note("duplicate-key", f"`{name}` is given twice in one mapping", key, "remove one of them")
            result[name] = self.value(item, depth)
            if item.__class__ is ScalarNode and "$" in item.value:
                self.dollars.append(Dollar(result, name, item))
        for one in merged:
            self.merge(one, result, depth)
        return result

    def merge(self, node: Node, result: dict[str, Any], depth: int) -> None:
        """Add the keys of a mapping that `<<` names, unless the mapping has them, variables included."""
        before = len(self.dollars)
        base = self.value(node, depth)
        if not isinstance(base, dict):
            self.note("bad-merge", "`<<` takes a mapping or a list of mappings", node, "name an anchor of a mapping")
            return
        taken = {name: item for name, item in base.items() if name not in result}
        result.update(taken)
        for dollar in self.dollars[before:]:
            if dollar.holder is base and dollar.key in taken:
                dollar.holder = result

    def scalar(self, node: ScalarNode) -> Any:
        text = node.value
        match node.tag.removeprefix(_STANDARD):
            case "str" | "timestamp" | "merge":
                return text
            case "null":
                return None
            case "bool" if text in _TRUE or text in _FALSE:
                return text in _TRUE
            case "int":
                return self.number(node, lambda: int(text, 0 if text[:2] in ("0x", "0o") else 10))
            case "float":
                return self.number(node, lambda: float(text))
            case "old-bool":
                meant = "true" if text.lower() in ("yes", "on") else "false"
                hint = f'write `{meant}`, or "{text}" in quotes'
                message = f"`{text}` is taken as {meant} where true or false belongs, and as text elsewhere"
                self.notes.warn("ambiguous-boolean", message, self.places.at(node.start_mark), hint)
                return Filled(text)  # text that may stand for a value of another type, as a variable's
            case "not-finite":
                self.not_finite(node)
                return Unfilled(text)
            case _:
                self.unknown_tag(node)
                return text

    def number(self, node: ScalarNode, read: Callable[[], float]) -> Any:
        try:
            number = read()
        except ValueError:
            self.note("bad-number", "this number is too long or not a number", node, "put it in quotes")
            return Unfilled(node.value)
        if number in (math.inf, -math.inf):
            self.not_finite(node)
            return Unfilled(node.value)
        return number

    def not_finite(self, node: ScalarNode) -> None:
        hint = "write a number, or put it in quotes if text is meant"
        self.note("not-finite", f"`{node.value}` is not a number that JSON can hold", node, hint)

    def unknown_tag(self, node: Node) -> None:
        self.note(
            "unknown-tag", f"the tag `{node.tag}` is not supported", node, "remove the tag; values are plain JSON"
        )

    def note(self, code: str, message: str, node: Node, hint: str) -> None:
        self.notes.error(code, message, self.places.at(node.start_mark), hint)


def _is_unclosed(context: str, problem: str, text: str, opening: Any, mark: Any) -> bool:
    """Whether a quote or bracket was left open, which libyaml often notices only at the file's end."""
    if "quoted scalar" in context:
        return "end of stream" in problem or "document indicator" in problem
    if "flow sequence" not in context and "flow mapping" not in context:
        return False
    return not text[mark.index :].strip() or (
        mark.line > opening.line and _indent(text, mark.index) <= _indent(text, opening.index)
    )


def _line_start(text: str, offset: int) -> int:
    """The offset at which the line at an offset begins."""
    return text.rfind("\n", 0, offset) + 1


def _indent(text: str, offset: int) -> int:
    """How far the line at an offset is indented."""
    line = text[_line_start(text, offset) :].partition("\n")[0]
    return len(line) - len(line.lstrip(" "))


def _syntax(error: yaml.YAMLError, text: str, first_line: int, notes: Diagnostics) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    context = getattr(error, "context", None)
    position = getattr(error, "position", 0) if mark is None else mark.index
    hint = "check the indentation and the quotes around here"
    opening = getattr(error, "context_mark", None)
    if mark is not None and opening is not None and _is_unclosed(str(context), str(problem), text, opening, mark):
        position, hint = opening.index, f"close the `{text[opening.index : opening.index + 1]}` that opens here"
    at = place_of(text, min(position or 0, len(text)), first_line)
    if Source(text).line(at.line - first_line + 1)[at.column - 1 : at.column] == "\t":
        hint = "indent with blanks, not with tabs"
    elif "expected a single document" in f"{context} {problem}":
        problem, context, hint = "a second document begins here", None, "one file holds one document: remove the `---`"
    elif "unknown escape character" in str(problem):
        letter = text[position : position + 2].strip("\\")
        hint = f"in double quotes write `\\\\{letter}`, or use single quotes"
    elif "mapping values are not allowed" in str(problem) and _COLON.search(
        text, _line_start(text, position), position
    ):
        hint = "text with `: ` in it needs quotes around it"
    notes.error("syntax", f"not YAML: {f'{context}, ' if context else ''}{problem}", at, hint)


def _first_too_deep(text: str, places: Places) -> Place | None:
    """The place of the first value that is nested too deep, from libyaml's events."""
    depth = 0
    for event in yaml.parse(text, _Base):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                return places.at(event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def parse_yaml(text: str, notes: Diagnostics, first_line: int = 1) -> Parsed | None:
    """The document in a text, or None with the reason noted. `first_line` is the text's first line in its file."""
    loader = None
    places = Places(text, first_line)
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            notes.error("empty", "there is nothing in this file", Place(first_line, 1), "begin with `test_suite:`")
            return None
        walk = _Walk(notes, places, most=max(100_000, min(len(text), MOST_VALUES)))
        return Parsed(walk.value(root), NodeLocator(root, places), walk.dollars)
    except yaml.YAMLError as error:
        _syntax(error, text, first_line, notes)
    except _TooMuch as error:
        at = error.place or _first_too_deep(text, places)
        notes.error(error.code, error.message, at, "split the file, or write it flatter")
    finally:
        if loader is not None:
            loader.dispose()
    return None


def read_plain(text: str) -> Any:
    """The value that YAML reads in a text. Used for the default of a variable in an untyped place."""
    text = str(text)  # a subclass of str may have a `read` of its own, and libyaml would take it for a file
    word = text.strip()
    tag = _tag(word)
    if tag == "null":
        return None
    if tag in ("bool", "int", "float") or word[:1] in ("[", "{"):
        parsed = parse_yaml(word, ignored := Diagnostics())
        if parsed is not None and not ignored:
            return parsed.data
    return text
