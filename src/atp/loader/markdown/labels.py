"""Labels: the words that make a line of a section one of its fields.

This module decides whether a line looks like a label. Where the line stands is decided in `fields` and `sections`.
"""

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from atp.base.near import edits
from atp.loader.cases import COMMON_KEYS

FieldKind = Literal["prompts", "chain", "expectations", "before", "intent", "id", "tags", "actor", "setting"]

TITLES = {
    "prompts": "Prompts",
    "chain": "Chain",
    "expectations": "Expectations",
    "before": "Before",
    "intent": "Test Intent",
    "id": "ID",
    "tags": "Tags",
    "actor": "Actor",
}
"""The spelling of each label in the canonical form."""
SETTINGS = {key.replace("_", " "): key for key in COMMON_KEYS - {"tags", "user"}}
"""Labels for the keys that a case takes in every dialect. Everyday words, so only `**Timeout:**` in bold is one, or a
plain one whose value can be nothing else."""

PLAIN_VALUES = {
    "skip": re.compile(r"true|false", re.IGNORECASE),
    "runs": re.compile(r"\d+"),
    "timeout": re.compile(r"\d+(?:\.\d+)?\s?(?:ms|s|sec|m|min|h)?", re.IGNORECASE),
    **dict.fromkeys(("pass_rate", "confidence", "margin"), re.compile(r"\d*\.?\d+%?")),
    "min_score": re.compile(r"\d*\.?\d+%?"),
}
"""What a setting must look like behind a label that isn't bold."""

_ELSEWHERE = {
    **dict.fromkeys(("iterations", "target", "assessor", "generator", "budget usd"), "it belongs in the frontmatter"),
    "user": "write `**Actor:**`",
}
"""Words that are no labels, because the value is set elsewhere."""

WORDS: dict[str, FieldKind] = {
    "prompts": "prompts",
    "prompt": "prompts",
    "prompt(s)": "prompts",
    "single prompt": "prompts",
    "input": "prompts",
    "chain": "chain",
    "prompt chain": "chain",
    "expectations": "expectations",
    "expectation": "expectations",
    "expectation(s)": "expectations",
    "expected": "expectations",
    "assertions": "expectations",
    "before": "before",
    "befores": "before",
    "before(s)": "before",
    "dependencies": "before",
    "test intent": "intent",
    "intent": "intent",
    "description": "intent",
    "id": "id",
    "tags": "tags",
    "actor": "actor",
}

# Words that are often bold before a colon, and introduce prose.
_REMARK_WORDS = """
    author authors background caution comment comments contents date example examples fyi hint history important info
    issue issues legend link links motivation note notes overview owner ps rationale reason reference references remark
    remarks see source status ticket tip todo version warning why
"""
_REMARKS = frozenset(_REMARK_WORDS.split())

_GOES_ON_WORDS = """
    am and are can cannot could did do does had has have is may might must of or shall should was were which will would
"""
_GOES_ON = frozenset(_GOES_ON_WORDS.split())
"""Words behind a bold word that make it the beginning of a sentence: `**Input** is checked`."""
_PRONOUNS = frozenset(("i", "you", "he", "she", "it", "we", "they", "that", "this"))
"""Words behind `**Before**` that make it the beginning of a sentence."""

_WORD = r"[^*`:\s](?:[^*`:]{0,38}?[^*`:\s])??"
MARKED = re.compile(rf"\s*(?P<mark>\*{{1,3}}|_{{1,3}})(?P<word>{_WORD})\s?(?P<in>:?)\s?(?P=mark)(?P<out>\s?:)?")
_PLAIN = re.compile(r"\s*(?P<word>[A-Za-z][A-Za-z()\- \u00a0]{1,29}?)\s?:(?=\s|$)")
_BREAK = re.compile(r"(?:\s*<br\s*/?>)+|\s*\\\s*$", re.IGNORECASE)
"""A line break behind a label. It is no value."""
_LAST_BREAK = re.compile(r"(?:\s*<br\s*/?>)+$", re.IGNORECASE)
_VALUE = re.compile(r"\s+(?:[\[#\"'“‘„«`*_$@!?{&]|/\w|(?P<word>\w+))")
"""The beginning of a value beside a label without a colon."""
_LAST = re.compile(rf"(?P<mark>\*\*|__)(?P<word>{_WORD})(?P<in>:?)(?P=mark)(?P<out>:?)$")
_WITHIN = re.compile(rf"(?<=\S)\s+(?P<mark>\*\*|__)(?P<word>{_WORD})\s?(?::(?P=mark)|(?P=mark)\s?:)(?=.*\S)")
_FARTHEST_WITHIN = 1_000
"""How many characters of a line are looked at for a label in its midst, to bound the cost."""
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_PHRASE = re.compile(
    r"[\W_]{0,9}(?P<words>[^\W\d_]+(?:[ /-][^\W\d_]+){0,3})[*_]{0,3}\s?(?:[:\uff1a]|[–—-]{1,3}(?=\s|$))"
)
"""The beginning of a line that has up to four words before a colon or a dash."""
_ALONE = re.compile(r"(?P<mark>\*{1,3}|_{1,3}|)(?P<word>[^*_`:\n]{2,20}?)\s?(?P<in>:?)(?P=mark)(?P<out>\s?:?)")


