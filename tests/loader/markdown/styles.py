"""Suites made up by hypothesis, written down in every style that a test file may have."""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from atp.loader.markdown.format import try_format

_WORDS = [
    *("warm", "the", "ocean", "now,", "please!", "2", "degrees?", "café", "海", "x_y", "don't", "a/b", "e.g."),
    *("**bold**", "*now*", "`code`", "[a](#b)", "<b>", "&amp;", "**Prompts:**", "Input:", "chain", "\\*", "$x$", "(s)"),
]
_LABELLIKE = {"**Prompts:**", "Input:"}

words = st.sampled_from(_WORDS)
# A text that is nothing but a label, or ends with one, could be one where it stands.
texts = st.builds(
    lambda first, middle, last: " ".join([first, *middle, last]),
    st.sampled_from(["warm", "What", "fill", "Ozean"]),
    st.lists(words, max_size=8),
    st.sampled_from(["ocean", "it.", "now?", "`done`"]),
)
codes = st.lists(st.sampled_from(["# x", "- y", "**Expectations:**", "  z", "", "~~~"]), min_size=1, max_size=4).filter(
    lambda lines: bool("".join(lines).strip())
)


@dataclass(frozen=True)
class Prompt:
    """What is said: words, or what stands in a fence."""

    text: str
    fenced: bool = False


prompts = st.one_of(st.builds(Prompt, texts), st.builds(lambda lines: Prompt("\n".join(lines), fenced=True), codes))


@dataclass(frozen=True)
class CaseModel:
    """A case as it should be read."""

    chains: list[list[Prompt]]
    expectations: list[str]
    intent: str | None = None
    tags: list[str] = field(default_factory=list)
    before: int | None = None


cases = st.builds(
    CaseModel,
    chains=st.lists(st.lists(prompts, min_size=1, max_size=3), min_size=1, max_size=4),
    expectations=st.lists(texts, min_size=1, max_size=3),
    intent=st.none() | texts.filter(lambda text: not _LABELLIKE & set(text.split())),
    tags=st.lists(st.sampled_from(["slow", "sea", "x-y"]), max_size=2, unique=True),
    before=st.none(),
)
suites = st.lists(cases, min_size=1, max_size=3).map(
    lambda many: [replace(one, before=number - 1 if number % 2 else None) for number, one in enumerate(many)]
)


@dataclass(frozen=True)
class Style:
    """How a suite is written down."""

    label: str = "**{}:**"
    chain: str = "**Chain:**"
    marker: str = "-"
    inner: str = "-"
    after: int = 1
    """Blanks behind a marker."""
    indent: int = 0
    """Blanks before labels and lists."""
    level: int = 1
    blank_lines: bool = True
    fence: str = "```"
    wrap: int = 0
    """Words on a line; 0 for all of them."""
    lazy: bool = False
    """Whether wrapped lines are indented at all."""
    crlf: bool = False
    tabs: bool = False


styles = st.builds(
    Style,
    label=st.sampled_from(["**{}:**", "**{}**", "**{}**:", "__{}:__", "{}:", "heading"]),
    chain=st.sampled_from(["**Chain:**", "Chain:", "*chain*", "__Chain__", "chain", "**Prompt Chain:**"]),
    marker=st.sampled_from(["-", "*", "+", "1.", "1)"]),
    inner=st.sampled_from(["-", "*", "+", "1.", "1)"]),
    after=st.integers(1, 4),
    indent=st.integers(0, 3),
    level=st.integers(1, 5),
    blank_lines=st.booleans(),
    fence=st.sampled_from(["```", "~~~~", "`````md"]),
    wrap=st.integers(0, 4),
    lazy=st.booleans(),
    crlf=st.booleans(),
    tabs=st.booleans(),
)


class Lazy(str):
    """A line that continues a paragraph without being indented like it."""

    __slots__ = ()


def indented(lines: list[str], blanks: str) -> list[str]:
    return [line if isinstance(line, Lazy) or not line else blanks + line for line in lines]


class Writer:
    """Writes a suite in a style."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.lines: list[str] = ["---", "target: agents/a.md", "assessor: agents/b.md", "---", ""]

    def write(self, suite: list[CaseModel]) -> str:
        for number, case in enumerate(suite):
            self.heading(self.style.level, f"Case {number}")
            if case.intent:
                self.lines.extend(self.wrapped(case.intent))
            self.block("Prompts", [self.chain(chain) for chain in case.chains])
            if case.tags:
                self.block("Tags", [[tag] for tag in case.tags])
            if case.before is not None:
                self.block("Before", [[f"Case {case.before}"]])
            self.block("Expectations", [self.wrapped(text) for text in case.expectations])
        return ("\r\n" if self.style.crlf else "\n").join([*self.lines, ""])

    def gap(self) -> None:
        if self.style.blank_lines:
            self.lines.append("")

    def heading(self, level: int, text: str) -> None:
        self.gap()
        self.lines.append(f"{'#' * level} {text}")
        self.gap()

    def block(self, title: str, items: list[list[str]]) -> None:
        if self.style.label == "heading":
            self.heading(self.style.level + 1, title)
        else:
            self.gap()
            self.lines.append(" " * self.style.indent + self.style.label.format(title))
            self.gap()
        for item in items:
            self.lines.extend(indented(self.item(item, self.style.marker), " " * self.style.indent))

    def item(self, lines: list[str], marker: str) -> list[str]:
        if self.style.tabs and not self.style.indent:
            return [f"{marker}\t{lines[0]}", *indented(lines[1:], "\t")]
        bullet = marker + " " * self.style.after
        return [bullet + lines[0], *indented(lines[1:], " " * len(bullet))]

    def chain(self, chain: list[Prompt]) -> list[str]:
        if len(chain) == 1:
            return self.prompt(chain[0])
        items = [self.item(self.prompt(prompt), self.style.inner) for prompt in chain]
        return [self.style.chain, *(line for item in items for line in item)]

    def prompt(self, prompt: Prompt) -> list[str]:
        if not prompt.fenced:
            return self.wrapped(prompt.text)
        return [self.style.fence, *prompt.text.split("\n"), self.style.fence.removesuffix("md")]

    def wrapped(self, text: str) -> list[str]:
        """Wrapped where it can be: a line must not begin with what would be structure there."""
        lines: list[list[str]] = [[]]
        for word in text.split():
            full = self.style.wrap and len(lines[-1]) >= self.style.wrap
            if full and word not in _LABELLIKE and word[0] not in "*<&\\[`(":
                lines.append([])
            lines[-1].append(word)
        first, *rest = (" ".join(line) for line in lines)
        return [first, *(Lazy(line) if self.style.lazy else line for line in rest)]


def format_markdown(text: str) -> str:
    """The text as `atp fmt` leaves it: unchanged if it has errors or can't be rewritten safely."""
    formatted = try_format(text)
    return text if formatted is None else formatted
