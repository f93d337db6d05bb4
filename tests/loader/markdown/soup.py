"""Test files made of random lines, each word of which stands nowhere else, so that it can be found again.

`dishonest` compares what `atp show --lines` says of each line with the cases: what is said to be a prompt is in a
prompt, what is said to be left out is in none, and what is left out is reported.
"""

import random
import re
import unicodedata
from collections.abc import Iterator

from tests.loader.markdown.conftest import FRAME
from tests.loader.markdown.matrix import WORDS

from atp.loader.load import Loaded, load_text
from atp.loader.markdown.lines import Line
from atp.loader.source import LoadContext
from atp.suite.case import Case

SETTINGS = ("Timeout", "Metadata", "Skip", "Runs", "After Hook")
LABELS = [
    *("**W:**", "**W**", "**W**:", "__W:__", "W:", "*W:*", "### W", "#### W ##", "W\n---", "W:\n---", "**W:**\n---"),
    *(
        "- **W:**",
        "1. **W:**",
        "- [ ] **W:**",
        "> **W:**",
        "<b>W:</b>",
        "    **W:**",
        "\t**W:**",
        "**W:** T",
        "**W** T",
    ),
    *("W: T", "### W: T", "- **W:** T", "**W:** **V:** T", "Then **W:**", "T\nThen **W:**", "- T\n  Then **W:**"),
    *("**W\uff1a** T", "**W:**\\", "w: T", "\\**W:** T", "&#42;&#42;W:** T", "**W&colon;** T", "\u200b**W:** T"),
    *(
        "**\u200bW:** T",
        "**W\u200b:** T",
        "\u202e**W:** T",
        "**\u00a0W:** T",
        "**W:**T",
        "**W:**\u2003T",
        "\u3000**W:** T",
    ),
    *(
        "T\u2028**W:** T",
        "T\x0b**W:** T",
        "T\x0c**W:** T",
        "T\x85**W:** T",
        "\x0c**W:** T",
        "\x0c### W",
        "\x0c- **W:** T",
    ),
    *("[^1]: **W:** T", "| **W:** | T |", "| W | V |\n|---|---|\n| T | T |", "<div>\n**W:** T\n</div>", "`**W:**` T"),
    *("<!-- x -->**W:** T", "**W:** <!-- x --> T", "**W<!-- x -->:** T", "~~**W:** T~~", "**W, V:** T", "**W/V:** T"),
    *("1) **W:** T", "+ **W:**\n  - T", "- - **W:** T", "- > **W:** T", "> - **W:** T", "- ### W:", "*_W:_* T"),
    *("**1. W:** T", "**W 1:** T", "**W-1:** T", "W-1:\n- T", "**W (T):** T", "**The W:** T", "# W", "## W", "###W"),
    *(
        "## T\n\n**Prompts:**\n- T\n\n**Expectations:**\n- T",
        "P\u200brompts: T",
        "Expe\u00adctations: T",
        "**B**efore: T",
    ),
    *(
        "\uff30rompts: T",
        "\u0420rompts: T",
        "P&#114;ompts: T",
        "<b>I</b>nput: T",
        "**User Prompt:** T",
        "### My W\n\n- T",
    ),
]
"""Lines with a label, or like one. `W` and `V` are label words, `T` is a word that stands nowhere else."""
TEXTS = [
    *("T", "T.", "- T", "* T", "1. T", "2. T", "- [ ] T", "  - T", "    - T", "\t- T", "    T", "\tT", "> T", "> - T"),
    *(
        "```\nT\n```",
        "```md\n**Prompts:**\n- T\n```",
        "- ```\n  T\n  ```",
        "- T\n  ```\n  T\n  ```",
        "    ```\n    T\n    ```",
    ),
    *(
        "- ```\n  T\n      ```\n  <!-- T -->\n  ```",
        "~~~\nT\n    ~~~\n<!-- T -->\n~~~",
        "```\nT\n``` x\n<!-- T -->\n```",
    ),
    *(
        "<!-- c -->",
        "<!-- c\nc -->",
        "T <!-- c --> T",
        "- T <!-- c -->",
        "- <!-- c -->",
        "<!-- c --> - T",
        "---",
        "===",
        "-",
    ),
    *("<br>", "<div>", "</div>", "<p>T</p>", "<details open>", "<pre>T\n\nT</pre>", "<It must T>", "<?T?>", "<!T>"),
    *(
        "[ref]: http://x",
        "[user]: T T",
        "[^1]: T",
        "[T](#quokka)",
        "| T | T |\n|---|---|\n| T | T |",
        "T\n===",
        "T\n---",
    ),
    *("- T\n---", "- T\n===", "- T\n  ---", "## T", "### T", "#### T ####", "#T", "T\\", "T  ", "- T\\\n  T", "- T\nT"),
    *("- T\n\n  T", "- T\n\n T", "- T\n    T", "- T\n\n      T", "1. T\n   - T\n   - T", "- Chain:\n  - T\n  - T"),
    *("- **Chain:** T\n  - T", "- chain T\n  - T", "- T\n  - **Expectations:** T", "- T\n  **Expectations:** T"),
    *("- T\n\n  Expectations:\n  - T", "- T\n> **Before:** T", "- T\n\n    **Expectations:** T", "- T\n\t**Tags:** T"),
    *("- T\n  **Timeout:** 30s", "\u2028", "T\u2028T", "\u00a0", "&nbsp;T", "\\T", ":::note\nT\n:::", "T:", "**T:** T"),
    *(
        "**Note:** T",
        "---\nT: T\n---",
        '"T"',
        "`T`",
        '- "T" or "T"',
        "- T: T",
        "- T `<!-- T -->` T",
        "T `\nT <!-- T -->\n` T",
    ),
]
"""Other lines."""
DRINK = "**Prompts:**\n\n- drink\n\n"
JUDGED = "**Expectations:**\n\n- It drinks.\n\n"
LAST = "\n## Last\n\n**Prompts:** end\n\n**Expectations:** It ends.\n"
_LABEL = re.compile(rf"[\W_\d]*(?:{'|'.join(map(re.escape, WORDS))})\s*[*_]*:", re.IGNORECASE)
_FENCE = re.compile(r"(?!\s{4})[\s>*+\-]*(?:```|~~~)(?! x)")


