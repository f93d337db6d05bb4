"""Markdown as a tree of blocks, and the text of blocks.

markdown-it-py finds the blocks as CommonMark defines them. Its inline parser isn't run: prompts stay as written. The
top-level loop is our own, so that the tokens of one block can be let go before the next is read, and so that a
hostile file is stopped in time.

In the text of blocks soft line breaks become blanks, and all else stays as written, without its indentation. It depends
only on the tree, so wrapping and indenting a prompt differently doesn't change the prompt.
"""

import re
import textwrap
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, lheading, paragraph
from markdown_it.token import Token

from atp.base.diagnostics import Diagnostics
from atp.loader.markdown.page import Page, width

DEEPEST = 60
"""How deep blocks may be nested; a list in a list counts twice, being a list and an item."""
MOST_BLOCKS = 200_000
"""How many blocks may stand in one list or quote."""

Kind = Literal["paragraph", "heading", "fence", "code", "html", "rule", "quote", "list", "item"]

_KINDS: dict[str, Kind] = {
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
    "blockquote_open": "quote",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "item",
}
_CONTAINER_ENDS = {"blockquote_close", "bullet_list_close", "ordered_list_close", "list_item_close"}
_MARKER = re.compile(r"[ \t]*([-*+]|\d{1,9}[.)])([ \t]*)")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_BOX = re.compile(r"\[[ xX]\](?:\s+|$)")
_TICKS = re.compile("`+")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»"}


@dataclass(slots=True)
class Block:
    """A block of Markdown. Lines count from 0 in its page."""

    kind: Kind
    line: int
    """The first line."""
    end: int
    """The line after the last."""
    text: str = ""
    """The text of a paragraph or heading, or the content of a fence, code or HTML block, with line breaks."""
    markup: str = ""
    """The fence, the rule, the `#`s of a heading, or an item's marker with its number."""
    info: str = ""
    """The text behind an opening fence, or the line below an underlined heading."""
    level: int = 0
    """The level of a heading."""
    closed: bool = True
    """Whether a fence is closed."""
    column: int = 0
    """The column of an item's marker."""
    offset: int = 0
    """Where an item's content begins, in characters."""
    indent: int = 0
    """Where an item's content begins, in columns (tabs are wide)."""
    lazy: bool = False
    """Whether a paragraph was cut off the item above it, because it begins with a label."""
    children: list["Block"] = field(default_factory=list)


class _TooMuch(Exception):
    def __init__(self, code: str, message: str, line: int) -> None:
        super().__init__(message)
        self.code, self.message, self.line = code, message, line


def _guard(state: StateBlock, start: int, _end: int, _silent: bool) -> bool:
    """A parser rule that is tried first, never matches, and limits depth and count."""
    if state.level > DEEPEST:
        raise _TooMuch("too-deep", "lists and quotes are nested too deep here", start)
    state.env["left"] -= 1
    if state.env["left"] < 0:
        raise _TooMuch("too-large", f"more than {MOST_BLOCKS:,} paragraphs in one list or quote", start)
    return False


