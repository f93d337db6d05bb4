"""Hypothesis strategies that damage a file: text for loaders, bytes for the readers of what ATP itself has written."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

Unit = TypeVar("Unit", str, bytes)

SIGNS = "{ } [ ] : , \" ' - # // &a *a <<: ${ ${X $${ ! | > ? \\u \\ud800 --- ..."
WORDS = 'null true 1e999 .nan -1 0x1 NaN é type config assertions id: "id" tests:'
SNIPPETS = [*SIGNS.split(" "), *WORDS.split(" "), "\n", "\t", "  ", "\r", "\0", "\x85", "\u2028", "\x1b[31m"]
BYTES = [
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0", b"\n", b"\r\n", b"\\", b'"', b"{", b"}", b"[", b"]"),
    *(b"\\ud800", b"1e300", b"-1e300", b"1e999", b"NaN", b"null", b"true", b"-", b"9" * 30, b"9" * 5_000, b"[" * 3_000),
    *(b'{"type":"start"}', b'"format":99,', b"{}", b"[]", b'""'),
]


@st.composite
def damaged(draw: st.DrawFn, seed: str, snippets: Sequence[str] = SNIPPETS) -> str:
    """A text with pieces deleted, doubled, swapped and put in: characters and lines."""
    source = seed
    for _ in range(draw(st.integers(1, 4))):
        by_line = draw(st.booleans())
        parts = source.splitlines(keepends=True) if by_line else list(source)
        if not parts:
            break
        source = "".join(_change(draw, parts, snippets))
    return source


@st.composite
def damaged_bytes(draw: st.DrawFn, seed: bytes, snippets: Sequence[bytes] = BYTES) -> bytes:
    """The same for bytes, which need not be UTF-8 any more; a file that a crash cut off is among them."""
    source = seed
    for _ in range(draw(st.integers(1, 4))):
        by_line = draw(st.integers(0, 3)) == 0
        parts = source.splitlines(keepends=True) if by_line else [bytes([byte]) for byte in source]
        if not parts:
            break
        source = b"".join(_change(draw, parts, [*snippets, bytes([draw(st.integers(0, 255))])]))
    return source


def _change(draw: st.DrawFn, parts: list[Unit], snippets: Sequence[Unit]) -> list[Unit]:
    i, j = sorted((draw(st.integers(0, len(parts) - 1)), draw(st.integers(0, len(parts) - 1))))
    j = min(j, i + 12)
    match draw(st.sampled_from(["delete", "double", "swap", "insert", "replace", "cut"])):
        case "delete":
            del parts[i : j + 1]
        case "double":
            parts[i:i] = parts[i : j + 1]
        case "swap":
            parts[i], parts[j] = parts[j], parts[i]
        case "insert":
            parts.insert(i, draw(st.sampled_from(snippets)))
        case "replace":
            parts[i : j + 1] = [draw(st.sampled_from(snippets))]
        case "cut":
            del parts[i:]
    return parts
