"""Masks secrets in everything that is shown or written, in every form in which ATP or a server may write them.

A run has one `Secrets`, and `masking` makes it the current one. `cut` of `base/text.py` masks by the current one before
it cuts, so no code that cuts a text for people has to know the run's secrets. `secret_values.py` says which values are
secret.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import replace

MASK = "***"
SHORTEST_SECRET = 6
"""Shorter values are not masked: harmless text would be full of masks."""
_SHORTEST_LINE = 8
"""Characters of a line of a secret (a PEM key, say) that is masked where it stands alone."""
_LONGEST_ANCHOR = 32
_WIDEST = 12
"""Characters that one character of a secret may become: `%F0%9F%98%80`."""
_UNESCAPED = r"A-Za-z0-9_.~-"
"""Characters that JSON, Python, URLs and HTML write as they are."""
_RUNS = re.compile(rf"[{_UNESCAPED}]+|\\+|\s+|.", re.DOTALL)
_ANCHORS = re.compile(rf"[{_UNESCAPED}]+")
_BASE64_ANCHORS = re.compile(r"[A-Za-z0-9]+")
_ENTITIES = {'"': "quot", "'": "apos", "&": "amp", "<": "lt", ">": "gt"}
_BASE64_FORMS = {"+": r"(?:\\*+(?:\+|(?i:u002b))|-|(?i:%2b))", "/": r"(?:\\*+/|_|(?i:%2f))"}
_BASE64_END = r"(?:[A-Za-z0-9+/_-]|(?i:%2[bf]))?(?:=|(?i:%3d)){0,2}"

Hide = Callable[[Any], Any]
"""Masks the secrets in a value."""


class _Form:
    """One form of a secret. `anchor` is a part of every text in this form, and is looked for first: that is fast."""

    __slots__ = ("_compiled", "_pattern", "anchor")

    def __init__(self, anchor: str, pattern: str) -> None:
        self.anchor = anchor[:_LONGEST_ANCHOR]
        self._pattern = pattern
        self._compiled: re.Pattern[str] | None = None

    def replace(self, text: str, by: "Callable[[re.Match[str]], str] | str") -> str:
        # Compiled when first seen: most secrets of an environment are never written anywhere.
        if self._compiled is None:
            self._compiled = re.compile(self._pattern)
        return self._compiled.sub(by, text)


class _Search:
    """Finds secrets in all their forms."""

    def __init__(self, values: Sequence[str]) -> None:
        self._forms = [form for value in values for form in _forms(value)]
        self.anchors = tuple(dict.fromkeys(form.anchor for form in self._forms))
        self.byte_anchors = tuple(anchor.encode() for anchor in self.anchors)
        self.reach = _WIDEST * max(map(len, values), default=0)

    def replaced(self, text: str, by: "Callable[[re.Match[str]], str] | str" = MASK) -> str:
        if any(map(text.__contains__, self.anchors)):
            for form in self._forms:
                if form.anchor in text:
                    text = form.replace(text, by)
        return text

    def masked(self, value: Any, numbers: dict[float, str]) -> Any:
        if isinstance(value, str):
            return self.replaced(value)
        if isinstance(value, dict):
            return {self.masked(key, numbers): self.masked(item, numbers) for key, item in value.items()}
        if isinstance(value, list):
            return [self.masked(item, numbers) for item in value]
        if isinstance(value, Struct):
            names = value.__struct_fields__
            return replace(value, **{name: self.masked(getattr(value, name), numbers) for name in names})
        # True and false are numbers in Python, too, but none that is long enough for a secret.
        return MASK if numbers and isinstance(value, int | float) and value in numbers else value


def _forms(secret: str) -> Iterator[_Form]:
    anchor = _longest(_ANCHORS, secret)
    yield _Form(anchor, _escaped(secret))
    raw = secret.encode(errors="replace")
    from base64 import b64encode  # not before a text is to be masked

    for before in range(3):  # how a secret is written in base64 depends on the number of bytes before it
        encoded = b64encode(bytes(before) + raw).decode().rstrip("=")
        ends_inside = (before + len(raw)) % 3 != 0  # the last character depends on what follows, too
        core = encoded[(0, 2, 3)[before] : len(encoded) - ends_inside]
        pattern = "".join(_BASE64_FORMS.get(one, one) for one in core)
        pattern = pattern if core[0].isalnum() else rf"(?<!\\){pattern}"
        yield _Form(_longest(_BASE64_ANCHORS, core), pattern + (_BASE64_END if ends_inside else ""))
    if "\n" in secret:  # what is printed is kept line by line
        for line in secret.splitlines():
            if len(line.strip()) >= _SHORTEST_LINE and not line.startswith("-----"):
                yield _Form(_longest(_ANCHORS, line.strip()), _escaped(line.strip()))


def _longest(runs: "re.Pattern[str]", text: str) -> str:
    """The longest run in the text; empty if there is none, and then every text has to be searched."""
    return max(runs.findall(text), key=len, default="")


def _escaped(secret: str) -> str:
    """A pattern of the secret as it is, and as JSON, Python's `repr`, a URL, HTML or a shell may escape it.

    Each also inside another: JSON in a text that is written as JSON has twice the backslashes. Backslashes are matched
    possessively and from their first on, so that a text of nothing else takes no longer than any other.
    """
    pattern = "".join(_run(found[0]) for found in _RUNS.finditer(secret.strip()))
    return pattern if _ANCHORS.match(secret.strip()) else rf"(?<!\\){pattern}"


def _run(run: str) -> str:
    first = run[0]
    if _ANCHORS.fullmatch(run):
        return re.escape(run)
    if first == "\\":
        return r"(?:\\|(?i:%5c|u005c))++"
    if first.isspace():
        space = r"\s|\\+[nrtvf]|(?i:%20|%09|%0[a-d]|\\+(?:x|u00)(?:20|09|0[a-d]))"
        # Line breaks may be gone, too: errors are often told on one line.
        return rf"(?:{space})*" if "\n" in run else rf"(?:\+|{space})+"
    code, raw = ord(first), first.encode(errors="replace")
    escaped = [re.escape(first), "".join(rf"x(?i:{byte:02x})\\*+" for byte in raw).removesuffix(r"\\*+")]
    escaped += [rf"x(?i:{code:02x})"] if 0x80 <= code < 0x100 else []
    if code < 0x10000:
        escaped.append(rf"u(?i:{code:04x})")
    else:
        pair = first.encode("utf-16-be").hex()
        escaped += [rf"u(?i:{pair[:4]})\\*+u(?i:{pair[4:]})", rf"U(?i:{code:08x})"]
    ways = [rf"\\*+(?:{'|'.join(escaped)})", "(?i:" + "".join(f"%{byte:02x}" for byte in raw) + ")"]
    if first in _ENTITIES:
        ways.append(rf"&(?:{_ENTITIES[first]}|#0*{code}|#x0*(?i:{code:x}));")
    return f"(?:{'|'.join(ways)})"


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
    def reach(self) -> int:
        """The most characters that a secret takes in any form."""
        return self._search.reach

    def may_be_in(self, text: str | bytes | bytearray) -> bool:
        """False if no secret is in the text, or in the bytes of a text in UTF-8. Costs a search and nothing more."""
        if isinstance(text, str):
            return any(map(text.__contains__, self._search.anchors))
        return any(map(text.__contains__, self._search.byte_anchors))

    def mask(self, value: Any, numbers: bool = False) -> Any:
        """The value with every secret in its texts replaced, in keys too; with `numbers`, also those read as numbers.

        Without `numbers` numbers stay: among measured figures, a duration may by chance equal a secret.
        """
        search = self._search
        return search.masked(value, secret_numbers(self._values) if numbers else {}) if search.anchors else value

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


def mask(value: Any, secrets: Iterable[str], numbers: bool = True) -> Any:
    """The value with every secret in it replaced, also one that was read as a number unless `numbers` is False."""
    return secrets_of(secrets).mask(value, numbers)


def blot_out(text: str, secrets: Iterable[str]) -> str:
    """The text with as many asterisks as each secret has characters."""
    return secrets_of(secrets).blot_out(text)


def hider(secrets: Iterable[str]) -> Hide:
    """A function that masks these secrets, but no numbers. Without secrets it costs a call and nothing more."""
    return secrets_of(secrets).mask


_CURRENT: ContextVar[Secrets] = ContextVar("secrets")
_NONE, _EVER = Secrets(), Secrets()


def current_secrets() -> Secrets:
    """The secrets of the run that this code is a part of."""
    return _CURRENT.get(_NONE)


@contextmanager
def masking(secrets: Secrets) -> Iterator[None]:
    """Make these the current secrets, also in the tasks and threads that are started inside."""
    before = current_secrets()
    _CURRENT.set(secrets)
    try:
        yield
    finally:
        _CURRENT.set(before)  # not `reset`: pytest enters and leaves in different contexts
        _EVER.add(secrets)


def every_secret() -> Secrets:
    """The secrets that were current at any time in this process, for the error that ends the process."""
    return _EVER


def secret_numbers(secrets: Iterable[str]) -> dict[float, str]:
    """The secrets that YAML reads as numbers, by their value."""
    found: dict[float, str] = {}
    for secret in secrets:
        number = _number(secret)
        if number is not None and len(str(number)) >= SHORTEST_SECRET:
            found[number] = secret
    return found


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
