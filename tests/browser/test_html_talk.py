"""What was said, as the HTML report shows it: Markdown, pictures, simulated users, turns without an answer."""

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.reading import rendered

from atp.journal.made_files import FOLDER, MadeFiles
from atp.suite.result import Artifact, MadeFile, SimulatedTurn, SimulatedUser, Transcript, Verdict

MARKDOWN = """\
# Three hotels

I looked at **three** hotels near the *congress centre*:

1. Aurora, `142 EUR`
2. Grand Park
   - next door

| Hotel | Price |
|---|---|
| Aurora | 142 |

> Your limit is 150 EUR.

```
book("<b>")
```

See [the site](https://evil.example/), ![it](https://evil.example/x.png), 2*3*4 and snake_case_names.
"""


def picture() -> bytes:
    """A PNG of one red dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    )


@pytest.fixture
def show(tmp_path: Path, watched: Any, write_report: Callable[..., Path], make_case: Any) -> Callable[..., Any]:
    """Opens the report of a case with one trial, at that case."""

    def open_case(trial: Any, **about: Any) -> Any:
        path = write_report(tmp_path / "report.html", [make_case("c", trial, **about)])
        return watched.open(path, "#case=c")

    return open_case


def test_markdown_is_rendered_and_its_source_is_one_switch_away(show: Callable[..., Any], desk: Any) -> None:
    page = show(desk.plain("Find me a hotel", MARKDOWN))
    rich = page.locator(".is-assistant .rich")
    expect(rich.locator(".heading")).to_have_text("Three hotels")
    expect(rich.locator("strong")).to_have_text("three")
    expect(rich.locator("em")).to_have_text("congress centre")
    expect(rich.locator("ol > li")).to_have_count(2)
    expect(rich.locator("ol li li")).to_have_text("next door")
    expect(rich.locator("td")).to_have_text(["Aurora", "142"])
    expect(rich.locator("blockquote")).to_have_text("Your limit is 150 EUR.")
    expect(rich.locator("pre")).to_have_text('book("<b>")')
    expect(rich.locator("> p").last).to_have_text(
        "See the site (https://evil.example/), picture it (https://evil.example/x.png), 2*3*4 and snake_case_names."
    )
    assert rich.locator("a, img, b").count() == 0
    page.get_by_role("button", name="Source").click()
    expect(page.locator(".is-assistant .text")).to_have_text(MARKDOWN)
    page.get_by_role("button", name="Source").click()
    expect(rich).to_be_visible()


def test_a_quotation_is_marked_in_the_source(show: Callable[..., Any], desk: Any) -> None:
    judged = Verdict(
        type="expectation", name="x", outcome="failed", judged=True, evidence=["looked at **three** hotels"]
    )
    page = show(desk.plain("Find me a hotel", MARKDOWN, verdicts=[judged], status="failed", error="x"))
    expect(page.locator(".is-assistant mark")).to_have_text("looked at **three** hotels")


@pytest.mark.parametrize(
    "text",
    [
        "> " * 3000,
        "- " * 3000 + "x",
        "**a " * 4000,
        "`" * 9000,
        "[" * 9000,
        "|a" * 4000 + "\n" + "|-" * 4000,
        "1. a\n" * 3000,
        "*_" * 5000,
        "- x\n\n" * 3000,
        "```\n" * 999,
    ],
)
def test_markdown_of_any_form_is_shown(show: Callable[..., Any], desk: Any, text: str) -> None:
    page = show(desk.plain("x", text))
    expect(page.locator(".is-assistant")).to_be_visible()
    assert "could not be shown" not in rendered(page).locator("main").inner_text()


def test_html_in_markdown_stays_text(show: Callable[..., Any], desk: Any) -> None:
    nasty = "<img src=x onerror=alert(1)>"
    page = show(
        desk.plain(
            "x", f"# {nasty}\n\n- {nasty}\n\n**{nasty}** `{nasty}` [{nasty}](javascript:alert(1))\n\n|{nasty}|\n|-|\n"
        )
    )
    expect(page.locator(".is-assistant .rich")).to_contain_text(nasty)
    assert page.locator("main img, main a[href^=javascript]").count() == 0


def test_attached_pictures_are_shown(show: Callable[..., Any], desk: Any, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(picture())
    (tmp_path / "secret.txt").write_text("not a picture")
    inside = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"
    parts = [
        {"type": "text", "text": "What is on these?"},
        {"type": "image", "source": "file://dot.png"},
        {"type": "image_url", "image_url": {"url": inside}},
        {"type": "image", "source": "file://secret.txt"},
        {"type": "image", "source": "https://evil.example/x.png"},
        {"type": "image", "source": "data:image/svg+xml;base64,PHN2Zy8+"},
    ]
    given = [{"role": "user", "content": parts}]
    trial = desk.plain("x", "Dots.")
    trial.transcript.messages = [*given, {"role": "assistant", "content": "Dots."}]
    page = show(trial, input=given, file=str(tmp_path / "t.jsonl"))
    pictures = page.locator(".picture img")
    expect(pictures).to_have_count(2)
    assert page.evaluate("[...document.querySelectorAll('.picture img')].every((one) => one.decode().then(() => true))")
    for one in pictures.all():
        expect(one).to_have_js_property("naturalWidth", 1)
    expect(page.locator(".picture").first).to_contain_text("dot.png")
    expect(page.locator(".attached:not(.picture)")).to_have_count(3)


def test_a_file_that_only_the_agent_names_is_not_read(show: Callable[..., Any], desk: Any, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(picture())
    trial = desk.plain("x", "Dots.")
    trial.transcript.messages[-1]["content"] = [{"type": "image", "source": "file://dot.png"}]
    page = show(trial, file=str(tmp_path / "t.jsonl"))
    expect(page.locator(".attached")).to_be_visible()
    assert page.locator("main img").count() == 0


def test_files_that_the_agent_made_are_shown(
    watched: Any, desk: Any, tmp_path: Path, write_report: Callable[..., Path], make_case: Any
) -> None:
    contents = {"dot.png": picture(), "<img src=x>.html": b"<script>alert(1)</script>", "x.bin": b"\0\1", "y": b"both"}
    for number, content in enumerate(contents.values()):
        (tmp_path / str(number)).write_bytes(content)
    run = tmp_path / "run"
    run.mkdir()
    named = {name: tmp_path / str(number) for number, name in enumerate(contents)}
    trial = desk.plain("x", "Made.")
    trial.files, _ = MadeFiles(run / FOLDER).keep(named)
    trial.files.append(MadeFile(name="large.iso", size=5_000_000))
    trial.transcript.artifacts = [Artifact(name="y", text="both"), Artifact(name="plan", kind="structured", data=[1])]
    report = write_report(tmp_path / "report.html", [make_case("c", trial)], folder=str(run))
    page = watched.open(report, "#case=c")
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    expect(page.locator(".artifacts img")).to_have_js_property("naturalWidth", 1)
    expect(page.locator(".artifacts .text").last).to_have_text("both")
    expect(page.get_by_text("<script>alert(1)</script>")).to_be_visible()
    names = [one.split(" sha256")[0] for one in page.locator(".artifacts li b").all_inner_texts()]
    assert names == ["plan", "<img src=x>.html", "dot.png", "x.bin", "y", "large.iso"]
    told = page.locator(".artifacts li").all_inner_texts()
    assert "not text" in told[3]
    assert "5.0 MB, content not kept" in told[5]
    assert trial.files[0].sha256 in told[1]


def test_the_simulated_user_and_its_reasons(show: Callable[..., Any], desk: Any) -> None:
    trial = desk.dialogue(reached=False)
    trial.simulated_user = SimulatedUser(
        persona="a consultant in a hurry",
        goal="file the hotel bill",
        turns=[SimulatedTurn(turn=number, reasoning=f"reason {number}") for number in (1, 2, 3)],
    )
    trial.simulated_user.turns.append(SimulatedTurn(turn=4, reasoning="enough", goal_achieved=True))
    missed = next(one for one in trial.verdicts if not one.passed)
    missed.parts = [Verdict(type="contains", outcome="failed", message="expected EXP-, found Noted.", where="turn 3")]
    page = show(trial)
    expect(page.locator(".who-part")).to_contain_text("a consultant in a hurry")
    expect(page.locator(".who-part")).to_contain_text("file the hotel bill")
    expect(page.locator(".is-user .reasoning")).to_have_text(["Why: reason 1", "Why: reason 2", "Why: reason 3"])
    expect(page.locator(".talk .note").last).to_have_text("The simulated user has what it wanted: enough")
    expect(page.locator(".verdict-item", has_text="files").first).to_contain_text("expected EXP-, found Noted.")


def test_an_agent_that_gave_no_answer_has_no_empty_bubble(show: Callable[..., Any], desk: Any) -> None:
    trial = desk.plain("x", "", status="error", error="agent error: KeyError: 'amount'", blame="agent", verdicts=[])
    trial.transcript = Transcript(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}])
    page = show(trial)
    expect(page.locator(".talk .note")).to_have_text("No answer came.")
    expect(page.locator(".talk .is-user .label")).to_have_count(0)
    assert page.locator(".is-assistant").count() == 0


def test_an_empty_answer_is_called_so(show: Callable[..., Any], desk: Any) -> None:
    page = show(desk.plain("x", ""))
    expect(page.locator(".is-assistant")).to_contain_text("an empty text")


def test_what_the_case_itself_says_of_its_user(show: Callable[..., Any], desk: Any) -> None:
    page = show(desk.plain("x", "y"), user="ada", team="travel", metadata={"plan": "gold"})
    expect(page.locator(".who-part")).to_contain_text("ada")
    expect(page.locator(".who-part")).to_contain_text("travel")
    page.locator(".who-part summary").click()
    expect(page.locator(".who-part .text")).to_contain_text('"plan": "gold"')


def test_a_missing_tool_call_is_compared_with_the_nearest(show: Callable[..., Any], desk: Any) -> None:
    verdict = Verdict(
        type="tool_called",
        outcome="failed",
        message="expected a call",
        expected={"name": "search", "arguments": {"q": "a long question", "deep": True}},
        found=[{"x": 1}, {"q": "a long question", "deep": False, "more": 3}],
    )
    page = show(desk.plain("x", "y", verdicts=[verdict], status="failed", error="expected a call"))
    expect(page.locator(".versus del")).to_have_text(["true"])
    expect(page.locator(".versus ins")).to_have_text(["false"])


def test_unlike_reasons_are_told_apart(
    tmp_path: Path, watched: Any, write_report: Callable[..., Path], make_case: Any, desk: Any
) -> None:
    def case(name: str, why: str) -> Any:
        return make_case(name, desk.plain("x", "y", status="failed", error=why, verdicts=[]))

    contains = 'expected the output to contain "{}", found "{}"'.format
    cases = [
        case("a", contains("Section 99", "one")),
        case("b", contains("42 EUR", "two")),
        case("c", contains("42 EUR", "three")),
        case("d", "timeout after 30s"),
        case("e", "timeout after 31s"),
        case("f", "timeout after 32s"),
    ]
    page = watched.open(write_report(tmp_path / "report.html", cases))
    assert [text.split() for text in page.locator(".why .cases").all_inner_texts()] == [
        ["d", "e", "f"],
        ["b", "c"],
        ["a"],
    ]


def test_runs_and_scores_are_told_as_they_are(
    tmp_path: Path, watched: Any, write_report: Callable[..., Path], make_case: Any, desk: Any
) -> None:
    six = make_case("six", *[desk.plain("x", "y", run=run) for run in range(1, 7)])
    low = make_case("low", desk.plain("x", "y"), reason="score 60 is below min_score 80", min_score=80.0)
    low.status = "failed"
    about = {"commit": "0123abc", "python": "3.11.7", "options": {"assessor": "house.judge", "simulator": "house.user"}}
    page = watched.open(write_report(tmp_path / "report.html", [six, low], **about))
    expect(page.locator(".verdict .about")).to_contain_text("up to 6 runs each")
    expect(page.locator(".figures")).to_contain_text("1 case below min_score")
    watched.go("view=run")
    facts = page.locator(".pairs").first.inner_text()
    for part in (
        "up to 6 runs each",
        "0123abc",
        "3.11.7",
        "house.judge",
        "house.user",
        "atp test -i tests/travel.jsonl",
    ):
        assert part in facts