@dataclass(frozen=True, slots=True)
class Label:
    """A label found in a line."""

    kind: FieldKind
    word: str
    """The word as written."""
    start: int
    """The column where the label begins."""
    end: int
    """The column where the value begins, if there is one."""
    alone: bool
    """Nothing stands behind the label."""
    marked: bool
    """Bold or italic."""
    colon: bool = True
    """Whether a colon stands between the label and its value, or it is alone."""
    key: str = ""
    """The key that a setting is for."""
    meant: str | None = None
    """The right spelling, if the word is misspelled."""


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing of a text: there are only blanks and invisible characters in it."""
    return all(one.isspace() or unicodedata.category(one) == "Cf" for one in html.unescape(text))


def label_at_start(line: str, loose: bool = False) -> Label | None:
    """The label that a line begins with. Without a colon it must be bold, or italic and alone.

    Loose is for lines that are hardly prose: even a plain word in lower case may be misspelled there.
    """
    marked = MARKED.match(line)
    match = marked or _PLAIN.match(line)
    if match is None:
        return None
    line_break = _BREAK.match(line, match.end())
    end = line_break.end() if line_break else match.end()
    value = line[end:].strip()
    if alone := is_blank(value):
        end = len(line)
    colon = not marked or bool(marked["in"] or marked["out"])
    if not (alone or colon) and not _is_value(match, line):
        return None
    kind, meant = look_up(match["word"])
    key = ""
    if kind is None and (not marked or len(marked["mark"]) > 1):
        key, meant = _setting(match["word"], value, bold=marked is not None, colon=colon)
        kind = "setting" if key and (alone or colon or looks_right(key, value)) else None
    # A plain word before a colon is ordinary prose, unless it is hardly anything but a slip; so is a bold word without.
    likely = loose or alone or (marked and colon)
    if kind is None or (meant and not likely and not (len(meant) > 5 and match["word"][0].isupper())):
        return None
    start = match.start("mark") if marked else match.start("word")
    end = len(line) - len(line[end:].lstrip())
    return Label(kind, match["word"], start, end, alone, marked is not None, alone or colon, key, meant)


def _is_value(marked: re.Match[str], line: str) -> bool:
    """Whether the text behind a bold word without a colon can be a label's value, and not the rest of a sentence."""
    value = _VALUE.match(line, marked.end())
    if value is None or len(marked["mark"]) < 2:
        return False
    word = (value["word"] or "").lower()
    return word not in _GOES_ON and not (word in _PRONOUNS and look_up(marked["word"])[0] == "before")


def _setting(word: str, value: str, bold: bool, colon: bool) -> tuple[str, str | None]:
    """The key of the setting that a word labels, and the right spelling if it is misspelled."""
    plain = spaced(word)
    key = SETTINGS.get(plain, "")
    if not bold:
        return (key if looks_right(key, value) else "", None)
    if key or not colon or plain in _ELSEWHERE:
        return key, None
    meant = next((label for label in SETTINGS if _is_slip(plain, label, with_its_letters=True)), None)
    return (SETTINGS[meant], meant) if meant else ("", None)


def looks_right(key: str, value: str) -> bool:
    """Whether a text can be nothing but the value of a setting."""
    looks = PLAIN_VALUES.get(key)
    return looks is not None and looks.fullmatch(value.strip()) is not None


def spaced(word: str) -> str:
    """A word in small letters, with blanks for hyphens and underscores."""
    return " ".join(word.lower().replace("-", " ").replace("_", " ").split())


def setting_alone(text: str) -> Label | None:
    """The setting that a heading consists of."""
    key = SETTINGS.get(spaced(text.strip().rstrip(":").strip("*")))
    return Label("setting", text, 0, len(text), alone=True, marked=False, key=key) if key else None


def before_heading(text: str) -> Label | None:
    """The label of a heading like `Before Pour`, where words follow without a colon."""
    word, _, value = text.partition(" ")
    if not value or WORDS.get(word.lower()) != "before":
        return None
    return Label("before", word, 0, len(word) + 1, alone=False, marked=False, colon=False)


def label_at_end(line: str, before_list: bool = False) -> Label | None:
    """The bold label that a line of prose ends with. Without a colon it must be spelled right, above a list."""
    bare = line.rstrip()
    if not bare.endswith(("**", "__", ":")):
        return None
    match = _LAST.search(bare, max(0, len(bare) - 50))
    if match is None or not bare[: match.start()].strip():
        return None
    kind, meant = look_up(match["word"])
    if not (match["in"] or match["out"]) and (meant or not before_list):
        return None
    return None if kind is None else Label(kind, match["word"], match.start(), len(line), True, True, meant=meant)


