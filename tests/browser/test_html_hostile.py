"""What an agent says is data in the HTML report, whatever it looks like: nothing of it runs, leaves or breaks it."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from atp.suite.case import Case
from atp.suite.result import (
    Artifact,
    Asker,
    CaseResult,
    CheckpointResult,
    Event,
    ModelCall,
    SimulatedTurn,
    SimulatedUser,
    ToolCall,
    Transcript,
    TrialResult,
    Turn,
    Usage,
    Verdict,
)

RUN = "window.hacked = 1; alert(1)"
NASTY = {
    "script": f"<script>{RUN}</script>",
    "closing": f"</script></style></title></noscript><script>{RUN}</script>",
    "image": f'"><img src="https://evil.example/x" onerror="{RUN}">',
    "svg": f"'><svg/onload='{RUN}'><a xlink:href=\"javascript:{RUN}\">x</a></svg>",
    "address": f"javascript:{RUN}",
    "comment": f"--><!-- ]]> <![CDATA[ <script>{RUN}</script>",
    "escapes": "\x1b[2J\x1b]0;owned\x07 \x00\x08\x7f\x9b31m",
    "bidi": "\u202eevil\u2066 abc \u2028 \u2029 \u200b \ufeff",
    "surrogate": "half \ud83d a pair",
    "formula": '=HYPERLINK("https://evil.example";"x")',
    "proto": "__proto__",
    "template": "{{ 7*7 }} ${7*7} <%= 7*7 %> <!-- data --> /* script */",
    "style": "</style><style>body{background:url(https://evil.example/)}</style>",
}


def hostile(x: str, ident: str) -> CaseResult:
    """A case with the text in every field that can hold one."""
    verdict = Verdict(
        type=x, outcome="failed", message=x, expected={x: x}, found=[x], where=x, name=x, judged=True, evidence=[x]
    )
    verdict.parts = [Verdict(type="any_of", outcome="unjudged", message=x, expected=x, found=f"{x}!")]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": x, "name": x, x: x},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": x, "arguments": x}}]},
        {"role": "tool", "content": x, "tool_call_id": x},
        {"role": x, "content": [{"type": "text", "text": x}, {"type": x, "source": x}]},
        {"role": "assistant", "content": x},
    ]
    events = [
        Event(type=kind, payload={"thought": x, "message": x, "model": x, "content": x, "error_type": x, x: x})
        for kind in ("reasoning", "error", "llm_request", "progress", "message", x)
    ]
    trial = TrialResult(
        key=x,
        agent=x,
        case=ident,
        status="failed",
        error=f"{x}!",
        verdicts=[verdict],
        checkpoints=[
            CheckpointResult(id=x, description=x, after=[x], assertion={"type": x, x: x}),
            CheckpointResult(id=x, reached_at_turn=1),
        ],
        simulated_user=SimulatedUser(persona=x, goal=x, turns=[SimulatedTurn(turn=1, reasoning=x)]),
        model_calls=[
            ModelCall(
                role=role,
                connector=x,
                model=x,
                retries=[x],
                error=error,
                request={"system": x, "messages": [{"role": x, "content": x, "tool_calls": [x]}], "tools": [x], x: x},
                answer={"content": [{"type": "text", "text": x}], x: dict.fromkeys(map(str, range(20)), x)},
            )
            for role in get_args(Asker)
            for error in (None, x)
        ],
        score=12.0,
        dimensions={x: 0.5},
        left_out={x: x},
        transcript=Transcript(
            messages=messages,
            turns=[Turn(turn=1, input=x, output={x: x}, duration_ms=3)],
            tool_calls=[ToolCall(name=x, arguments={x: x}, result=x), ToolCall(name=x, error=x, turn=9)],
            events=events,
            artifacts=[
                Artifact(name=x, text=x, content_type=x, sha256=x, size_bytes=1),
                Artifact(name=x, kind="structured", data={x: x}),
                Artifact(name=x, kind="structured", data={x: {f"{x}{place}": [x] for place in range(30)}}),
                Artifact(name=x, base64="PHN2Zy8+", content_type="image/svg+xml"),
            ],
            usage=Usage(cost_usd=0.1),
            logs=[x],
        ),
        retries=[x],
        warnings=[x],
        workspace=x,
        duration_ms=5,
    )
    made = CaseResult(agent=x, case=ident, name=f"{x}.", file=x, tags=[x], input=x, expected={x: [x]}, status="failed")
    made.trials = [trial, trial]
    return made


def about(text: str) -> dict[str, Any]:
    """A run with the text in every field."""
    return {
        "folder": text,
        "input": [text],
        "agents": [text, "b"],
        "connector": text,
        "notes": (text,),
        "environment": {"user": text, text: text},
        "reason": text,
    }


def unfold(page: Page) -> None:
    """Open everything that opens, and what is made by that."""
    page.evaluate("""async () => {
        for (let closed; (closed = document.querySelectorAll("details:not([open])")).length; ) {
            closed.forEach((one) => { one.open = true });
            await new Promise((done) => setTimeout(done)); // `toggle` comes later
        }
    }""")


def look_everywhere(watched: Any) -> None:
    """Open every view and everything that opens."""
    page = watched.page
    for view in ("", "view=stability", "view=agents", "view=run", "case=nasty", "case=nasty&trial=1.1"):
        watched.go(view)
        unfold(page)
        for quote in page.locator("button.quote:enabled").all():
            quote.click()
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("name", NASTY)
def test_every_field(tmp_path: Path, watched: Any, write_report: Callable[..., Path], name: str) -> None:
    text = NASTY[name]
    skipped = [Case.model_construct(id=text, name=text, tags=[text])]
    path = tmp_path / "report.html"
    write_report(path, [hostile(text, text), hostile(text, "nasty")], left_out=skipped, **about(text))
    assert f"<script>{RUN}" not in path.read_text(encoding="utf-8")
    page = watched.open(path)
    look_everywhere(watched)
    expect(page.locator(".case-head h1")).to_contain_text("nasty")
    assert page.locator("main script, main img, main iframe, main style, main [onerror], main [onload]").count() == 0
    shown = page.locator("main").inner_text()
    if name in ("script", "closing", "image", "svg", "style", "template"):
        assert text in shown  # as it is, as text
    if name == "escapes":
        assert "␛[2J␛]0;owned␇ ␀␈␡⟨009B⟩31m" in shown
    if name == "bidi":
        assert "⟨202E⟩evil⟨2066⟩ abc" in shown
    hidden = set("\x00\x07\x08\x1b\x7f\x9b\u202e\u2066\u200b\u2028")
    assert not hidden & set(shown)
    watched.go(urlencode({"case": text.replace("\ud83d", "\ufffd")}))
    expect(page.locator(".case-view")).to_be_visible()


def test_export_of_hostile_output(tmp_path: Path, watched: Any, write_report: Callable[..., Path]) -> None:
    cases = [hostile(text, f"{number}") for number, text in enumerate(NASTY.values())]
    page = watched.open(write_report(tmp_path / "report.html", cases))
    for choice, ending in (("JSON", ".json"), ("CSV", ".csv")):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=choice).click()
        assert download.value.suggested_filename == f"atp-20261116-093000-4c1d9ae{ending}"
        text = download.value.path().read_text(encoding="utf-8")
        if choice == "JSON":
            results = json.loads(text)["results"]
            assert results[0]["trials"][0]["transcript"]["logs"] == [NASTY["script"]]
            continue
        rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))
        assert len(rows) == len(NASTY) + 1
        assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in tuple("=+-@")]
        assert any(cell.startswith("'=HYPERLINK") for row in rows for cell in row)


def test_a_line_of_5_mb(tmp_path: Path, watched: Any, write_report: Callable[..., Path], make_case: Any) -> None:
    line = "x<b>" * 1_250_000
    huge = TrialResult(
        key="k",
        agent="a",
        case="huge",
        status="failed",
        error=line,
        verdicts=[Verdict(type="equals", outcome="failed", message=line, expected=line, found=line, evidence=[line])],
        transcript=Transcript(
            messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": line}],
            turns=[Turn(turn=1, input="hi", output=line)],
            tool_calls=[ToolCall(name=line, arguments=line, result={"a": [line]})],
            logs=[line, "last"],
        ),
    )
    path = write_report(tmp_path / "report.html", [make_case("huge", huge)])
    page = watched.open(path)
    expect(page.locator("tr.row")).to_have_count(1)
    page.locator("tr.row a.open").click()
    answer = page.locator(".message.is-assistant")
    assert len(answer.inner_text()) < 5000
    answer.get_by_role("button", name="Show 200,000 of").click()
    assert len(answer.locator(".text").inner_text()) > 200_000
    assert page.evaluate("document.body.innerText.length") < 500_000


def test_values_of_any_shape(tmp_path: Path, watched: Any, write_report: Callable[..., Path], make_case: Any) -> None:
    """Agents write messages, arguments and payloads as they like: each is shown somehow, and the page stays whole."""
    deep: Any = "bottom"
    for _ in range(150):
        deep = [deep]
    odd = [None, True, 0, -1.5, 2**70, "", [], {}, [[]], {"a": None}, [1, "x", None], deep, {"length": 3, "type": 5}]
    cases = []
    for number, value in enumerate(odd):
        messages = [
            {"role": "user", "content": value},
            {"role": "assistant", "content": value, "tool_calls": value},
            {"role": value, "content": [value, {"type": "text", "text": value}]},
            {},
        ]
        trial = TrialResult(
            key="k",
            agent="a",
            case="c",
            status="failed",
            verdicts=[
                Verdict(type="equals", outcome="failed", expected=value, found=odd[number - 1]),
                Verdict(type="equals", outcome="failed", expected=odd[number - 1], found=value, name=""),
            ],
            transcript=Transcript(
                messages=messages,
                turns=[Turn(turn=1, input=value, output=value)],
                tool_calls=[ToolCall(name="t", arguments=value, result=value)],
                events=[
                    Event(type=kind, payload={"thought": value, "percentage": value, "duration_ms": value})
                    for kind in ("reasoning", "progress", "llm_request", "unknown")
                ],
                artifacts=[Artifact(name="a", kind="structured", data=value)],
            ),
        )
        cases.append(make_case(f"c{number}", trial, input=value, expected=value))
    page = watched.open(write_report(tmp_path / "report.html", cases))
    for number, value in enumerate(odd):
        watched.go(f"case=c{number}")
        expect(page.locator(".case-head h1")).to_contain_text(f"c{number}")
        expect(page.locator(".talk .turn")).to_have_count(1)
        assert "could not be shown" not in page.locator("main").inner_text()
        if value == 2**70:
            expect(page.locator(".talk")).to_contain_text(str(2**70))  # not rounded


def test_secrets_are_masked(tmp_path: Path, watched: Any, write_report: Callable[..., Path]) -> None:
    secret = 's3cr3t-é"\\\n-key'
    text = f"the key is {secret}."
    case = hostile(text, "nasty")
    for trial in case.trials:
        trial.verdicts[0].type, trial.transcript.events[-1].type = "equals", "progress"  # words of ours, not of agents
    path = write_report(tmp_path / "report.html", [case], [secret, "failed"], **about(text))
    page = watched.open(path)
    for view in ("", "view=run", "case=nasty"):
        watched.go(view)
        unfold(page)
        shown = page.locator("main").inner_text()
        assert "s3cr3t" not in shown
        assert "***" in shown
    assert "s3cr3t" not in path.read_text(encoding="utf-8")
    expect(page.locator(".case-head .word")).to_have_text("failed")  # a word of ours, whoever else uses it
