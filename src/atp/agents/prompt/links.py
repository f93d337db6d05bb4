"""Links between Markdown files: `[text](other.md)` in a prompt is replaced by the body of that file.

Links in code, in comments and after a backslash stay as they are, as do images and URLs.
"""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.head import PromptHead
from atp.base.diagnostics import Place
from atp.loader.markdown.frontmatter import Head, cut
from atp.loader.source import DEEPEST, place_of

LONGEST = 4 * 1024 * 1024
"""The longest prompt with all linked files, in characters."""
_ADDRESS = r"[ \t]*(?:<(?P<angled>[^<>\n]*)>|(?P<bare>(?:[^\s()<>]|\([^\s()<>]*\))++))"
_LINK = re.compile(
    r"^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|>[ \t]?)*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"[\s\S]*?(?:^[ \t>]*(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n)[\s\S])+?(?<!`)(?P=ticks)(?!`)"
    r"|<!--[\s\S]*?(?:-->|\Z)"
    r"|\\[\s\S]"
    r"|(?P<picture>!)?\[(?:[^\[\]\\\n]|\\.|\n(?![ \t]*\n)|\[[^\[\]\n]*+\]){0,1000}+\]"
    rf"\({_ADDRESS}(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ \t]*\)",
    re.MULTILINE,
)
_IN_THE_NET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_MARKDOWN = (".md", ".markdown")
_KEYS = "|".join([*PromptHead.model_fields, "model", "settings"])
_LIKE_HEAD = re.compile(rf"(?:\A\s*|\n\s*\n|-->\s*\n)(?P<rule>[ \t]*-{{3,}}[ \t]*\n)\s*(?:{_KEYS})[ \t]*:(?:\s|$)")
"""Frontmatter that is none: indented, with too many `-`, or below other text."""


def cut_head(text: str, files: AgentFiles, path: Path) -> Head:
    """Split a Markdown file into its frontmatter, if there is one, and its body."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    if first.rstrip() == "---":
        return cut(text, files.notes(path))
    if misplaced := _LIKE_HEAD.search(text, 0, 4000):
        message = "these keys are not read as frontmatter, but as a part of the prompt"
        at = place_of(text, misplaced.start("rule"))
        hint = "begin the file with `---`, without blanks before it and anything above it"
        files.notes(path).error("missing-frontmatter", message, at, hint)
    return Head(None, 1, text, 1)


class Links:
    """Replaces links by the bodies of the linked files. Each file is read once, however often it is linked."""

    def __init__(self, files: AgentFiles, check: Callable[[Path, Head], None]) -> None:
        """`check` is called with each linked file."""
        self._files = files
        self._check = check
        self._known: dict[Path, str] = {}

    def expand(self, path: Path, head: Head, way: tuple[Path, ...] = ()) -> str:
        """Return a file's body with its links replaced. `way` is the chain of files that led here."""
        way = (*way, path)
        made: list[str] = []
        done, left = 0, LONGEST - len(head.body)
        for link in _LINK.finditer(head.body):
            target = _target(link)
            if target is None:
                continue
            at = place_of(head.body, link.start(), head.body_line)
            made += [head.body[done : link.start()], self._follow(target, path, at, way)]
            done, left = link.end(), left - len(made[-1])
            if left < 0:
                break
        if left < 0:
            message = f"with all that it links to, the prompt is longer than {LONGEST // 2**20} MB"
            self._note(path, "too-large", message, Place(head.body_line, 1), "link less")
            return ""
        return "".join([*made, head.body[done:]])

    def _follow(self, target: str, path: Path, at: Place, way: tuple[Path, ...]) -> str:
        name, _, fragment = target.partition("#")
        if fragment:
            message = f"`{target}` is a part of a file, and only whole files can be brought in"
            self._note(path, "bad-link", message, at, f"link `{name}`, or put a backslash before the link")
            return ""
        root = self._files.root
        beside, below = (path.parent / name).resolve(), (root / name.lstrip("/")).resolve()
        found = below if name.startswith("/") or (not beside.is_file() and below.is_file()) else beside
        if not found.is_relative_to(root):
            message = f"the link to `{name}` leads out of the project"
            self._note(path, "outside-project", message, at, f"only files below {root} can be brought in")
            return ""
        if found in way:
            circle = " → ".join(self._files.name(one) for one in (*way[way.index(found) :], found))
            self._note(path, "link-circle", f"these files link to each other: {circle}", at, "take one link out")
            return ""
        if len(way) > DEEPEST:
            self._note(path, "too-deep", f"links lead through more than {DEEPEST} files", at, "link them side by side")
            return ""
        if not found.is_file():
            hint = "check the path: it is relative to the file with the link, or to the project's root"
            self._note(path, "no-such-file", f"there is no file `{name}`", at, hint)
            return ""
        if found not in self._known:
            self._known[found] = self._read(found, way)
        return self._known[found]

    def _read(self, path: Path, way: tuple[Path, ...]) -> str:
        text = self._files.read(path)
        if text is None:
            return ""
        head = cut_head(text, self._files, path)
        self._check(path, head)
        return self.expand(path, head, way).strip("\n")

    def _note(self, path: Path, code: str, message: str, at: Place, hint: str) -> None:
        self._files.notes(path).error(code, message, at, hint)


def _target(link: "re.Match[str]") -> str | None:
    """Return the Markdown file that a link names, or None."""
    if link["picture"]:
        return None
    address = unquote(link["angled"] or link["bare"] or "")
    name = address.partition("#")[0]
    return address if name.lower().endswith(_MARKDOWN) and not _IN_THE_NET.match(address) else None
