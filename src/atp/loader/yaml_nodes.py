"""YAML as plain data that still knows where everything stands.

libyaml composes the nodes; the walk over them builds JSON values, finds keys given twice, and bounds what a hostile
file can cost. Places are looked up in the nodes only when there is something to say about them.

Plain words are read as YAML 1.2 reads them: only `true` and `false` are booleans, dates and `1:30` are text.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from atp.loader.diagnostics import Diagnostics
from atp.loader.shapes import Path
from atp.loader.source import Source
from atp.suite.record import Place

DEEPEST = 100
"""How deep values may be nested."""
MOST_NODES = 1_000_000
"""How many values a file may hold; a node takes some 600 bytes while it is read."""

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
_MAY_NOT_BE_TEXT = set("0123456789+-.~tTfFnNyYoO")
_STANDARD = "tag:yaml.org,2002:"


class _TooMuch(Exception):
    def __init__(self, code: str, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.place = code, message, place


def _tag(word: str) -> str:
    """The type of a plain word; text is the empty tag, being the most common."""
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
    """libyaml with our own types for plain words, counting how deep and how many."""

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
        if self.count > MOST_NODES:
            raise _TooMuch("too-large", f"more than {MOST_NODES:,} values in one file")
        if kind is not ScalarNode or not implicit[0]:
            return ""
        tag = self.tags.get(value)
        if tag is None:
            tag = self.tags[value] = _tag(value)
        return tag


def _place(mark: Any, first_line: int) -> Place:
    return Place(mark.line + first_line, mark.column + 1)


@dataclass(slots=True)
class NodeLocator:
    """Places in a YAML text, by path."""

    root: Node
    first_line: int = 1

    def key(self, path: Path) -> Place:
        """Where the last key of the path stands; else where its mapping begins."""
        parent = self._find(path[:-1])
        if path and isinstance(parent, MappingNode):
            for key, _ in reversed(parent.value):
                if isinstance(key, ScalarNode) and key.value == path[-1]:
                    return _place(key.start_mark, self.first_line)
        return _place(parent.start_mark, self.first_line)

    def value(self, path: Path) -> Place:
        """Where the value begins; else the value nearest around it."""
        return _place(self._find(path).start_mark, self.first_line)

    def _find(self, path: Path) -> Node:
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
    """Plain data and where it came from."""

    data: Any
    locator: NodeLocator
    dollars: list[Dollar] = field(default_factory=list)


class _Walk:
    """Nodes to plain values, once over all of them."""

    def __init__(self, notes: Diagnostics, first_line: int, most: int) -> None:
        self.notes = notes
        self.first_line = first_line
        self.left = most
        self.dollars: list[Dollar] = []

    def value(self, node: Node, depth: int = 0) -> Any:
        if node.__class__ is ScalarNode:
            return node.value if not node.tag else self.scalar(node)
        if depth > DEEPEST:
            raise _TooMuch("too-deep", f"nested deeper than {DEEPEST} levels", _place(node.start_mark, self.first_line))
        self.left -= len(node.value)
        if self.left < 0:
            message = "the aliases in this file expand to too many values"
            raise _TooMuch("alias-bomb", message, _place(node.start_mark, self.first_line))
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
            base = self.value(one, depth)
            if not isinstance(base, dict):
                self.note("bad-merge", "`<<` takes a mapping or a list of mappings", one, "name an anchor of a mapping")
                continue
            for name, item in base.items():
                result.setdefault(name, item)
        return result

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
                message = f"`{text}` is text here; some YAML readers take it for {meant}"
                self.notes.warn("ambiguous-boolean", message, _place(node.start_mark, self.first_line), hint)
                return text
            case "not-finite":
                self.note("not-finite", f"`{text}` is not a number that JSON can hold", node, "put it in quotes")
                return text
            case _:
                self.unknown_tag(node)
                return text

    def number(self, node: ScalarNode, read: Any) -> Any:
        try:
            return read()
        except ValueError:
            self.note("bad-number", "this number is too long or not a number", node, "put it in quotes")
            return 0

    def unknown_tag(self, node: Node) -> None:
        self.note(
            "unknown-tag", f"the tag `{node.tag}` is not supported", node, "remove the tag; values are plain JSON"
        )

    def note(self, code: str, message: str, node: Node, hint: str) -> None:
        self.notes.error(code, message, _place(node.start_mark, self.first_line), hint)


def _syntax(error: yaml.YAMLError, text: str, first_line: int, notes: Diagnostics) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    context = getattr(error, "context", None)
    if mark is not None:
        at = Place(mark.line + first_line, mark.column + 1)
    else:
        position = min(getattr(error, "position", 0) or 0, len(text))
        at = Place(first_line + text.count("\n", 0, position), position - text.rfind("\n", 0, position))
    hint = "check the indentation and the quotes around here"
    if Source(text).line(at.line - first_line + 1)[at.column - 1 : at.column] == "\t":
        hint = "indent with blanks, not with tabs"
    elif "expected a single document" in f"{context} {problem}":
        problem, context, hint = "a second document begins here", None, "one file holds one document: remove the `---`"
    notes.error("syntax", f"not YAML: {f'{context}, ' if context else ''}{problem}", at, hint)


def _first_too_deep(text: str, first_line: int) -> Place | None:
    """libyaml doesn't say where it was when we stopped it, but its events do."""
    depth = 0
    for event in yaml.parse(text, _Base):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                return _place(event.start_mark, first_line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def parse_yaml(text: str, notes: Diagnostics, first_line: int = 1) -> Parsed | None:
    """The one document of a text, or nothing and the reason. `first_line` is where the text begins in its file."""
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            notes.error("empty", "there is nothing in this file", Place(first_line, 1), "begin with `test_suite:`")
            return None
        walk = _Walk(notes, first_line, most=max(100_000, len(text)))
        return Parsed(walk.value(root), NodeLocator(root, first_line), walk.dollars)
    except yaml.YAMLError as error:
        _syntax(error, text, first_line, notes)
    except _TooMuch as error:
        at = error.place or _first_too_deep(text, first_line)
        notes.error(error.code, error.message, at, "split the file, or write it flatter")
    except UnicodeEncodeError:
        notes.error("not-utf8", "half of a surrogate pair, which is no character", hint="save the text as UTF-8")
    finally:
        if loader is not None:
            loader.dispose()
    return None


def read_plain(text: str) -> Any:
    """A single word or text as YAML reads it: for the default of a variable in an untyped place."""
    tag = _tag(text.strip())
    if tag in ("null", "bool", "int", "float"):
        return _Walk(Diagnostics(), 1, 0).scalar(ScalarNode(tag, text.strip()))
    if text.strip()[:1] in ("[", "{"):
        parsed = parse_yaml(text, ignored := Diagnostics())
        if parsed is not None and not ignored:
            return parsed.data
    return text
