"""Markdown test files (`*.test.md`), by the strict and the conceptual description of the format.

A text goes through these steps: the frontmatter is cut off (`frontmatter`), comments are removed (`page`), Markdown
becomes a tree of blocks (`blocks`), headings and labels make sections and fields of the blocks (`sections`, `fields`,
`labels`), fields become texts (`items`), sections become cases (`cases`, `names`, `befores`), and what was not read is
reported (`unread`, `label_words`). No step knows the steps after it, and each notes the mistakes that it finds. What
became of each line is found out when it is asked for (`lines`).
"""

from dataclasses import dataclass

from atp.base.diagnostics import Diagnostics
from atp.loader.cases import check_default_gate
from atp.loader.markdown.blocks import Block, read_blocks
from atp.loader.markdown.cases import CaseBuilder
from atp.loader.markdown.frontmatter import Frontmatter, Head, cut, read_frontmatter
from atp.loader.markdown.names import Titles, stem
from atp.loader.markdown.outline import Outline
from atp.loader.markdown.page import Page, read_page
from atp.loader.markdown.sections import read_outline
from atp.loader.markdown.unread import report_unread
from atp.loader.source import LoadContext, Source
from atp.suite.case import Limits
from atp.suite.suite import Defaults, Suite

__all__ = ["Frontmatter", "load_markdown"]

MOST_LINES = 2_000_000
"""How many lines a file may have. Each costs some hundred bytes while it is read, even if empty."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A text after the steps that know Markdown and labels, but not cases."""

    head: Head
    page: Page
    blocks: list[Block]
    outline: Outline


def load_markdown(source: Source, context: LoadContext, notes: Diagnostics) -> Suite:
    """The suite in a Markdown text, as far as it can be read. Mistakes are noted."""
    if source.text.count("\n") > MOST_LINES:
        notes.error("too-large", f"the file has more than {MOST_LINES:,} lines", hint="split it")
        return Suite(name=stem(source.path), dialect="markdown", path=source.path)
    return build_suite(parse_file(source.text, notes), source.path, context, notes)


def parse_file(text: str, notes: Diagnostics) -> ParsedFile:
    """The frontmatter's text and the outline of the body."""
    head = cut(text, notes)
    page = read_page(head.body, head.body_line, notes)
    blocks = read_blocks(page, notes)
    return ParsedFile(head, page, blocks, read_outline(blocks, page, notes))


def build_suite(parsed: ParsedFile, path: str | None, context: LoadContext, notes: Diagnostics) -> Suite:
    """The suite of a parsed file at `path`."""
    front = read_frontmatter(parsed.head, context, notes)
    outline = parsed.outline
    name = stem(path)
    titles = Titles(outline)
    cases = CaseBuilder(parsed.page, front, name, context, notes).build(outline, titles)
    report_unread(outline, parsed.page, notes)
    not_cases = (titles.of(section) for section in outline.sections if not section.is_case)
    suite = Suite(
        name=next((title for title in not_cases if title), name),
        dialect="markdown",
        path=path,
        description=front.description,
        target=front.target,
        assessor=front.assessor,
        generator=front.generator,
        iterations=front.iterations,
        defaults=Defaults(
            runs_per_test=front.runs,
            timeout_seconds=front.timeout,
            constraints=None if front.budget_usd is None else Limits(budget_usd=front.budget_usd),
            pass_rate=front.pass_rate,
            confidence=front.confidence,
            margin=front.margin,
        ),
        cases=cases,
    )
    suite.target_stands_at(front.target_place)
    check_default_gate(suite.defaults, cases, context, notes, front.place_of)
    return suite
