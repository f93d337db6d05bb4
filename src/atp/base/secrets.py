"""Masks secrets in everything that is shown or written, in every form in which ATP or a server may write them.

A run has one `Secrets`, and `masking` makes it the current one. `cut` of `base/text.py` masks by the current one before
it cuts, so no code that cuts a text for people has to know the run's secrets. `secret_values.py` says which values are
secret.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property, lru_cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, overload

from msgspec import Struct, UnsetType
from msgspec.structs import fields, replace

MASK = "***"
CUT_MARK = "…"
"""Where a text that is shown was cut."""
SHORTEST_SECRET = 6
"""Shorter values are not masked: harmless text would be full of masks."""
_SHORTEST_LINE = 8
"""Characters of a line of a secret (a PEM key, say) that is masked where it stands alone."""
_LONGEST_ANCHOR = 32
_WIDEST = 36
"""Characters that one byte of a secret may become: `\\u0041` with each of its six characters written like that."""
_MOST_LAYERS = 4
"""How often a text may have been escaped as a whole."""
_ANYTHING = re.compile(".*", re.DOTALL)
_UNESCAPED = r"A-Za-z0-9_.~-"
"""Characters that JSON, Python, URLs and HTML write as they are."""
_BLANKS = " \t\n\r\f\v"
"""Blanks of which one may be written as another. All others may be escaped, too."""
_RUNS = re.compile(rf"""[{_UNESCAPED}]|[\\"']+|[{_BLANKS}]+|[^\S{_BLANKS}]+|.""", re.DOTALL)
_ANCHORS = re.compile(rf"[{_UNESCAPED}]+")
_BASE64_ANCHORS = re.compile(r"[A-Za-z0-9]+")
_HEX = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")
_CONTROLS = {"\a": "a", "\b": "b", "\x1b": "e", "\0": "0"}
_ENTITIES = {'"': "quot|", "'": "apos|", "&": "amp|", "<": "lt|", ">": "gt|"}
_PERCENT = "%(?:25){0,2}"
"""A `%` of a URL, also of one that was escaped again, up to three times."""
_BACKSLASH = rf"(?:\\|(?i:{_PERCENT}5c))"
_NOT_AMID_BACKSLASHES = r"(?<!\\)(?<!(?i:u005c))(?<!(?i:x5c))" + "".join(
    f"(?<!(?i:{end}))"
    for percent in ("%", "%25", "%2525")
    for end in (
        f"{percent}5c",
        *(f"{code}{semicolon}" for code in ("[#03]92", "[x0]5c") for semicolon in (";", f"{percent}3b")),
    )
)
"""A search for backslashes begins with their first, however they are written."""
_SEMICOLON = rf"(?:;|(?i:{_PERCENT}3b))"
_AMPERSAND = rf"(?:&|\\u0026|{_PERCENT}26)(?:amp{_SEMICOLON})*"
_NUMBER_SIGN = rf"(?:#|{_PERCENT}23)"
_ENTITY_NUMBER = rf"{_AMPERSAND}{_NUMBER_SIGN}0*"
_BACKSLASHES = rf"(?:{_BACKSLASH}|(?:u00|x)(?i:5c)|{_ENTITY_NUMBER}(?:92|(?i:x0*5c)){_SEMICOLON})++"
_SPACE_CODE = "(?i:20|09|0[a-d])"
_SPACE = (
    # A backslash before `n` may have been taken for one of the quotes and backslashes before it.
    rf"\s|(?:{_BACKSLASH}++|(?<=\\)|(?<=%5[cC]))(?:[nrtvf]|0(?:1[1-5]|40)|(?:x|u00){_SPACE_CODE})"
    rf"|{_PERCENT}{_SPACE_CODE}|{_ENTITY_NUMBER}(?:9|1[0-3]|32|(?i:x0*(?:9|[a-d]|20))){_SEMICOLON}"
)
"""A blank, a tab or a line break; XML writes them as numbers in attributes."""
_QUOTES = (
    rf"""(?:["']|{_BACKSLASH}++(?:(?:u00|x)(?i:22|27|5c))?|(?i:{_PERCENT}(?:22|27))"""
    rf"|{_AMPERSAND}(?:quot|apos|{_NUMBER_SIGN}0*(?:34|39|92|(?i:x0*(?:22|27|5c)))){_SEMICOLON})++"
)
"""Quotes and backslashes: JSON, shells, CSV and SQL add more of them, and each in another more again."""
_BASE64_FORMS = {"+": r"(?:\\*+(?:\+|(?i:u002b))|-|(?i:%2b))", "/": r"(?:\\*+/|_|(?i:%2f))"}
_BASE64_END = r"(?:[A-Za-z0-9+/_-]|(?i:%2[bf]))?(?:=|(?i:%3d)){0,2}"
_BREAK = r"(?:\\++[rn]|(?<=\\)[rn]|[\r\n]|%0[aAdD]){0,4}"
"""What may be between two characters of a secret that is wrapped: up to four, so that no text takes long."""
_WRITTEN_BREAKS = ("\\n", "\\r", "%0a", "%0A", "%0d", "%0D")
_LETTERS = "2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e"
_ESCAPED = re.compile(
    rf"(?i:(?:{_BACKSLASH}(?:u00|u(?:\{{|{_PERCENT}7b)0*|x)|{_PERCENT})(?:{_LETTERS})|{_BACKSLASH}(?:0[67]|1[0-7])[0-7]|{_ENTITY_NUMBER}"
    rf"(?:x0*(?:{_LETTERS})|4[5689]|5[0-7]|6[5-9]|[78][0-9]|9[05789]|1[01][0-9]|12[0-26]){_SEMICOLON})"
)
"""No library escapes a letter or a digit by itself: a text in which one is escaped is worth a slow search."""
_ESCAPED_ESCAPE = re.compile(r"(?i:%(?:25|26|5c)|(?:u00|x)(?:5c|25|26)|&#(?:0*92|x0*5c);|&amp;#)")
"""So is one in which the beginning of an escape is escaped."""

