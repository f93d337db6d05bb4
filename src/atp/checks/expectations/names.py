"""Finds the words of an expectation that name a tool or a file, or say how often.

A name that isn't one would make a check that always fails, or, if it says that something was *not* called, one that
always passes. So what could be English is taken for a name only where its place in the sentence leaves no doubt.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from atp.checks.expectations.words import Piece, Sentence

_QUOTED_TOOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")
_SNAKE = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+")
_CAMEL = re.compile(r"[a-z]{2,}(?:[A-Z][a-z0-9]+)+")
_DOTTED = re.compile(r"[a-z_]\w+(?:\.[a-z_]\w+)+")
_LISPED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*")
_EXTENSIONS = frozenset(
    re.findall(
        r"\w+",
        """
        bat bin c cfg conf cpp cs css csv db doc docx env gif go gz h html ini ipynb java jpeg jpg js json jsonl kt lock
        log md mp3 mp4 pdf php png ppt pptx ps1 py rb rs rst sh sql sqlite svg swift tar tex toml ts tsv tsx txt wav
        webp xls xlsx xml yaml yml zip
        """,
    )
)
_DOMAINS = frozenset(
    {"ai", "app", "biz", "co", "com", "dev", "edu", "eu", "gov", "info", "io", "me", "net", "org", "uk"}
)
_FILE = re.compile(r"(?:[\w-][\w.-]*/)*[\w.-]*\w\.[A-Za-z][A-Za-z0-9]{0,7}", re.ASCII)
_ANY_FILE = re.compile(r"(?:[\w.-]+/)*[\w.-]*\w", re.ASCII)
_QUOTED_FILE = re.compile(r"[^\x00-\x1f*?\\:|<>\"]{1,255}")


def tool_of(piece: Piece, *, called_tool: bool) -> str | None:
    """The tool that a piece names. `called_tool` says that the sentence itself calls it a tool or function."""
    name = piece.text.removesuffix("()")
    if piece.kind in ("code", "quoted", "bold"):
        # Without the word "tool" beside it, 'calls "Bob"' may well be about somebody's name.
        somebody = name[:1].isupper() and piece.kind != "code" and not (called_tool or _looks_like_tool(name))
        return name if _QUOTED_TOOL.fullmatch(name) and not somebody else None
    if piece.kind != "word":
        return None
    if called_tool:
        return name if _LISPED.fullmatch(name) or _looks_like_tool(name) else None
    return name if _looks_like_tool(name) else None


def _looks_like_tool(name: str) -> bool:
    """Whether a word is written as only names in programs are, and is neither a file nor a domain nor a brand."""
    if _SNAKE.fullmatch(name) or _CAMEL.fullmatch(name):
        return True
    return bool(_DOTTED.fullmatch(name)) and name.rpartition(".")[2].lower() not in _EXTENSIONS | _DOMAINS


def file_of(piece: Piece, *, called_file: bool) -> str | None:
    """The file that a piece names, below the workspace. `called_file` says that the sentence itself calls it one."""
    path = piece.text
    if piece.kind not in ("code", "quoted", "bold", "word"):
        return None
    if not called_file:
        fits = bool(_FILE.fullmatch(path)) and path.rpartition(".")[2].lower() in _EXTENSIONS
    else:
        fits = bool((_ANY_FILE if piece.kind == "word" else _QUOTED_FILE).fullmatch(path))
    inside = not path.startswith(("/", "~", "-", " ")) and ".." not in path.split("/") and not path.endswith(("/", " "))
    return path if fits and inside else None


_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        """
        a absent accurate actual adequate again all almost already also alternate alternative always an ancient and
        another any appropriate arbitrary automatic bad basic best better big binary both broken cheap chosen
        consistent convenient correct corresponding critical current custom decent default dependent different
        duplicate dynamic efficient either else equivalent even ever every exact existing external extra failing false
        fantastic fast few final first following forbidden former free frequent general generic given global good had
        has hence here hidden however human immediate important in inadequate independent inefficient instead
        insufficient intelligent interesting intermediate internal invalid irrelevant is it its itself just large last
        later latter legacy legal legitimate local magic main mandatory manual many matching maybe mediocre misleading
        missing mistaken moderate more most much mysterious necessary neither never new next no none nonexistent nor
        normal not now obligatory obsolete of official often old older on once one only open optional or ordinary
        original other our own paid particular perhaps permanent plain premium present primary private problematic
        proper proprietary public quick quite random rather real realistic recent redundant relevant remaining remote
        right risky safe same satisfactory second secondary secret seldom separate several should significant silent
        similar simple single slow small smart so some somehow sometimes soon sort special specific static still
        strange strong such sufficient suspicious temporary than that the their them then there therefore these they
        third this those though three thus tiny to too total toxic transparent trivial true twice two ultimate
        unimportant unknown unnecessary unsafe upcoming urgent usual valid very was weak weird well were what which
        whole with without working wrong yet your
        """,
    )
)
_PARTS = frozenset(
    re.findall(
        r"\w+",
        """
        access argument arguments bar belt body box call caller calls chain choice code description descriptions error
        errors function functions help input inputs kit list message messages name names option options output outputs
        parameter parameters registry response responses result results schema server servers set signature support
        tip tool tools type types usage use user users
        """,
    )
)
"""What has to do with tools and follows the word: "the tool output was used"."""
_ENGLISH_ENDINGS = ("able", "ed", "est", "ever", "ful", "ible", "ish", "ive", "less", "ly", "ous")
"""The endings of adjectives, participles and adverbs that few names of tools have."""
_NAMES_SO_ENDING = frozenset(
    re.findall(
        r"\w+",
        """
        apply archive digest drive embed feed finish ingest invest need publish replay reply request seed speed suggest
        supply table test timetable variable
        """,
    )
)


_ALSO_NAMES = frozenset({"custom", "default", "external", "internal", "local", "main", "open", "public", "remote"})
"""Adjectives that are names of tools, too: without an article, "local function was called" can only be meant so."""
_NOT_TOOLS = frozenset(
    re.findall(
        r"\w+",
        """
        agent anybody anyone anything assistant attention back bot customer customers everybody everyone everything for
        he help her him home i me model mom nobody nothing off out over people police security she somebody someone
        something target up upon us we you
        """,
    )
)
"""Who or what is called in English: "the police", "it calls back"."""


def plain_tool(word: str, sentence: Sentence, *, bare: bool = False) -> str | None:
    """A plain word that names a tool, because "tool" or "function" stands beside it.

    "The right tool was called", "the tool never was called": what could be an adjective or an adverb is no name, unless
    the agent has a tool of this name. `bare` says that there is no article.
    """
    if known := _known_tool(word, sentence):
        return known
    could_be_name = bare and word in _ALSO_NAMES and word not in sentence.capitals
    return word if could_be_name or not _is_doubtful(word, sentence.capitals) else None


def bare_tool(word: str, sentence: Sentence) -> str | None:
    """The tool that a plain word names by itself: "search was called twice", "it never calls refund".

    What is called in English has an article or is somebody; "customer called" is about who called.
    """
    if known := _known_tool(word, sentence):
        return known
    if word in _NOT_TOOLS or _is_doubtful(word, sentence.capitals):
        return None
    is_no_tool = re.match(rf"{word} (?:are|were|have|called|invoked)\b", sentence.words)
    return None if is_no_tool else word


def _known_tool(word: str, sentence: Sentence) -> str | None:
    return next((tool for tool in sentence.tools if tool.lower() == word), None)


def is_english(word: str) -> bool:
    """Whether a word is so common that nobody would take it for the name of a tool."""
    return word in _ENGLISH | _PARTS | _NOT_TOOLS


def _is_doubtful(word: str, capitals: frozenset[str]) -> bool:
    if word in _ENGLISH | _PARTS or word in capitals or len(word) < 2:
        return True
    return word.endswith(_ENGLISH_ENDINGS) and word not in _NAMES_SO_ENDING


class Often(NamedTuple):
    """How often something happened."""

    least: int
    most: int | None
    """Nothing if there is no upper bound."""


_NUMBERS = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
NUMBER = rf"(?:\d{{1,4}}|{'|'.join(_NUMBERS)}|an?|no|a single)"
TIMES = rf"(?:{'|'.join(_TIMES)}|(?:\d{{1,4}}|{'|'.join(_NUMBERS)}|a single) times?)"
BOUND = (
    r"(?:exactly|precisely|only|just|at least|at most|a minimum of|a maximum of|no more than|not more than"
    r"|no fewer than|no less than|more than|fewer than|less than)"
)


def often(words: str) -> Often | None:
    """How often, in the words of `BOUND` and `NUMBER` or `TIMES`: `at most twice`, `three`."""
    bound = next((one for one in _BOUNDS if words.startswith(f"{one} ")), "")
    count = words.removeprefix(f"{bound} ").removesuffix(" times").removesuffix(" time")
    if not bound and count in ("a", "an"):
        return Often(1, None)
    number = 0 if not bound and count == "no" else _count(count)
    if number is None:
        return None
    least, most = _BOUNDS[bound](number) if bound else (number, number)
    says_something = least > 0 or (most is not None and most >= 0)
    return Often(least, most) if says_something else None


def _count(word: str) -> int | None:
    return int(word) if word.isdecimal() else {**_NUMBERS, **_TIMES, "a single": 1}.get(word)


def _exactly(number: int) -> tuple[int, int | None]:
    return number, number


def _at_least(number: int) -> tuple[int, int | None]:
    return number, None


def _at_most(number: int) -> tuple[int, int | None]:
    return 0, number


_BOUNDS: dict[str, Callable[[int], tuple[int, int | None]]] = {
    "exactly": _exactly,
    "precisely": _exactly,
    "only": _exactly,
    "just": _exactly,
    "at least": _at_least,
    "a minimum of": _at_least,
    "no fewer than": _at_least,
    "no less than": _at_least,
    "at most": _at_most,
    "a maximum of": _at_most,
    "no more than": _at_most,
    "not more than": _at_most,
    "more than": lambda number: (number + 1, None),
    "fewer than": lambda number: (0, number - 1),
    "less than": lambda number: (0, number - 1),
}