def _words(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A shortcut: text that begins with a letter, bold or not, is a paragraph or an underlined heading."""
    at = state.bMarks[start] + state.tShift[start]
    if state.src.startswith(("**", "__"), at):
        at += 2
    if not state.src[at : at + 1].isalpha() or state.is_code_block(start):
        return False
    return lheading(state, start, end, silent) or paragraph(state, start, end, silent)


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """A CommonMark parser that leaves link definitions as text, because a prompt may contain them."""
    markdown = MarkdownIt("commonmark", {"maxNesting": DEEPEST + 10}).disable("reference")
    markdown.block.ruler.before("code", "guard", _guard)
    markdown.block.ruler.after("guard", "words", _words)
    return markdown


def read_blocks(page: Page, notes: Diagnostics) -> list[Block]:
    """The blocks of a page, as far as it can be read."""
    blocks: list[Block] = []
    try:
        _read(page, blocks)
    except _TooMuch as stop:
        notes.error(stop.code, stop.message, page.start_of(stop.line), "write it flatter, or split the file")
    for block in _fences(blocks):
        at = page.place(block.line, page.lines[block.line].find(block.markup))
        notes.error("unclosed-fence", f"the fence `{block.markup}` is not closed", at, "close it in the same item")
    return blocks


def _read(page: Page, blocks: list[Block]) -> None:
    state = StateBlock("\n".join(page.lines) + "\n", parser(), {}, [])
    rules = parser().block.ruler.getRules("")
    line = state.skipEmptyLines(0)
    while line < state.lineMax:
        state.env["left"] = MOST_BLOCKS
        for rule in rules:
            if rule(state, line, state.lineMax, False):
                break
        blocks.extend(_build(state.tokens, page))
        state.tokens.clear()
        line = state.skipEmptyLines(state.line)


def _build(tokens: list[Token], page: Page) -> list[Block]:
    """The tree of blocks of a flat list of tokens."""
    top: list[Block] = []
    around: list[Block] = []
    block = None
    for token in tokens:
        if token.type == "inline":
            assert block is not None
            block.text = token.content
            underline = block.kind == "heading" and bool(block.info)
            if block.text.count("\n") + 1 + underline < block.end - block.line:
                _find_lines(block, page)
        elif token.type in _CONTAINER_ENDS:
            done = around.pop()
            done.end = done.children[-1].end if done.children else done.line + 1
        elif kind := _KINDS.get(token.type):
            assert token.map is not None
            block = Block(kind, token.map[0], token.map[1], token.content, token.markup, token.info)
            (around[-1].children if around else top).append(block)
            _complete(block, token, around, page)
            if kind in ("quote", "list", "item"):
                around.append(block)
    return top


def _find_lines(block: Block, page: Page) -> None:
    """Correct the line numbers of a text whose first or last lines the parser trimmed, being Unicode blanks.

    An underlined heading ends with its underline, whatever stands between.
    """
    first = block.text.partition("\n")[0]
    while block.line < block.end - 1 and first not in page.lines[block.line]:
        block.line += 1
    if block.kind == "paragraph":
        block.end = min(block.end, block.line + block.text.count("\n") + 1)


def _complete(block: Block, token: Token, around: list[Block], page: Page) -> None:
    match block.kind:
        case "heading":
            block.level = int(token.tag[1:])
            block.info = page.lines[block.end - 1].strip() if token.markup in "-=" else ""
        case "fence":
            block.closed = block.end - block.line == block.text.count("\n") + 2
            block.info = token.info.rstrip()
            if not block.closed:
                block.text = block.text.rstrip("\n") + "\n"
        case "item":
            block.markup = token.info + token.markup
            outer = around[-2] if len(around) > 1 and around[-2].kind == "item" else None
            _find_content(block, page.lines[block.line], outer)
        case "rule":
            rule = _RULE.search(page.lines[block.line])
            block.markup = rule[0].rstrip() if rule else token.markup


def _find_content(item: Block, line: str, outer: Block | None) -> None:
    """Set the columns of an item's marker and content. An item may begin on the line of the item around it."""
    start = outer.offset if outer is not None and outer.line == item.line else 0
    marker = _MARKER.match(line, start)
    if marker is None:  # in a quote, whose items need no columns
        return
    item.column = marker.start(1)
    after = width(" " * _columns(line, marker.end(1)) + marker[2]) - _columns(line, marker.end(1))
    empty = marker.end() == len(line)
    if empty or after > 4:  # an empty first line, or code that begins one blank behind the marker
        after = 1
        item.offset = min(marker.end(1) + 1, len(line))
    else:
        item.offset = marker.end()
    item.indent = _columns(line, marker.end(1)) + after


def _columns(line: str, end: int) -> int:
    """How many columns the first `end` characters of a line take."""
    if "\t" not in line:
        return end
    columns = 0
    for character in line[:end]:
        columns += 4 - columns % 4 if character == "\t" else 1
    return columns


def _fences(blocks: list[Block]) -> list[Block]:
    """The fences that aren't closed."""
    open_ones: list[Block] = []
    for block in blocks:
        if block.kind == "fence" and not block.closed:
            open_ones.append(block)
        elif block.children:
            open_ones.extend(_fences(block.children))
    return open_ones


def text_of(blocks: list[Block]) -> str:
    """The text of an item, or of the blocks below a label."""
    if len(blocks) == 1:
        block = blocks[0]
        if block.kind == "paragraph":
            return unquoted(_flow(block.text))
        if block.kind == "fence":
            return block.text.removesuffix("\n")
        if block.kind == "code":
            return textwrap.dedent(block.text).strip("\n")
    text = render(blocks)
    if blocks and blocks[0].kind == "paragraph" == blocks[-1].kind:
        return unquoted(text)
    return text


def unboxed(item: Block) -> list[Block]:
    """The blocks of an item without the box of `- [ ]`."""
    if not item.children or item.children[0].kind != "paragraph":
        return item.children
    first = item.children[0]
    box = _BOX.match(first.text)
    if box is None:
        return item.children
    rest = first.text[box.end() :]
    if not rest:
        return item.children[1:]
    line = first.line + box[0].count("\n")
    return [Block("paragraph", line, first.end, rest), *item.children[1:]]


def unquoted(text: str) -> str:
    """Text without the one pair of quotes or backticks around all of it."""
    text = text.strip()
    if len(text) < 2 or text[-2] == "\\":
        return text
    if text[0] == text[-1] == "`":
        return _without_ticks(text)
    if _QUOTES.get(text[0]) == text[-1] and _is_one_pair(text[0], text[1:-1], text[-1]):
        return text[1:-1].strip()
    return text


def _is_one_pair(opening: str, inside: str, closing: str) -> bool:
    """Whether the quotes around a text are one pair, unlike those of `"a" or "b"`."""
    inside = inside.replace("\\" + closing, "")
    if closing in "'’":
        inside = _APOSTROPHE.sub("", inside)
    places = [at for mark in {opening, closing} if (at := inside.find(mark)) >= 0]
    if not places:
        return True
    first = min(places)
    if opening != closing:
        return inside[first] == opening
    return inside[first - 1 : first].isspace() and not inside[first + 1 : first + 2].isspace()


def _without_ticks(text: str) -> str:
    """The content of the code span, if the whole text is one."""
    inside = text.strip("`")
    run = len(text) - len(text.lstrip("`"))
    one_span = len(text) == len(inside) + 2 * run and all(len(ticks) != run for ticks in _TICKS.findall(inside))
    return inside.strip() if inside and one_span else text


def render(blocks: list[Block]) -> str:
    """Blocks one below the other, with a blank line where the file has blank lines."""
    parts: list[str] = []
    for number, block in enumerate(blocks):
        if number:
            parts.append("\n\n" if block.line > blocks[number - 1].end else "\n")
        parts.append(_one(block))
    return "".join(parts)


def _one(block: Block) -> str:
    match block.kind:
        case "paragraph":
            return _flow(block.text)
        case "heading":
            return f"{'#' * block.level} {_flow(block.text)}".rstrip()
        case "fence":
            return f"{block.markup}{block.info}\n{block.text}{block.markup}"
        case "code":
            return textwrap.indent(block.text.rstrip("\n"), "    ")
        case "quote":
            return textwrap.indent(render(block.children), "> ", lambda _: True).replace("> \n", ">\n")
        case "list":
            return render(block.children)
        case "item":
            inside = render(block.children)
            indent = " " * (len(block.markup) + 1)
            return f"{block.markup} {textwrap.indent(inside, indent)[len(indent) :]}".rstrip()
        case "html":
            return block.text.rstrip("\n")
        case "rule":
            return block.markup


def _flow(text: str) -> str:
    """The lines of a paragraph joined, except at hard line breaks."""
    if "\n" not in text:
        return text.strip()
    parts: list[str] = []
    *lines, last = text.strip().split("\n")
    for line in lines:
        bare = line.strip(" \t")
        if line.endswith("  "):
            parts.append(line.lstrip(" \t") + "\n")
        elif (len(bare) - len(bare.rstrip("\\"))) % 2:
            parts.append(f"{bare}\n")
        else:
            parts.append(f"{bare} ")
    parts.append(last.strip(" \t"))
    return "".join(parts)
