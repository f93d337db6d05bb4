"""Generated test files: each label word in each spelling, with its value in each place, in each context.

A file has a good case, `Quokka`, and a case `Drink` with the generated block. `losses` says what of a file was lost
without a word.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from tests.loader.markdown.conftest import FRAME

from atp.loader.load import Loaded, load_text
from atp.loader.source import LoadContext
from atp.suite.case import Case

WORDS = {
    **dict.fromkeys(("Prompts", "Prompt", "Prompt(s)", "Single Prompt", "Input"), "prompts"),
    **dict.fromkeys(("Chain", "Prompt Chain"), "chain"),
    **dict.fromkeys(("Expectations", "Expectation", "Expectation(s)", "Expected", "Assertions"), "expectations"),
    **dict.fromkeys(("Before", "Befores", "Before(s)", "Dependencies"), "before"),
    **dict.fromkeys(("Test Intent", "Intent", "Description"), "intent"),
    "ID": "id",
    "Tags": "tags",
    "Actor": "actor",
}
"""The label words and their fields."""

HEADINGS = ["### X", "#### X", "###   X   ###", "### **X**", "### *X*"]
ITEMS = ["- **X:**", "* **X:**", "1. **X:**", "- [ ] **X:**", "- __X:__", "- **X**:", "- **X**"]
BREAKS = ["**X:**  ", "**X:**<br>", "**X:** <br/>", "**X:**\\"]
ACCEPTED = [
    *("**X:**", "**X**", "**X**:", "**X** :", "**X :**", "__X:__", "__X__", "__X__:", "***X:***", "***X***", "X:"),
    *(
        "*X:*",
        "_X:_",
        " **X:**",
        "  **X:**",
        "   **X:**",
        " **X**",
        "  **X**",
        "   **X**",
        " X:",
        "**x:**",
        "**x**",
        "x:",
    ),
    *("### X:", "### **X:**", *HEADINGS, *ITEMS, *BREAKS),
]
"""How a label may be written."""

LOOKALIKES = [
    *("X", "*X*", "_X_", "**X**.", "**X.**", "** X:**", "**X: **", "** X **", "**X::**", "**X**::", "**X\uff1a**"),
    *(
        "X\uff1a",
        "**X**\uff1a",
        "**X** -",
        "**X** –",
        "**X** —",
        "**X** =",
        "**X** =>",
        "**X** ->",
        "**X** |",
        "**X**,",
    ),
    *("**X;**", "**X** (3):", "**X (3):**", "**X [3]:**", "X (3):", "X -", "X –", "X —", "X =", "X =>", "X.", "X;"),
    *(
        "###X",
        "#X",
        "##X:",
        "####### X",
        "### X.",
        "### X –",
        "### `X`",
        "### 1. X",
        "### (X)",
        "## X",
        "# X",
        "X\n===",
    ),
    *(
        "`X:`",
        "**`X`:**",
        "`X`:",
        "~~**X:**~~",
        "~~X:~~",
        "==X:==",
        "++X:++",
        "(X):",
        "[X]:",
        "[X]",
        "{X}",
        "<X>",
        "<X>:",
    ),
    *("[**X:**](#x)", "[X](#x):", '"X":', "'X':", "“X”:", "«X»:", ":X:", "@X:", "#X:", "$X:", "%X:", "&X:", "• X:"),
    *("> **X:**", "> X:", "> X", ">**X:**", "> > **X:**", "| **X:** |", "| X | Y |", "|X|", "<b>X:</b>", "<b>X</b>:"),
    *("<strong>X</strong>", "<h3>X</h3>", "<p><b>X:</b></p>", "<u>X:</u>", "<dt>X</dt>", "<br>**X:**", "&nbsp;**X:**"),
    *("- - **X:**", "- > **X:**", "- *X*", "- X –", "+ X –", "- `X:`", "    **X:**", "\t**X:**", "     X:", "  X:"),
    *("\u00a0**X:**", "\u200b**X:**", "\ufeff**X:**", "✅ **X:**", "🧪 X:", "!**X:**", "\\**X:**", "\\# X", "   X:"),
]
"""How a label may not be written, though people do."""

DISGUISES: dict[str, Callable[[str], str]] = {
    "zero width": lambda word: f"{word[0]}\u200b{word[1:]}",
    "soft hyphens": "\u00ad".join,
    "full width": lambda word: "".join(chr(ord(one) + 0xFEE0) if one.isalpha() else one for one in word),
    "Cyrillic": lambda word: word.translate(
        str.maketrans("aeopAPET", "\u0430\u0435\u043e\u0440\u0410\u0420\u0415\u0422")
    ),
    "entity": lambda word: f"&#{ord(word[0])};{word[1:]}",
    "bold letter": lambda word: f"**{word[0]}**{word[1:]}",
    "tag": lambda word: f"<b>{word[0]}</b>{word[1:]}",
}
"""How a word may be written so that it only looks like itself."""
LOOKALIKES += [f"{{{name}}}:" for name in DISGUISES] + ["**1. X:**", "[^1]: **X:**", "**X/Y:**", "**\u200bX:**"]

PLACES = {
    "same line": "{label} {value}",
    "same line, link": "{label} {link}",
    "next line": "{label}\n{value}",
    "next line, link": "{label}\n{link}",
    "paragraph": "{label}\n\n{value}",
    "list": "{label}\n\n{inner}- {value}",
    "glued list": "{label}\n{inner}- {value}",
    "fence": "{label}\n\n{inner}```\n{inner}{value}\n{inner}```",
    "glued fence": "{label}\n{inner}```\n{inner}{value}\n{inner}```",
    "numbered list": "{label}\n\n{inner}1. {value}",
    "list of links": "{label}\n\n{inner}- {link}",
}
"""Where the value of a label stands."""

POSITIONS = ("first", "middle", "last")
MARK = "wombat"
OTHERS = {
    "prompts": "**Prompts:**\n\n- drink",
    "tags": "**Tags:** slow",
    "expectations": "**Expectations:**\n\n- It drinks.",
}
SAME = {
    "prompts": "**Prompts:**\n\n- sip",
    "chain": "**Chain:**\n\n- hello\n- sip",
    "expectations": "**Expectations:**\n\n- It sips.",
    "before": "**Before:** [Quokka](#quokka)",
    "intent": "**Intent:** to drink",
    "id": "**ID:** drinks",
    "tags": "**Tags:** slow",
    "actor": "**Actor:** alice",
}
GOOD = "## Quokka\n\n**Prompts:**\n\n- hop\n\n**Expectations:**\n\n- It hops.\n\n## Drink\n\n"


@dataclass(frozen=True)
class Label:
    """A label word in a spelling, with its value in a place."""

    word: str
    spelling: str
    place: str

    @property
    def kind(self) -> str:
        return WORDS[self.word]

    @property
    def mark(self) -> str:
        """A word of the value that stands nowhere else in the case."""
        return "Quokka" if self.kind == "before" else MARK

    @property
    def written(self) -> str:
        small = "X" not in self.spelling
        label = self.spelling.replace("x" if small else "X", self.word.lower() if small else self.word)
        if disguise := DISGUISES.get(self.spelling.strip("{}:")):
            label = f"{disguise(self.word)}:"
        link = f"[{self.mark}](#{self.mark.lower()})"
        is_item = self.spelling[:2] in ("- ", "* ", "+ ", "1.")
        return PLACES[self.place].format(label=label, value=self.mark, link=link, inner="   " if is_item else "")

    @property
    def is_accepted(self) -> bool:
        """Whether the label must be read without a word, wherever it stands.

        A heading's value needs a colon, a heading above text may be the name of a case, an item's value is in the item,
        and nothing stands behind a line break.
        """
        beside = self.place.startswith("same line")
        if self.spelling in HEADINGS:
            return "list" in self.place or "fence" in self.place
        if self.spelling in BREAKS[2:]:
            return not beside
        return self.spelling in ACCEPTED and self.spelling not in ITEMS


@dataclass(frozen=True)
class Generated:
    """A file, and the labels in it with the line of each, from 1."""

    text: str
    labels: dict[int, Label]


def one_label(label: Label, position: str, beside_same: bool) -> Generated:
    """The case `Drink` with one generated block among good ones."""
    kind = "prompts" if label.kind == "chain" else label.kind
    others = [text for other, text in OTHERS.items() if other != kind]
    others += [SAME[label.kind]] if beside_same else []
    at = {"first": 0, "middle": 1, "last": len(others)}[position]
    before = FRAME + GOOD + "".join(f"{text}\n\n" for text in others[:at])
    after = "".join(f"\n\n{text}" for text in others[at:])
    return Generated(f"{before}{label.written}{after}\n", {before.count("\n") + 1: label})


def whole_case(spelling: str, place: str) -> Generated:
    """The case `Drink` written throughout in one style."""
    text = FRAME + GOOD
    labels: dict[int, Label] = {}
    for word in ("Before", "Prompts", "Expectations"):
        label = Label(word, spelling, place)
        labels[text.count("\n") + 1] = label
        text += f"{label.written}\n\n"
    return Generated(text, labels)


def combinations(spelling: str) -> list[tuple[Label, str, bool]]:
    """Every label in a spelling, with its position, and whether another of its kind stands beside it."""
    labels = (Label(word, spelling, place) for word, place in product(WORDS, PLACES))
    return list(product(labels, POSITIONS, (False, True)))


def generate(label: Label, position: str, beside_same: bool) -> tuple[str, Generated]:
    """A file with one label, and its name."""
    name = f"{label.spelling!r} {label.word}, {label.place}, {position}{', beside another' if beside_same else ''}"
    return name, one_label(label, position, beside_same)


def load(generated: Generated) -> Loaded:
    return load_text(generated.text, "markdown", LoadContext(env={}), "drink.test.md")


def losses(generated: Generated, loaded: Loaded) -> list[str]:
    """What was lost without a word."""
    assert loaded.suite is not None
    lines = loaded.lines()
    assert lines is not None
    reported = {one.line for one in loaded.diagnostics}
    cases = loaded.suite.cases[1:]
    lost: list[str] = []
    for number, label in generated.labels.items():
        is_said = not reported.isdisjoint(range(number, number + label.written.count("\n") + 1))
        is_read = any(_value_of(case, label.kind, label.mark) or label.mark in (case.intent or "") for case in cases)
        line = lines[number - 1]
        # A case may be called like a label, if its heading is no deeper than the others.
        is_name = line.kind == "heading" and label.spelling in ("# X", "## X", "X\n===") and line.case is not None
        if not (is_said or is_read or is_name):
            lost.append(f"line {number}: the value is lost")
        is_label = line.kind == "label" or line.role.startswith("chain")
        if not (number in reported or is_label or is_name):
            lost.append(f"line {number}: the label is not read")
        if not (number in reported or is_label) and any(label.word in text for case in cases for text in _texts(case)):
            lost.append(f"line {number}: the label is in a prompt or an expectation")
    lost += [f"line {one.number}: silent" for one in lines if one.kind == "unread" and one.reported is None]
    return lost


def misread(generated: Generated, loaded: Loaded) -> list[str]:
    """What of a file that is written right was not read, or was reported."""
    assert loaded.suite is not None
    wrong = [f"line {one.line}: {one.code}" for one in loaded.diagnostics if one.code != "several-values"]
    for number, label in generated.labels.items():
        is_read = any(_value_of(case, label.kind, label.mark) for case in loaded.suite.cases[1:])
        if not is_read and label.kind not in ("id", "actor"):  # of two, the first counts
            wrong.append(f"line {number}: the value is not in its field")
    return wrong


def _texts(case: Case) -> Iterator[str]:
    yield from (prompt for chain in case.chains for prompt in chain)
    yield from case.expectations


def _value_of(case: Case, kind: str, mark: str) -> bool:
    """Whether the value is in its field."""
    match kind:
        case "prompts" | "chain":
            return any(mark in prompt for chain in case.chains for prompt in chain)
        case "expectations":
            return any(mark in text for text in case.expectations)
        case "before":
            return 0 in case.befores
        case "intent":
            return mark in (case.intent or "")
        case "id":
            return mark in case.id
        case "tags":
            return any(mark in tag for tag in case.tags)
        case _:
            return mark in (case.user or "")