def generate(seed: int) -> str:
    """A file with a good case, and a case of random lines."""
    rnd = random.Random(seed)
    lines = ""
    for _ in range(rnd.randint(1, 7)):
        text = rnd.choice(LABELS if rnd.random() < 0.5 else TEXTS)
        for sign in "WV":
            text = re.sub(rf"\b{sign}\b", rnd.choice([*WORDS, *SETTINGS]), text)
        text = re.sub(r"\bw(?=:)", rnd.choice([*WORDS]).lower(), text)
        lines += text + rnd.choice(["\n", "\n\n", "\n\n"])
    body = rnd.choice([DRINK + JUDGED + lines, f"{lines}\n{DRINK}{JUDGED}", f"{DRINK}{lines}\n{JUDGED}", lines])
    text = f"{FRAME}## Quokka\n\n{DRINK}{JUDGED}## Drink\n\n{body}{rnd.choice(['', LAST])}"
    count = iter(range(1, 1000))
    text = re.sub(r"\bT\b", lambda _: f"zq{next(count)}x", text)
    return text.replace("\n", rnd.choice(["\n"] * 8 + ["\r\n", "\r"]))


def load(text: str) -> Loaded:
    return load_text(text, "markdown", LoadContext(env={}), "soup.test.md")


def dishonest(text: str, loaded: Loaded) -> Iterator[str]:
    """What is said of a line and isn't so."""
    assert loaded.suite is not None
    lines = loaded.lines()
    assert lines is not None
    if [line.text for line in lines] != re.split(r"\r\n|\r|\n", text):
        yield "the lines are not those of the file"
    reported = {one.line for one in loaded.diagnostics}
    where = {part: _found(loaded.suite.cases, part) for part in ("prompt", "expectation", "intent", "name")}
    sent = {word for words in where["prompt"] + where["expectation"] for word in words}
    role: tuple[str, int | None, str] = ("", None, "")
    is_said = fenced = False
    for line in lines:
        fenced ^= _FENCE.match(line.text) is not None
        here = (line.kind, line.case, line.role)
        is_said = line.number in reported or (is_said and here == role)
        role = here
        for word in re.findall(r"zq\d+x", line.text):
            if wrong := _wrong(line, word, where, is_said):
                yield f"line {line.number}: {word} {wrong}"
            if line.kind not in ("value", "label") and word in sent:
                yield f"line {line.number}: {word} is sent or judged, and said to be {line.kind}"
        if line.kind == "unread" and line.reported is None:
            yield f"line {line.number}: it is left out without a word"
        is_text = line.kind in ("value", "intent", "prose", "remark", "markup") and not line.role.startswith("chain")
        if is_text and not fenced and line.number not in reported and _LABEL.match(_plain(line.text)):
            yield f"line {line.number}: its label is read as text without a word"


def _wrong(line: Line, word: str, where: dict[str, list[set[str]]], is_said: bool) -> str:
    if line.kind in ("markup", "comment", "blank"):
        return "" if is_said else f"is left out as {line.kind}"
    part = "prompt" if line.role.startswith("prompt") else line.role.partition(" ")[0]
    if line.case is None or is_said or line.kind not in ("value", "intent") or part not in where:
        return ""
    return "" if word in where[part][line.case] else f"is not in the {part}"


def _found(cases: list[Case], part: str) -> list[set[str]]:
    """The words in a part of each case."""
    texts = {
        "prompt": [[prompt for chain in case.chains for prompt in chain] for case in cases],
        "expectation": [case.expectations for case in cases],
        "intent": [[case.intent or ""] for case in cases],
        "name": [[case.name] for case in cases],
    }
    return [set(re.findall(r"zq\d+x", " ".join(one))) for one in texts[part]]


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    return "".join(one for one in text if unicodedata.category(one) != "Cf")