def label_within(line: str) -> str | None:
    """The word of a bold label with a colon that has text before it and behind it. Code spans are left aside."""
    if "**" not in line and "__" not in line:
        return None
    for found in _WITHIN.finditer(_CODE_SPAN.sub(lambda code: " " * len(code[0]), line[:_FARTHEST_WITHIN])):
        known = spaced(found["word"])
        if known in WORDS or SETTINGS.get(known) in PLAIN_VALUES:
            return found["word"]
    return None


def label_alone(text: str) -> Label | None:
    """The label that a text consists of: a heading, or the first line of an item. No colon is needed."""
    match = _ALONE.fullmatch(_LAST_BREAK.sub("", text.strip()))
    if match is None:
        return None
    kind, meant = look_up(match["word"])
    return None if kind is None else Label(kind, match["word"], 0, len(text), True, bool(match["mark"]), meant=meant)


def is_keyword(text: str) -> Label | None:
    """The label of an item that is nothing but the word `chain`."""
    label = label_alone(text)
    if label is None or label.kind != "chain":
        return None
    # A misspelled plain word is more likely what a prompt says.
    return label if label.marked or not label.meant or text.rstrip().endswith(":") else None


def unknown_label(line: str) -> str | None:
    """The word of a line that looks like a label and is none we know, and has nothing behind it."""
    match = MARKED.match(line)
    if match is None or len(match["mark"]) < 2 or line[match.end() :].strip() or look_up(match["word"])[0]:
        return None
    return match["word"]


def unknown_label_with_value(line: str) -> str | None:
    """The word of a line that looks like a label with its value, and is none we know, nor a usual word of prose."""
    match = MARKED.match(line)
    if match is None or len(match["mark"]) < 2:
        return None
    value = line[match.end() :].strip()
    colon = match["in"] or match["out"]
    if not value or not (colon or (value.startswith("[") and "](#" in value)):
        return None
    return None if spaced(match["word"]) in _REMARKS or label_at_start(line) else match["word"]


def is_remark(line: str) -> bool:
    """Whether a line says itself that it is a remark: `**Note:** …`, or the heading `Background`."""
    match = MARKED.match(line) or _PLAIN.match(line)
    return spaced(match["word"] if match else line) in _REMARKS


def is_like_field(line: str) -> bool:
    """Whether an unknown label was probably meant for a case, and doesn't just stand above a list of prose."""
    bold = unknown_label(line)
    if bold and spaced(bold) in _REMARKS:
        return False
    if not bold and not line.endswith(":"):
        return False
    return (bold is not None and ":" in line) or bool(label_kinds(bold or line))


def label_kinds(text: str) -> set[FieldKind]:
    """What the words of a text label, if it is prompts or expectations: `User Prompt`, `Input/Output`."""
    kinds = {WORDS.get(word) for word in re.findall(r"[^\W\d_]+", text.lower())}
    return {kind for kind in kinds if kind in ("prompts", "chain", "expectations")}


def label_phrase(line: str) -> str | None:
    """The few words before a colon or a dash that a line begins with, if a label is among them: `Test prompts:`."""
    found = _PHRASE.match(line)
    return found["words"] if found and label_kinds(found["words"]) else None


def is_set_elsewhere(word: str) -> bool:
    """Whether a word is no label because what it says belongs in another place."""
    return spaced(word) in _ELSEWHERE


def advice(word: str) -> str:
    """A hint for an unknown label."""
    return _ELSEWHERE.get(spaced(word)) or f"known: {', '.join(TITLES.values())}"


@lru_cache(maxsize=4096)
def look_up(word: str) -> tuple[FieldKind | None, str | None]:
    """The field that a word is the label of, and the right spelling if the word is misspelled."""
    plain = " ".join(word.lower().split())
    if kind := WORDS.get(plain):
        return kind, None
    slips = [known for known in WORDS if _is_slip(plain, known, with_its_letters=len(known) < 7)]
    meant = min(slips, key=lambda known: edits(plain, known), default=None)
    return (WORDS[meant], meant) if meant else (None, None)


def _is_slip(word: str, label: str, *, with_its_letters: bool) -> bool:
    """Whether a word is a label with a typo in it: two edits at most, but never a wrong first letter.

    `with_its_letters` is for labels that are close to many words (`Chair`, `Tabs`, `Indent`, `Storing`): one edit that
    adds no new letter, so that letters are swapped, doubled or left out.
    """
    if word[:1] != label[0] and word[:2] != label[1::-1]:
        return False
    if with_its_letters:
        return len(label) > 2 and set(word) <= {*label, " "} and edits(word, label, 1) == 1
    return edits(word, label, 2) <= 2
