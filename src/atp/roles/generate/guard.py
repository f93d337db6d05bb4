"""What a variation of a prompt must keep, and when two variations are too similar.

Code, quoted text, numbers, addresses, slash commands, file names, variables and placeholders are kept: a prompt that
changes them asks for something else. None may be added either.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from atp.base.numbers import counted
from atp.base.text import comparable, cut, words

NEAR = 0.85
"""Prompts at least this similar count as the same."""
_WORD = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"  # scripts without blanks: a character counts as a word
    r"|[^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+(?:'[^\W_]+)*"
    r"|[^\w\s.,;:!?'\"()…–—-]"
)
_NUMBER_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    "(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\\w+)?|hundreds?|thousands?|millions?|billions?|dozens?|twice|thrice"
)
# The leftmost match wins, and of those at the same place the first kind: a number in a quotation is quoted text.
_KINDS = {
    "fence": (
        r"(?:(?<!`)(?=`)|(?<!~)(?=~))"  # from the first of them on: trying each again takes the cube of a long row
        r"(?:(?P<f>`{3,20}|~{3,20})[^\n]*+\n(?:.*?\n)?[ \t]*(?P=f)[`~]*[ \t]*(?=\n|\Z)|(?:`{3,}+|~{3,}+)[^\n]*+\n.*)"
    ),
    "code": r"(?P<b>`++).+?(?<!`)(?P=b)(?!`)",
    "address": r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s<>\"`]*[^\s<>\"`.,;:!?'()\[\]{}]|\bwww\.[\w./?=&%#-]*[\w/]",
    "email": r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    "variable": r"\$\{[^}\n]*\}|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\$ENV\.\w+",
    "placeholder": r"\{\{[^\n]{0,200}?\}\}|\{[^{}\n]*\}|<[^<>\n]+>|\[[A-Z][A-Z0-9_ ]*\]|%[sd]\b",
    "quoted": (
        r"(?<!\w)\"[^\"]{1,2000}\"|“[^”]{1,2000}”|„[^“”\"]{1,2000}[“”\"]|«[^»]{1,2000}»|「[^」]{1,2000}」|『[^』]{1,2000}』|"
        r"(?<![\w’])[‘'](?!\s)[^'‘’\n]{1,200}(?:['’]\w[^'‘’\n]{0,200}){0,5}(?<!\s)['’](?!\w)"
    ),
    "command": r"(?<![^\s(])/[A-Za-z][\w:-]*(?![\w/.])",
    "path": r"(?<![\w/\\.@-])(?!(?i:and/or|he/she|his/her)\b)"
    r"(?:[A-Za-z]:\\|~/|\.{1,2}/|/)?[\w.@-]+(?:[/\\][\w.@*-]+)+/?(?<![.])",
    "file": r"(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?:[A-Za-z][A-Za-z0-9]{1,7}|[ch])\b",
    "flag": r"(?<![\w-])--?[A-Za-z][\w-]*",
    "mention": r"(?<!\w)[@#]\w[\w-]*",
    "number": r"[-+]?[$€£¥]?\b\w*\d(?:[\w.,:/%°€£-]*[\w%°€£])?",
    "name": r"\b\w+_\w+\b(?:\(\))?|\b\w+\(\)|\b[a-z]+[A-Z]\w*",
    "number word": rf"\b(?i:{_NUMBER_WORDS})\b",
}
_PIECE = re.compile("|".join(f"(?P<k{n}>{pattern})" for n, pattern in enumerate(_KINDS.values())), re.DOTALL)
_NAMES = list(_KINDS)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt that must be kept."""

    kind: str
    """`fence`, `code`, `number` …"""
    text: str
    """The part itself."""
    start: int
    """Where the part begins in the prompt."""
    end: int
    """Where the part ends."""


@lru_cache(maxsize=64)  # the same prompt is compared with many candidates
def all_pieces(text: str) -> tuple[Piece, ...]:
    """The parts of a prompt that must be kept, in order."""
    return tuple(_pieces(text))


def _pieces(text: str) -> Iterator[Piece]:
    for found in _PIECE.finditer(text):
        kind = next(number for number in range(len(_NAMES)) if found[f"k{number}"] is not None)
        yield Piece(_NAMES[kind], found[0], found.start(), found.end())


def _kept_parts(text: str) -> Iterator[str]:
    return (_canonical(piece) for piece in all_pieces(text))


def _canonical(piece: Piece) -> str:
    """The part as it is compared: with straight quotation marks, and number words in lower case."""
    if piece.kind == "quoted":
        return f'"{piece.text[1:-1]}"'
    return piece.text.lower() if piece.kind == "number word" else piece.text