Hide = Callable[[Any], Any]
"""Masks the secrets in a value."""


class _Form:
    """One form of a secret. `anchor` is a part of every text in this form, and is looked for first: that is fast."""

    __slots__ = ("_after", "_before", "_compiled", "_units", "anchor")

    def __init__(self, anchor: str, units: Sequence[str], before: str = "", after: str = "") -> None:
        """`units` are the patterns of the single characters; `before` and `after` are patterns of what is around."""
        self.anchor = anchor[:_LONGEST_ANCHOR]
        self._units, self._before, self._after = units, before, after
        self._compiled: dict[str, re.Pattern[str]] = {}

    def replace(self, text: str, by: "Callable[[re.Match[str]], str] | str", between: str = "") -> str:
        """Replace the secret in a text, also with `between` between its characters."""
        # Compiled when first seen: most secrets of an environment are never written anywhere.
        if (compiled := self._compiled.get(between)) is None:
            pattern = self._before + between.join(self._units) + self._after
            self._compiled[between] = compiled = re.compile(pattern)
        return compiled.sub(by, text)


class _Search:
    """Finds secrets in all their forms."""

    def __init__(self, values: Sequence[str]) -> None:
        self._forms = [form for value in values for form in _forms(value)]
        self._values = values
        self.anchors = tuple(dict.fromkeys(form.anchor for form in self._forms))
        self.reach = _WIDEST * max((len(value.encode(errors="replace")) for value in values), default=0)

    @cached_property
    def numbers(self) -> dict[float, str]:
        return secret_numbers(self._values)

    def may_be_in(self, text: str) -> bool:
        return any(map(text.__contains__, self.anchors)) or _may_be_escaped(text) or self._may_be_broken(text)

    def _may_be_broken(self, text: str) -> bool:
        """Whether a secret may be in the text with line breaks in it."""
        has_breaks = "\n" in text or "\\n" in text or "%0" in text
        return has_breaks and any(map(_joined(text).__contains__, self.anchors))

    @cached_property
    def _escaped(self) -> list[_Form]:
        """The secrets with any of their characters escaped."""
        return [_Form("", _units(one.strip(), _any_way), _NOT_AMID_BACKSLASHES) for one in self._values]

    def replaced(self, text: str, by: "Callable[[re.Match[str]], str] | str" = MASK) -> str:
        if any(map(text.__contains__, self.anchors)):
            for form in self._forms:
                if form.anchor in text:
                    text = form.replace(text, by)
        if _may_be_escaped(text):
            for form in self._escaped:
                text = form.replace(text, by)
            text = self._replaced_in_layers(text, by)
        if self._may_be_broken(text):
            joined = _joined(text)
            for form in self._forms:
                if form.anchor in joined:
                    text = form.replace(text, by, _BREAK)
        return self._replaced_parts(text, by) if CUT_MARK in text else text

    def _replaced_parts(self, text: str, by: "Callable[[re.Match[str]], str] | str") -> str:
        """Replace parts of secrets where a text was cut, perhaps before they were known to be secret."""
        spans = []
        for mark in re.finditer(CUT_MARK, text):
            begin, end = mark.span()
            for value in self._values:
                before, after = text[max(0, begin - len(value)) : begin], text[end : end + len(value)]
                found = before.rfind(value[:_SHORTEST_LINE])
                if found >= 0 and value.startswith(part := before[found:]) and len(part) >= _SHORTEST_LINE:
                    spans.append((begin - len(part), begin))
                found = after.find(value[-_SHORTEST_LINE:])
                part = after[: found + _SHORTEST_LINE]
                if found >= 0 and value.endswith(part) and len(part) >= _SHORTEST_LINE:
                    spans.append((end, end + len(part)))
        return _with_spans(text, spans, by)

    @cached_property
    def _layer_forms(self) -> list[_Form]:
        """The forms in which secrets are looked for where escapes are undone.

        An escape may stand for a single byte of UTF-8, or for one half of a character in UTF-16.
        """
        others = [one.strip() for one in self._values if not one.isascii()]
        by_bytes = [one.encode(errors="replace").decode("latin-1") for one in others]
        halves = [re.sub(r"[^\0-\uffff]", lambda found: _halves(found[0]), one) for one in others]
        return [*self._forms, *map(_as_text, by_bytes), *map(_as_text, halves)]

    def _replaced_in_layers(self, text: str, by: "Callable[[re.Match[str]], str] | str") -> str:
        """Replace secrets that were escaped as a whole more than once: each layer is undone, and searched."""
        from atp.base.escapes import undo_escapes  # few texts have such escapes

        spans: list[tuple[int, int]] = []
        layer, origins = text, list[Callable[[int], int]]()
        while len(origins) < _MOST_LAYERS:
            undone, origin = undo_escapes(layer)
            if undone == layer:
                break
            layer = undone
            origins.append(origin)
            found = list[tuple[int, int]]()
            for form in self._layer_forms:
                if form.anchor in layer:
                    layer = form.replace(layer, partial(_blot, found))
            for span in found:
                for back in reversed(origins):
                    span = back(span[0]), back(span[1])  # noqa: PLW2901
                spans.append(span)
        return _with_spans(text, spans, by)

    def masked(self, value: Any, numbers: dict[float, str]) -> Any:
        if isinstance(value, str):
            return self.replaced(value)
        if isinstance(value, dict):
            return {self.masked(key, numbers): self.masked(item, numbers) for key, item in value.items()}
        if isinstance(value, list):
            return [self.masked(item, numbers) for item in value]
        if isinstance(value, Struct):
            free, fixed = _free_fields(type(value)), fixed_fields(type(value))
            masked = {
                name: self.masked(getattr(value, name), self.numbers if name in free else numbers)
                for name in value.__struct_fields__
                if name not in fixed
            }
            return replace(value, **masked)
        # True and false are numbers in Python, too, but none that is long enough for a secret.
        return MASK if numbers and isinstance(value, int | float) and value in numbers else value


