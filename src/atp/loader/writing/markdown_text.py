"""Writes texts as Markdown that is read back unchanged: plain if possible, else fenced or escaped."""

import re
from functools import lru_cache

from atp.base.diagnostics import Diagnostics
from atp.loader.markdown import load_markdown
from atp.loader.markdown.labels import label_alone, label_at_start
from atp.loader.markdown.names import plain
from atp.loader.source import LoadContext, Source

_FRAME = """\
---
target: agents/a.md
assessor: agents/a.md
---

# Case

**Prompts:**

- {}

**Expectations:**

- x
"""
_SURELY_PLAIN = re.compile(r"[^\W\d_][\w ,.;?!/()-]*[\w.?!)]")
"""Texts that are surely read unchanged. Others are tried with the reader."""
_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"[\\`*_\[\]<>&!#]")
_NEEDS_ESCAPES = re.compile(r"^#|#$|<!--")
"""Text that Markdown would remove from a heading."""


def can_say(text: str) -> bool:
    """Whether Markdown can represent a text: not a blank one, nor one with carriage returns or NUL."""
    return bool(text.strip()) and "\r" not in text and "\0" not in text


def item(text: str, indent: str = "") -> str:
    """A list item with a text."""
    if reads_plainly(text):
        return f"{indent}- {text}\n"
    first, *more = fenced(text).split("\n")
    return "\n".join([f"{indent}- {first}", *(f"{indent}  {line}" if line else "" for line in more)])


def fenced(text: str, info: str = "") -> str:
    """A text in a fence that nothing in it can close."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}{info}\n{text}\n{fence}\n"


@lru_cache(maxsize=1024)
def reads_plainly(text: str) -> bool:
    """Whether a list item with the plain text is read as the text, without diagnostics."""
    if "\n" in text or label_alone(text):
        return False
    if _SURELY_PLAIN.fullmatch(text):
        return True
    notes = Diagnostics()
    suite = load_markdown(Source(_FRAME.format(text)), LoadContext(env={}), notes)
    return [case.chains for case in suite.cases] == [[[text]]] and not notes


def title(name: str) -> str | None:
    """The heading that gives a section this name, or None if no heading does."""
    text = (
        _SPECIAL.sub(lambda one: f"\\{one.group()}", name)
        if _NEEDS_ESCAPES.search(name) or plain(name) != name
        else name
    )
    if label_alone(text) or label_at_start(text):
        text = f"&#{ord(name[0])};{text[1:]}"  # a heading that is a label would make a field of it
    return text if can_say(name) and plain(text) == name else None
