"""Words that look like labels where no label is read: what is begun with one of them is reported.

What a reader sees counts, not what is written: a word with marks, entities or invisible characters in it is that word.
"""

import html
import re
import unicodedata
from dataclasses import dataclass

from atp.loader.markdown.labels import MARKED, PLAIN_VALUES, SETTINGS, TITLES, WORDS, FieldKind, spaced

_HOOK = re.compile(r"scripts[.:]\S+", re.IGNORECASE)
_SURE_VALUES = {**PLAIN_VALUES, "before_hook": _HOOK, "after_hook": _HOOK}
"""What makes a bold word a setting where no label is read."""


@dataclass(frozen=True, slots=True)
class LabelWord:
    """A label word that a line begins with, whether or not it is written as a label."""

    word: str
    """The word as written."""
    kind: FieldKind
    is_plain: bool
    """Whether it can be a word of a sentence: no marks or signs around it."""
    is_alone: bool
    """Whether nothing but marks and signs stands behind it."""

    @property
    def title(self) -> str:
        """The label in its canonical spelling."""
        return TITLES.get(self.kind, self.word)

    @property
    def is_prose(self) -> bool:
        """Whether it reads as the first word of a sentence."""
        return self.is_plain and not self.is_alone

    @property
    def is_wrapped(self) -> bool:
        """Whether it can be a word that a sentence was wrapped at."""
        return self.is_plain and not self.word[0].isupper()


_TAG_NAMES = (
    "a|b|big|br|center|code|dd|details|div|dl|dt|em|font|h[1-6]|i|kbd|li|mark|ol|p|small|span|strong|summary|table|"
    "tbody|td|th|thead|tr|u|ul"
)
_TAG = rf"</?(?:{_TAG_NAMES})\b[^<>\n]*>"
_MARKER = r"(?:[-*+>]|\d{1,9}[.)])\s"
_BEGINNING = re.compile(
    rf"(?:\s|{_MARKER}|\[[ xX]\]\s)*+[\"'“‘„«(]*+"
    rf"(?P<marks>(?:{_TAG}|\[\^\w+\]:|&\#?\w+;|[\W_]|(?<=[\W_])\d{{1,9}}[.):]\s*)*+)",
    re.IGNORECASE,
)
_LABEL_WORD = re.compile(
    "(?:" + "|".join(re.escape(one).replace("\\ ", "[ _-]+") for one in sorted(WORDS, key=len, reverse=True)) + ")"
    r"(?![^\W_]|['’]\w|[-/]\w(?![^:\n]{0,30}:))",
    re.IGNORECASE,
)
"""A label word. `Input-output` is another word, but `Input/Output:` may be meant as a label."""
_PROSE_AHEAD = re.compile(r"[,.;!?]|\s+(?![-–—=:\uff1a|>~]+(?:\s|$))|$")
_NOTHING = re.compile(rf"(?:{_TAG}|[\W_])*+$", re.IGNORECASE)


_IN_WORDS = re.compile(rf"{_TAG}|\\(?=[^\w\s])|(?<=\w)[*_`~]+|[*_`~]+(?=\w)", re.IGNORECASE)
"""Marks, tags and escapes, which may stand inside of a word."""
_MAY_HIDE = re.compile(r"[&<*_`~\\]|[^\x00-\x7f]")
_READS_LIKE = str.maketrans("АВЕКМНОРСТУХІЅавекмнорстухіѕΑΒΕΗΙΚΜΝΟΡΤΧο", "ABEKMHOPCTYXISabekmhopctyxisABEHIKMNOPTXo")
"""Cyrillic and Greek letters that look like Latin ones."""
_FARTHEST = 100
"""How many characters of a line are looked at for a label word that isn't there as written."""


def label_word(line: str) -> LabelWord | None:
    """The label word that a line begins with once markers, marks, punctuation, tags and bars are left aside.

    What a reader sees counts: entities, invisible and full-width characters, letters of other alphabets that look the
    same, and marks inside of the word may hide the word. A setting counts in bold before a value that fits.
    """
    found = _label_word(line) or _setting_word(line)
    if found is None and _MAY_HIDE.search(line, 0, _FARTHEST):
        found = _label_word(_as_seen(line[:_FARTHEST]))
    return found


def _as_seen(line: str) -> str:
    """A text as it reads once it is rendered, without marks in words."""
    text = unicodedata.normalize("NFKC", html.unescape(line)).translate(_READS_LIKE)
    return _IN_WORDS.sub("", "".join(one for one in text if unicodedata.category(one) != "Cf"))


def _setting_word(line: str) -> LabelWord | None:
    beginning = _BEGINNING.match(line)
    marked = MARKED.match(line, beginning.start("marks")) if beginning else None
    if marked is None or len(marked["mark"]) < 2:
        return None
    key = SETTINGS.get(spaced(marked["word"]), "")
    looks = _SURE_VALUES.get(key)
    is_sure = looks is not None and looks.fullmatch(line[marked.end() :].strip())
    return LabelWord(marked["word"], "setting", is_plain=False, is_alone=False) if is_sure else None


def _label_word(line: str) -> LabelWord | None:
    beginning = _BEGINNING.match(line)
    assert beginning is not None
    found = _LABEL_WORD.match(line, beginning.end())
    if found is None:
        return None
    is_plain = not beginning["marks"] and _PROSE_AHEAD.match(line, found.end()) is not None
    kind = WORDS[" ".join(re.split(r"[\s_-]+", found[0].lower()))]
    return LabelWord(found[0], kind, is_plain, _NOTHING.match(line, found.end()) is not None)


_IN_FRONTMATTER = re.compile(
    r"(?:target|assessor|generator)(?=\s*:\s*\S*(?:agents/|\.md)\S*\s*$)|iterations(?=\s*:\s*\d+\s*$)"
    r"|(?:budget|pass)[_ ](?:usd|rate)(?=\s*:\s*[\d.]+%?\s*$)",
    re.IGNORECASE,
)


def key_of_frontmatter(line: str) -> str | None:
    """The key of the frontmatter that a line of the body gives a value to."""
    found = _IN_FRONTMATTER.match(line.strip())
    return found[0] if found else None
