"""What happened inside of a trial, as the HTML report shows it: time, model calls, JSON, quotations, checkpoints."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.test_html_talk import picture

from atp.suite.result import (
    Artifact,
    CheckpointResult,
    Event,
    ModelCall,
    SimulatedTurn,
    SimulatedUser,
    ToolCall,
    Usage,
    Verdict,
)

LONG = {"rows": [{"id": number, "name": f"row {number}"} for number in range(150)], "total": 612.4}


@pytest.fixture
def show(tmp_path: Path, watched: Any, write_report: Callable[..., Path], make_case: Any) -> Callable[..., Any]:
    """Opens the report of a case with one trial, at that case."""

    def open_case(trial: Any, **about: Any) -> Any:
        path = write_report(tmp_path / "report.html", [make_case("c", trial)], **about)
        return watched.open(path, "#case=c")

    return open_case


def chat(*messages: tuple[str, str]) -> dict[str, Any]:
    said = [{"role": role, "content": text} for role, text in messages]
    return {"model": "deep-1", "temperature": 0, "messages": said, "tools": [{"function": {"name": "tide"}}]}


def answer(text: str) -> dict[str, Any]:
    return {"id": "chatcmpl-7", "choices": [{"message": {"role": "assistant", "content": text}}]}


@pytest.fixture
def asked(desk: Any) -> Any:
    """A trial with two model calls, a tool call between them, and a judge."""
    trial = desk.plain("Tide?", "High in Bree.")
    trial.transcript.messages[1:1] = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "tide", "arguments": '{"place": "Bree"}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "high"},
    ]
    trial.transcript.tool_calls = [ToolCall(name="tide", arguments={"place": "Bree"}, result="high", duration_ms=40)]
    model = {"model": "deep-1", "input_tokens": 12, "output_tokens": 3, "duration_ms": 290}
    trial.transcript.events = [
        Event(type="llm_request", payload=model | {"cost_usd": 0.004}, at_ms=301),
        Event(type="tool_call", payload={"tool": "tide", "input": {}, "duration_ms": 40}, at_ms=350),
        Event(type="llm_request", payload=model, at_ms=900),
    ]
    trial.model_calls = [
        ModelCall(
            connector="c",
            model="deep-1",
            at_ms=10,
            duration_ms=290,
            request=chat(("system", "You know **the sea**."), ("user", "Tide?")),
            answer=answer(""),
        ),
        ModelCall(
            connector="c",
            model="deep-1",
            at_ms=360,
            duration_ms=539,
            waited_ms=200,
            retries=["HTTP 429: too fast"],
            repeated=2,
            request=chat(("tool", "high")),
            answer=answer("High in Bree."),
        ),
        ModelCall(
            role="judge",
            connector="house.judge",
            model="wise-2",
            at_ms=950,
            duration_ms=200,
            request={"system": "You judge.", "messages": [{"role": "user", "content": "Is it kind?"}]},
            answer={"content": [{"type": "text", "text": "It is."}]},
            usage=Usage(input_tokens=90, output_tokens=9, cost_usd=0.02),
        ),
    ]
    trial.duration_ms = 1400.0
    return trial


def test_model_calls_stand_where_they_were_made(show: Callable[..., Any], asked: Any) -> None:
    page = show(asked)
    steps = page.locator(".talk > .steps > .step")
    assert [text.split("\n")[0].split(" ")[0] for text in steps.all_inner_texts()] == [
        "Turn",
        "User",
        "Model",
        "tide",
        "Model",
        "Agent",
    ]
    first, second = page.locator(".talk .model").all()
    expect(first).to_contain_text("deep-1 · 12 in · 3 out · $0.0040 · 290 ms")
    expect(second).to_contain_text("waited 200 ms")
    expect(second).to_contain_text("tried 2 times")
    assert page.locator(".sent").count() == 0  # made when it is opened
    first.locator("summary").first.click()
    expect(first.locator(".sent").first).to_contain_text("You know **the sea**.")
    expect(first).to_contain_text("1 tool offered")
    second.locator("summary").first.click()
    expect(second).to_contain_text("HTTP 429: too fast")
    expect(second).to_contain_text("2 messages as in the call before, and then:")
    expect(second).to_contain_text("High in Bree.")
    second.get_by_text("the whole answer").click()
    expect(second).to_contain_text("chatcmpl-7")


def test_what_the_judge_was_asked(show: Callable[..., Any], asked: Any) -> None:
    page = show(asked)
    page.get_by_text("What the judge was asked, and said (1 call)").click()
    call = page.locator(".judge-calls .model")
    expect(call).to_contain_text("wise-2 · 90 in · 9 out · $0.020 · 200 ms")
    call.locator("summary").first.click()
    expect(call.locator(".sent")).to_have_text(["systemYou judge.", "userIs it kind?"])
    expect(call).to_contain_text("It is.")
    expect(page.locator(".facts")).to_contain_text("deep-1 (agent), wise-2 (judge)")


def test_the_time_of_a_trial_is_in_lanes(show: Callable[..., Any], asked: Any) -> None:
    page = show(asked, commit="0123abc")
    assert page.locator(".lane-name").all_inner_texts() == ["Agent", "Models", "Tools", "Judge", ""]
    expect(page.locator(".lanes")).to_have_attribute("role", "img")
    expect(page.locator(".timeline figcaption")).to_contain_text("models were waited for 200 ms")
    models = page.locator(".lane", has_text="Models").locator(".span")
    expect(models).to_have_count(2)
    expect(models.nth(1)).to_have_attribute("title", "Model call: 539 ms, at 360 ms")
    boxes = [one.bounding_box() for one in models.all()]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    models.nth(1).click()
    expect(page.locator('[data-step="turn-1"]')).to_be_in_viewport()
    expect(page.locator(".facts")).to_contain_text("0123abc")


def test_a_call_without_an_event_and_an_event_without_a_call(show: Callable[..., Any], asked: Any) -> None:
    asked.model_calls[0].error, asked.model_calls[0].answer = "the answer can't be read", None
    asked.model_calls.insert(1, ModelCall(connector="c", model="deep-1", at_ms=302, duration_ms=10, error="cut off"))
    asked.transcript.events.append(Event(type="llm_request", payload={"model": "own-model"}, at_ms=905))
    page = show(asked)
    calls = page.locator(".talk .model")
    expect(calls).to_have_count(4)
    expect(calls.nth(1)).to_contain_text("cut off")
    expect(calls.nth(3)).to_contain_text("own-model")
    assert calls.nth(3).locator("summary").count() == 0


def test_long_json_is_folded_and_its_source_is_one_switch_away(show: Callable[..., Any], desk: Any) -> None:
    trial = desk.plain("x", json.dumps(LONG))
    trial.transcript.tool_calls = [ToolCall(name="rows", arguments={"small": 1}, result=LONG)]
    page = show(trial)
    tree = page.locator(".is-assistant .tree")
    expect(tree.locator("> details > summary")).to_contain_text("{ rows, total }")
    expect(tree).to_contain_text("[ 150 items ]")
    assert "row 7" not in tree.inner_text()
    tree.locator("summary", has_text="150 items").click()
    expect(tree.locator("summary", has_text="id, name")).to_have_count(100)
    expect(tree).to_contain_text('name: "row 7"')
    tree.get_by_role("button", name="Show 50 of 50 more").click()
    expect(tree).to_contain_text('name: "row 149"')
    page.locator(".is-assistant").get_by_role("button", name="Source").click()
    expect(page.locator(".is-assistant .text")).to_contain_text('{"rows": [{"id": 0')
    page.locator(".call summary").first.click()
    expect(page.locator(".call .tree")).to_have_count(1)  # a few values are not folded
    expect(page.locator(".call .io .text").first).to_contain_text('"small": 1')


def test_numbers_that_javascript_would_round_stay_in_folded_json(show: Callable[..., Any], desk: Any) -> None:
    many = {f"k{number}": number for number in range(20)}
    page = show(desk.plain("x", json.dumps({"big": 12345678901234567890} | many)))
    expect(page.locator(".is-assistant .tree")).to_contain_text("big: 12345678901234567890")


def test_a_quotation_far_down_is_shown_with_what_is_around_it(show: Callable[..., Any], desk: Any) -> None:
    lines = [f"line {number} of a long answer" for number in range(2000)]
    judged = [
        Verdict(type="expectation", name=f"e{number}", outcome="failed", judged=True, evidence=[f"line {number} of"])
        for number in (900, 1500)
    ]
    page = show(desk.plain("x", "\n".join(lines), verdicts=judged, status="failed", error="x"))
    text = page.locator(".is-assistant .text")
    expect(text).to_contain_text("line 905 of")
    assert "line 700 of" not in text.inner_text()
    quote = page.locator("button.quote", has_text="line 1500 of")
    quote.click()
    mark = page.locator("mark", has_text="line 1500 of")
    expect(mark).to_be_in_viewport()
    expect(mark).to_be_focused()
    expect(mark).to_have_class("here")
    mark.click()
    expect(quote).to_be_focused()
    expect(quote).to_be_in_viewport()
    text.get_by_role("button", name="more characters").first.click()
    expect(text).to_contain_text("line 700 of")
    expect(page.locator("mark")).to_have_count(2)


def test_checkpoints_say_what_has_to_hold_and_how_near_it_came(show: Callable[..., Any], desk: Any) -> None:
    trial = desk.dialogue(reached=False)
    trial.simulated_user = SimulatedUser(persona="p", goal="g", turns=[SimulatedTurn(turn=1, reasoning="Because.")])
    trial.checkpoints[1] = CheckpointResult(
        id="files",
        description="files the expense",
        after=["asks"],
        assertion={"type": "tool_called", "name": "create_expense"},
    )
    trial.model_calls = [
        ModelCall(role="simulator", connector="s", model="user-1", turn=2, at_ms=900, duration_ms=30, request={"a": 1})
    ]
    failed = next(one for one in trial.verdicts if one.name == "files")
    held, missed = Verdict(type="contains", outcome="passed"), Verdict(type="contains", outcome="failed")
    failed.parts = [Verdict(type="all_of", outcome="failed", message="half", where="turn 2", parts=[held, missed])]
    page = show(trial)
    check = page.locator(".verdict-item", has_text="files").first
    expect(check).to_contain_text('Has to hold: tool_called name: "create_expense"; after asks')
    expect(check).to_contain_text("It came nearest in turn 2: 1 of 2 held")
    expect(page.locator(".points")).to_contain_text("files the expense")
    texts = page.locator(".talk > .steps > .step").all_inner_texts()
    place = next(number for number, text in enumerate(texts) if text.startswith("Simulator"))
    assert "user-1" in texts[place]
    assert texts[place - 1].startswith("Turn 2")
    assert texts[place + 1].startswith("User")


def test_votes_of_a_judge_are_counted(show: Callable[..., Any], desk: Any) -> None:
    passed = Verdict(type="vote", outcome="passed", judged=True, score=0.9)
    votes = [passed, *(Verdict(type="vote", outcome="failed", judged=True, score=score) for score in (0.2, 0.1))]
    judged = Verdict(type="llm_eval", name="e", outcome="failed", judged=True, message="median", parts=votes)
    page = show(desk.plain("x", "y", verdicts=[judged], status="failed", error="x"))
    expect(page.locator(".nearest")).to_have_text("1 of 3 votes for it")


def test_pictures_and_markdown_that_an_agent_handed_over_are_shown(show: Callable[..., Any], desk: Any) -> None:
    trial = desk.plain("x", "y")
    encoded = base64.b64encode(picture()).decode()
    trial.transcript.artifacts = [
        Artifact(name="dot.png", base64=encoded),
        Artifact(name="bad.png", base64="!!", content_type="image/png"),
        Artifact(name="drawing.svg", base64=base64.b64encode(b"<svg onload='alert(1)'/>").decode()),
        Artifact(name="report.md", text="# Trip\n\n- hotel **426 EUR**"),
        Artifact(name="data.json", kind="structured", data=LONG),
    ]
    page = show(trial)
    expect(page.locator(".artifacts img")).to_have_count(1)
    expect(page.locator(".artifacts img")).to_have_js_property("naturalWidth", 1)
    expect(page.locator(".artifacts")).to_contain_text("drawing.svg not text")
    page.locator(".artifacts summary", has_text="report.md").click()
    expect(page.locator(".artifacts .rich strong")).to_have_text("426 EUR")
    page.locator(".artifacts summary", has_text="data.json").click()
    expect(page.locator(".artifacts .tree")).to_contain_text("[ 150 items ]")