def must_keep(text: str) -> list[str]:
    """The parts that a variation of a prompt must keep, each once."""
    return list(dict.fromkeys(_kept_parts(text)))


def changed(original: str, candidate: str) -> str | None:
    """Why a candidate is not a variation of a prompt; none if it is one."""
    if not candidate.strip():
        return "it is empty"
    if len(candidate) > max(200, 4 * len(original)):
        return "it is much longer than the prompt"
    if not _writable(candidate):
        return "it has characters that are none"
    before, after = Counter(_kept_parts(original)), Counter(_kept_parts(candidate))
    if lost := [part for part, times in before.items() if after[part] < times]:
        return f"it lost {_shown(lost[0])}"
    if new := [part for part in after if part not in before]:
        return f"it brings in {_shown(new[0])}"
    first = next(iter(all_pieces(original.lstrip())), None)
    if first and first.kind == "command" and first.start == 0 and not candidate.startswith(first.text):
        return f"the command {first.text} must come first"
    return None


def chain_changed(original: Sequence[str], candidate: Sequence[str]) -> str | None:
    """Why a chain of prompts is not a variation of another; none if it is one."""
    if len(original) != len(candidate):
        return f"it has {counted(len(candidate), 'prompt')} instead of {len(original)}"
    found = (changed(before, after) for before, after in zip(original, candidate, strict=True))
    return next((why for why in found if why), None)


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _shown(part: str) -> str:
    return cut(words(part), 60)


class Features(NamedTuple):
    """What the similarity of prompts is computed from."""

    words: frozenset[str]
    """The words."""
    trigrams: frozenset[str]
    """The groups of three characters."""


def features(text: str) -> Features:
    """The words and trigrams of a prompt, without case, punctuation and blanks.

    A long part that every variation keeps, such as code, counts as one word. Otherwise it would make all similar.
    """
    shortened: list[str] = []
    at = 0
    for piece in all_pieces(text):
        if piece.end - piece.start > 24:
            mark = blake2b(piece.text.encode(errors="replace"), digest_size=3).hexdigest()
            shortened += [text[at : piece.start], f" {mark} "]
            at = piece.end
    plain = unicodedata.normalize("NFKC", "".join([*shortened, text[at:]])).casefold().replace("’", "'")
    words = _WORD.findall(plain)
    line = f"  {' '.join(words)}  "
    return Features(frozenset(words), frozenset(line[n : n + 3] for n in range(len(line) - 2)))


def similarity(one: Features, other: Features) -> float:
    """The similarity of two prompts, 0 to 1: the mean Jaccard index of their words and of their trigrams.

    Words alone would count a changed ending as another word, trigrams alone would overrate a changed order.
    """
    return (_jaccard(one.words, other.words) + _jaccard(one.trigrams, other.trigrams)) / 2


def _differ_in_a_word(one: Features, other: Features) -> bool:
    """True if one word at most was added, left out or replaced, and it is not the only one that matters."""
    shared = len(one.words & other.words)
    return shared >= 2 and max(len(one.words), len(other.words)) - shared <= 1


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both) if one or other else 1.0


class Known:
    """The chains so far, to tell whether a further one is new."""

    def __init__(self, chains: Iterable[Sequence[str]] = ()) -> None:
        self._texts: set[tuple[str, ...]] = set()
        self._features: list[list[Features]] = []
        for chain in chains:
            self.add(chain)

    def add(self, chain: Sequence[str]) -> None:
        """Add a chain."""
        self._texts.add(tuple(map(comparable, chain)))
        self._features.append(list(map(features, chain)))

    def has(self, chain: Sequence[str]) -> bool:
        """True if the chain is known, blanks aside."""
        return tuple(map(comparable, chain)) in self._texts

    def has_near(self, chain: Sequence[str]) -> bool:
        """True if the chain is known, or one of the same length whose prompts are all similar."""
        mine = list(map(features, chain))
        return self.has(chain) or any(_near(mine, other) for other in self._features)


def nearest(chain: Sequence[str], among: Sequence[Sequence[str]]) -> int | None:
    """The index of the most similar chain among those of the same length; none if there is none."""
    mine = list(map(features, chain))
    found: list[tuple[float, int]] = []
    for number, other in enumerate(among):
        if len(other) == len(chain):
            alike = sum(similarity(a, features(b)) for a, b in zip(mine, other, strict=True))
            found.append((alike, -number))
    return -max(found)[1] if found else None


def _near(one: Sequence[Features], other: Sequence[Features]) -> bool:
    """True if all prompts are similar, or differ in a single word. Comparing words first rules out most pairs."""
    if len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return all(
        _differ_in_a_word(a, b) or (_jaccard(a.words, b.words) >= 2 * NEAR - 1 and similarity(a, b) >= NEAR)
        for a, b in pairs
    )
