"""Renders blocks as text: soft line breaks become blanks, all else stays as written, without its indentation.

The text depends only on the tree of blocks, so wrapping and indenting a prompt differently doesn't change the prompt.
"""

import re
import textwrap

from atp.loader.markdown.blocks import Block

_BOX = re.compile(r"\[[ xX]\](?:\s+|$)")
_TICKS = re.compile("`+")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»"}


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