@cache
def _free_fields(kind: type[Struct]) -> frozenset[str]:
    """The fields of a record that hold any JSON value: what an agent or a test has given, and nothing measured."""
    return frozenset(one.name for one in fields(kind) if _has_any(one.type))


def _has_any(kind: Any) -> bool:
    return kind is Any or any(map(_has_any, get_args(kind)))


@cache
def fixed_fields(kind: type[Struct]) -> frozenset[str]:
    """The fields of a record that hold a word of ATP's own, such as `passed`. They stay if a secret is that word."""
    return frozenset(one.name for one in fields(kind) if _is_literal(one.type))


def _is_literal(kind: Any) -> bool:
    """True for `Literal[…]`, also for one that may be null or left out."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return {get_origin(one) for one in kinds if one not in (None, NoneType, UnsetType)} == {Literal}


def _halves(one: str) -> str:
    """The surrogate pair of a character."""
    raw = one.encode("utf-16-be")
    return chr(int.from_bytes(raw[:2], "big")) + chr(int.from_bytes(raw[2:], "big"))


def _blot(found: list[tuple[int, int]], one: re.Match[str]) -> str:
    """Note where a secret is, and put asterisks there: places stay the same, because the text keeps its length."""
    found.append(one.span())
    return "*" * len(one[0])


def joined_spans(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order. Those that overlap are one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(found):
        if joined and begin < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif begin < end:
            joined.append((begin, end))
    return joined


def _with_spans(text: str, spans: Iterable[tuple[int, int]], by: "Callable[[re.Match[str]], str] | str") -> str:
    """The text with these spans of it replaced."""
    replaced, position = list[str](), 0
    for begin, end in joined_spans(spans):
        match = _ANYTHING.match(text, begin, end)
        assert match is not None
        replaced += (text[position:begin], by if isinstance(by, str) else by(match))
        position = end
    return "".join((*replaced, text[position:]))


def _may_be_escaped(text: str) -> bool:
    """Whether a letter or a digit is escaped in the text."""
    hinted = "%" in text or "\\" in text or ("&" in text and "#" in text)
    return hinted and (_ESCAPED.search(text) or _ESCAPED_ESCAPE.search(text)) is not None


def _joined(text: str) -> str:
    """The text without line breaks, and without backslashes: no anchor has one."""
    for one in (*_WRITTEN_BREAKS, "\n", "\r", "\\"):
        text = text.replace(one, "")
    return text


def _forms(secret: str) -> Iterator[_Form]:
    written = {secret, *_number_texts(secret)}
    if _HEX.fullmatch(secret):
        written |= {secret.lower(), secret.upper()}
    if "\\n" in secret:  # how a PEM key is often written in a variable; its program reads it as line breaks
        written.add(secret.replace("\\n", "\n"))
    for one in sorted(written):
        if _ANCHORS.fullmatch(one.strip()) is None:  # it may have parts that look escaped, and are not: `%5c`
            yield _Form(_longest(_ANCHORS, one), list(map(re.escape, one.strip())))
        yield _as_text(one.strip())
        if len(lines := one.splitlines()) > 1:  # what is printed is kept line by line
            lines = [line.strip() for line in lines]
            yield from (_as_text(line) for line in lines if len(line) >= _SHORTEST_LINE and line[:5] != "-----")
    secret = secret.strip()  # whoever uses the secret may have done so, and what is around it changes no form
    for one in sorted({secret, *_quoted(secret)} if _ANCHORS.fullmatch(secret) is None else {secret}):
        yield from _in_base64(one.encode(errors="replace"))
    digits = secret.encode(errors="replace").hex()
    yield from (_Form(one, one) for one in (digits, digits.upper()))


def _quoted(secret: str) -> tuple[str, ...]:
    """The secret as it is written in what is written in base64: JSON and URLs."""
    import json
    from urllib.parse import quote  # neither is needed for most secrets

    return json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, safe="")


def _as_text(secret: str) -> _Form:
    """The secret as it is, and as JSON, Python's `repr`, a URL, HTML, CSV or a shell may escape it.

    Each also inside another: JSON in a text that is written as JSON has twice the backslashes. Backslashes are matched
    possessively and from their first on, so that a text of nothing else takes no longer than any other.
    """
    return _Form(
        _longest(_ANCHORS, secret), _units(secret, re.escape), "" if _ANCHORS.match(secret) else _NOT_AMID_BACKSLASHES
    )


def _units(secret: str, letter: Callable[[str], str]) -> list[str]:
    """The patterns of the characters of a secret; `letter` makes those of letters and digits."""
    runs = _RUNS.findall(secret)
    inner = range(1, len(runs) - 1)
    return [letter(run) if _ANCHORS.match(run) else _run(run, number in inner) for number, run in enumerate(runs)]


def _in_base64(raw: bytes) -> Iterator[_Form]:
    from base64 import b64encode  # not before a text is to be masked

    for before in range(3):  # how a secret is written in base64 depends on the number of bytes before it
        encoded = b64encode(bytes(before) + raw).decode().rstrip("=")
        ends_inside = (before + len(raw)) % 3 != 0  # the last character depends on what follows, too
        core = encoded[(0, 2, 3)[before] : len(encoded) - ends_inside]
        units = [_BASE64_FORMS.get(one, one) for one in core]
        guard = "" if core[0].isalnum() else r"(?<!\\)"
        yield _Form(_longest(_BASE64_ANCHORS, core), units, guard, _BASE64_END if ends_inside else "")


def _longest(runs: "re.Pattern[str]", text: str) -> str:
    """The longest run in the text; empty if there is none, and then every text has to be searched."""
    return max(runs.findall(text), key=len, default="")


def _run(run: str, inner: bool) -> str:
    """The pattern of a run of characters of one kind; `inner` if there are others on both sides."""
    first = run[0]
    if first in _BLANKS:
        # Line breaks may be gone, too: errors are often told on one line.
        return rf"(?:{_SPACE})*" if "\n" in run else rf"(?:\+|(?i:{_PERCENT}2b)|{_SPACE})+"
    if first.isspace():
        return rf"(?:{_SPACE}|{'|'.join(map(_any_way, sorted(set(run))))})*"
    if first in "\\\"'" and inner:
        return _QUOTES
    # At an end of the secret, further quotes belong to what is around it.
    pieces = re.findall(r"\\+|.", run, re.DOTALL)
    return "".join(_BACKSLASHES if one[0] == "\\" else _any_way(one) for one in pieces)


def _any_way(one: str) -> str:
    """The pattern of a character as it is, or escaped."""
    code, raw = ord(one), one.encode(errors="replace")
    by_bytes = "".join(rf"x(?i:{byte:02x}){_BACKSLASH}*+" for byte in raw).removesuffix(rf"{_BACKSLASH}*+")
    octal = "".join(rf"{byte:03o}{_BACKSLASH}*+" for byte in raw).removesuffix(rf"{_BACKSLASH}*+")
    escaped = [by_bytes, octal, rf"u\{{0*(?i:{code:x})\}}", rf"U(?i:{code:08x})"]
    escaped += [rf"x(?i:{code:02x})"] if 0x80 <= code < 0x100 else []
    if code < 0x10000:
        escaped.append(rf"u(?i:{code:04x})")
    else:
        pair = one.encode("utf-16-be").hex()
        escaped.append(rf"u(?i:{pair[:4]}){_BACKSLASH}*+u(?i:{pair[4:]})")
    escaped += [_CONTROLS[one]] if one in _CONTROLS else []
    ways = ["(?i:" + "".join(f"{_PERCENT}{byte:02x}" for byte in raw) + ")"]
    ways += [rf"(?i:{_PERCENT}{code:02x})"] if 0x80 <= code < 0x100 else []
    ways.append(rf"{_AMPERSAND}(?:{_ENTITIES.get(one, '')}{_NUMBER_SIGN}0*(?:{code}|(?i:x0*{code:x}))){_SEMICOLON}")
    return rf"(?:{'|'.join(ways)}|{_BACKSLASH}*+(?:{re.escape(one)}|{'|'.join(escaped)}))"


_NOTHING = _Search(())


class Secrets(Sequence[str]):
    """The values that no output of a run may show. Values may be added while the run goes on."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        self._found_by: _Search | None = _NOTHING
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Mask these values, too, from here on."""
        new = set(values).difference(self._values) - {""}
        if new:
            # The longest first: one secret may contain another.
            self._values = sorted({*self._values, *new}, key=lambda one: (-len(one), one))
            self._found_by = None

    @property
    def _search(self) -> "_Search":
        if (search := self._found_by) is None:
            self._found_by = search = _Search(self._values)
        return search

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    @property
    def has_numbers(self) -> bool:
        """Whether a secret may be read as a number."""
        return bool(self._search.numbers)

    @property
    def reach(self) -> int:
        """The most characters that a secret takes in any form."""
        return self._search.reach

    def may_be_in(self, text: str | bytes | bytearray) -> bool:
        """False if no secret is in the text, or in the bytes of a text in UTF-8. Costs a search and nothing more."""
        search = self._search
        if not search.anchors:
            return False
        return search.may_be_in(text if isinstance(text, str) else text.decode(errors="replace"))

    def mask_text(self, text: str) -> str:
        """The text with every secret in it replaced."""
        search = self._search
        return search.replaced(text) if search.anchors else text

    def mask(self, value: Any, *, numbers: bool) -> Any:
        """The value with every secret in its texts replaced, in keys too; with `numbers`, also those read as numbers.

        Without `numbers` only those in free values of records are: among measured figures, a duration may by chance
        equal a secret.
        """
        search = self._search
        return search.masked(value, search.numbers if numbers else {}) if search.anchors else value

    def mask_beginning(self, text: str, longest: int) -> str:
        """At least `longest` characters of the masked text, or all of it. No more of a long text is read than that."""
        search = self._search
        size = longest + search.reach
        while size < len(text):
            masked = search.replaced(text[:size])
            # The last characters that were read may be the beginning of a secret.
            if len(masked) - search.reach >= longest:
                return masked[: len(masked) - search.reach]
            size *= 2
        return search.replaced(text)

    def blot_out(self, text: str) -> str:
        """The text with as many asterisks as each secret has characters."""
        return self._search.replaced(text, lambda found: "*" * len(found[0]))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets begin and end in the text, in order. Spans that overlap are one."""
        found: list[tuple[int, int]] = []
        self._search.replaced(text, partial(_blot, found))
        return joined_spans(found)

    def blot_out_pieces(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of a text with asterisks for the secrets in it, also for one that is split over several."""
        whole, blotted, begin = self.blot_out("".join(pieces)), [], 0
        for piece in pieces:
            blotted.append(whole[begin : begin + len(piece)])
            begin += len(piece)
        return blotted


@lru_cache(maxsize=64)
def _made(values: frozenset[str]) -> Secrets:
    return Secrets(values)


def secrets_of(values: Iterable[str]) -> Secrets:
    """These values as `Secrets`."""
    return values if isinstance(values, Secrets) else _made(frozenset(values))


def hider(secrets: Iterable[str]) -> Hide:
    """A function that masks these secrets, but no numbers. Without secrets it costs a call and nothing more."""
    return partial(secrets_of(secrets).mask, numbers=False)


_CURRENT: ContextVar[Secrets] = ContextVar("secrets")
_NONE, _EVER = Secrets(), Secrets()
_ACTIVE: list[Secrets] = []
"""Those that are current in any context, and those to remember: values may still be added to them."""


def current_secrets() -> Secrets:
    """The secrets of the run that this code is a part of."""
    return _CURRENT.get(_NONE)


@contextmanager
def masking(secrets: Secrets) -> Iterator[None]:
    """Make these the current secrets, also in the tasks and threads that are started inside."""
    before = current_secrets()
    _CURRENT.set(secrets)
    _ACTIVE.append(secrets)
    try:
        yield
    finally:
        _CURRENT.set(before)  # not `reset`: pytest enters and leaves in different contexts
        _EVER.add(secrets)
        _ACTIVE.remove(secrets)


def remember(secrets: Secrets) -> None:
    """Have `every_secret` include these until the process ends, and what is added to them later."""
    if not any(one is secrets for one in _ACTIVE):
        _ACTIVE.append(secrets)


def every_secret() -> Secrets:
    """The secrets that were current at any time in this process, for errors that belong to no run."""
    for secrets in tuple(_ACTIVE):
        _EVER.add(secrets)
    return _EVER


def secret_numbers(secrets: Iterable[str]) -> dict[float, str]:
    """The secrets that YAML reads as numbers, by their value."""
    found: dict[float, str] = {}
    for secret in secrets:
        number = _number(secret)
        if number is not None and len(str(number)) >= SHORTEST_SECRET:
            found[number] = secret
    return found


def _number_texts(secret: str) -> Iterator[str]:
    """A secret that YAML reads as a number as JSON writes the number: `0x12345678` as `305419896`."""
    if (number := _number(secret)) is None:
        return
    whole = isinstance(number, int) or number.is_integer()
    yield from (one for one in (str(number), str(int(number)) if whole else "") if len(one) >= SHORTEST_SECRET)


def _number(text: str) -> float | None:
    if not text.lstrip("+-.")[:1].isdigit():
        return None
    for base in (10, 0):
        try:
            return int(text, base)
        except ValueError:
            continue
    try:
        return float(text)
    except ValueError:
        return None
