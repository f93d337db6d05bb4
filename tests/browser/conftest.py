"""Reports to look at in a real browser: Debian's own Chromium, driven by Playwright."""

import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route, expect, sync_playwright
from tests.browser.reading import rendered
from tests.parts import missing
from tests.waiting import WAIT_LIMIT

from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.html.report import HtmlReport
from atp.stats.stability import case_status
from atp.stats.summary import Summary
from atp.suite.case import Case
from atp.suite.result import (
    Artifact,
    CaseResult,
    CheckpointResult,
    Event,
    ToolCall,
    Transcript,
    TrialResult,
    Turn,
    Usage,
    Verdict,
)

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=WAIT_LIMIT * 1000)
SHOTS = Path(__file__).parents[2] / ".artifacts"
"""Where screenshots are kept for CI, and for whoever wants to look."""


def _chromium() -> str:
    found = os.environ.get("ATP_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None or not Path(found).exists():
        missing("Chromium is not installed: tools/chromium.sh does it")
    return found


@pytest.fixture(scope="module")  # not longer: as long as it is there, Playwright's event loop counts as running
def browser() -> Iterator[Browser]:
    path = _chromium()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page, and everything that must not happen in it."""

    def __init__(self, context: BrowserContext) -> None:
        self.trouble: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        context.on("page", lambda page: self.trouble.append(f"opened {page.url}"))
        context.route("**/*", self._route)

    def open(self, file: Path, hash_: str = "") -> Page:
        """Open a report from the disk and wait until it is drawn."""
        self.page.goto(f"{file.as_uri()}{hash_}")
        return rendered(self.page)

    def go(self, hash_: str) -> None:
        """Go to another place in the report, and wait until it is drawn."""
        self.page.evaluate("(place) => { location.hash = place }", hash_)
        rendered(self.page)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(message.text)

    def _dialog(self, dialog: Any) -> None:
        self.trouble.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _route(self, route: Route) -> None:
        if route.request.url.startswith("file:") and route.request.is_navigation_request():
            route.continue_()
        else:
            self.trouble.append(f"request {route.request.url}")
            route.abort()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True)
    context.set_default_timeout(WAIT_LIMIT * 1000)
    made = Watched(context)
    yield made
    context.close()
    assert made.trouble == []


@pytest.fixture
def artifacts() -> Path:
    """The folder for what CI keeps."""
    SHOTS.mkdir(exist_ok=True)
    return SHOTS


@pytest.fixture
def shoot(artifacts: Path) -> Callable[..., None]:
    """Keeps a screenshot of the page."""

    def take(page: Page, name: str, **how: Any) -> None:
        page.screenshot(path=str(artifacts / f"{name}.png"), **how)

    return take


def write(path: Path, told: Sequence[CaseResult], secrets: Sequence[str] = (), **about: Any) -> Path:
    """The report of a run with these cases."""
    summary = Summary()
    for one in told:
        summary.add_case(one)
    left_out = about.pop("left_out", ())
    reason = about.pop("reason", None)
    standard: dict[str, Any] = {
        "id": "20261116-093000-4c1d9ae",
        "folder": "/home/ada/travel/.atp/runs/20261116-093000-4c1d9ae",
        "input": ["tests/travel.jsonl"],
        "identity": ["/home/ada/travel/tests/travel.jsonl"],
        "agents": list(dict.fromkeys(one.agent for one in told)),
        "cases": len(told),
        "trials": sum(len(one.trials) for one in told),
        "runs": max((trial.run for one in told for trial in one.trials), default=1),
        "at": 1794821400.0,
        "version": "0.1.0",
        "environment": {"user": "test-user", "team": "test-team", "locale": "en-us"},
        "connector": "deepseek.v3",
        "parallel": 4,
    }
    standard["options"] = {"name": standard["agents"], "connector": standard["connector"]}
    info = RunInfo(**standard | about)
    report = HtmlReport(path, secrets)
    report.start(info)
    for case in left_out:
        summary.add_skipped()
        report.skipped(info.input[0], case)
    for one in told:
        report.case(one)
    took = sum(trial.duration_ms for one in told for trial in one.trials) / 4
    end = RunEnd(
        info=info,
        counts=summary.counts(),
        ended_at=info.started_at + took / 1000,
        duration_ms=took,
        reason=reason,
        exit_code=summary.exit_code(stopped=reason is not None),
    )
    report.end(end)
    assert list(report.problems) == []
    return path


def talk(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def case(ident: str, *trials: TrialResult, **given: Any) -> CaseResult:
    rate = given.get("required_rate")
    standard: dict[str, Any] = {
        "agent": trials[0].agent,
        "case": ident,
        "file": "tests/travel.jsonl",
        "status": case_status(trials, rate),
        "trials": list(trials),
    }
    for trial in trials:
        trial.case = ident
    return CaseResult(**standard | given)


HOTEL = (
    "I looked at three hotels near the congress centre. The **Hotel Aurora** is the cheapest at 142 EUR a night, "
    "but it is a 25 minute walk away. The Grand Park costs 189 EUR and is next door.\n\n"
    "Your limit is 150 EUR, so I would take the Aurora. Shall I book it?"
)


class Desk:
    """A travel desk's tests: what comes of them, with some luck, is always the same."""

    def __init__(self, seed: int = 7) -> None:
        self.luck = random.Random(seed)

    def took(self, middle: float) -> float:
        return round(self.luck.lognormvariate(0, 0.35) * middle, 3)

    def plain(self, question: str, answer: str, agent: str = "travel-desk", **given: Any) -> TrialResult:
        took = self.took(1400)
        tokens = self.luck.randint(300, 900)
        standard: dict[str, Any] = {
            "key": f"{self.luck.getrandbits(128):032x}-0-1",
            "agent": agent,
            "case": "c",
            "duration_ms": took,
            "started_at": 1794821400.0 + self.luck.random() * 60,
            "transcript": Transcript(
                messages=talk(question, answer),
                turns=[Turn(turn=1, input=question, output=answer, duration_ms=took * 0.96)],
                usage=Usage(input_tokens=tokens, output_tokens=tokens // 4, cost_usd=tokens * 4e-6),
            ),
            "score": 100.0,
            "dimensions": {"completeness": 1.0},
            "left_out": {"quality": "no judged or behavioural checks", "cost": "no budget_usd or max_tokens"},
            "verdicts": [Verdict(type="contains", outcome="passed", expected=answer[:12], message="the output fits")],
        }
        return TrialResult(**standard | given)

    def wrong_total(self, run: int = 1, agent: str = "travel-desk") -> TrialResult:
        """Expected against found, a judge's quotation, tool calls and events: all that a failure can show."""
        question = "What did my trip to Lisbon cost in total? Answer with JSON."
        answer = '{"trip": "Lisbon", "currency": "EUR", "nights": 3, "total": 612.4, "paid": true}'
        events = [
            Event(type="reasoning", payload={"thought": "First find the trip, then add up its receipts."}, at_ms=120.5),
            Event(type="tool_call", payload={"tool": "find_trip", "input": {"city": "Lisbon"}}, at_ms=340.2),
            Event(
                type="llm_request",
                payload={"model": "deepseek-v3", "input_tokens": 812, "output_tokens": 64, "duration_ms": 880},
                at_ms=1290.0,
            ),
            Event(type="tool_call", payload={"tool": "list_receipts", "input": {"trip": "T-204"}}, at_ms=1420.7),
            Event(type="tool_call", payload={"tool": "convert", "input": {}, "status": "error"}, at_ms=1600.1),
            Event(
                type="error",
                payload={"error_type": "RateError", "message": "no rate for 2026-11-14", "recoverable": True},
                at_ms=1604.9,
            ),
        ]
        calls = [
            ToolCall(name="find_trip", arguments={"city": "Lisbon"}, result={"id": "T-204"}, duration_ms=42.0),
            ToolCall(
                name="list_receipts",
                arguments={"trip": "T-204"},
                result=[
                    {"what": "hotel", "amount": 426.0, "currency": "EUR"},
                    {"what": "taxi", "amount": 38.4, "currency": "EUR"},
                    {"what": "dinner", "amount": 148.0, "currency": "EUR"},
                ],
                duration_ms=63.5,
            ),
            ToolCall(name="convert", arguments={"from": "USD", "amount": 20}, error="no rate for 2026-11-14"),
        ]
        expected = {"trip": "Lisbon", "currency": "EUR", "nights": 3, "total": 630.9, "paid": False}
        wrong = Verdict(
            type="equals",
            outcome="failed",
            message="expected the output to be equal, found a difference at $.total and $.paid",
            expected=expected,
            found={"trip": "Lisbon", "currency": "EUR", "nights": 3, "total": 612.4, "paid": True},
            where="output",
            critical=True,
        )
        judged = Verdict(
            type="expectation",
            name="The answer mentions that a receipt could not be converted",
            outcome="failed",
            judged=True,
            message="The conversion failed and the agent left the amount out without a word.",
            evidence=["no rate for 2026-11-14", '"total": 612.4'],
            score=0.2,
        )
        fine = Verdict(
            type="tool_called",
            name="list_receipts",
            outcome="passed",
            message="`list_receipts` was called once",
            where="tool call 2 (turn 1)",
        )
        took = self.took(2600)
        return TrialResult(
            key="9d1c4e4d7aa14d1bb0c2-0-1",
            agent=agent,
            case="lisbon-total",
            run=run,
            status="failed",
            error=wrong.message,
            verdicts=[fine, wrong, judged],
            duration_ms=took,
            started_at=1794821403.0,
            score=0.0,
            dimensions={"quality": 0.2, "completeness": 0.33, "efficiency": 0.63},
            left_out={"cost": "no budget_usd or max_tokens"},
            role_usage=Usage(input_tokens=1930, output_tokens=210, cost_usd=0.0061),
            attempt=2,
            retries=["HTTP 503 from the model's server"],
            warnings=["the agent reported 3 steps, its events show 4"],
            transcript=Transcript(
                messages=talk(question, answer),
                turns=[Turn(turn=1, input=question, output=answer, duration_ms=took * 0.7)],
                tool_calls=calls,
                events=events,
                artifacts=[
                    Artifact(
                        name="receipts.csv",
                        text="what,amount,currency\nhotel,426.00,EUR\ntaxi,38.40,EUR\ndinner,148.00,EUR\n",
                        content_type="text/csv",
                        size_bytes=72,
                        sha256="ab" * 32,
                    ),
                    Artifact(name="map.png", base64="iVBORw0KGgo=", content_type="image/png", size_bytes=48211),
                ],
                usage=Usage(input_tokens=812, output_tokens=64, total_tokens=876, steps=3, cost_usd=0.0035),
                logs=["warming up", "loaded 214 receipts", "rates: cache miss for 2026-11-14"],
            ),
        )

    def dialogue(self, run: int = 1, reached: bool = True) -> TrialResult:
        lines = ["I was in Vienna last week.", "Welcome back. What did you pay for?", "A hotel, 310 euros."]
        lines += ["I have filed 310 EUR for a hotel in Vienna." if reached else "Noted.", "What is the reference?"]
        lines += ["The reference is EXP-2026-081." if reached else "I don’t have one."]
        points = [
            CheckpointResult(id="asks", reached_at_turn=1),
            CheckpointResult(id="files", reached_at_turn=2 if reached else None),
            CheckpointResult(id="reference", reached_at_turn=3 if reached else None),
            CheckpointResult(id="thanks", required=False),
        ]
        missing = [one.id for one in points if one.required and not one.passed]
        error = None if reached else f"missing checkpoints: {', '.join(missing)}"
        verdicts = [
            Verdict(
                type="checkpoint",
                name=one.id,
                outcome="passed" if one.passed else "failed",
                message="" if one.passed else f"checkpoint `{one.id}` was not reached",
            )
            for one in points
            if one.required
        ]
        turns = [
            Turn(turn=n + 1, input=lines[2 * n], output=lines[2 * n + 1], duration_ms=self.took(700)) for n in range(3)
        ]
        took = sum(turn.duration_ms for turn in turns)
        filed = ToolCall(
            name="create_expense", arguments={"amount": 310, "city": "Vienna"}, result="EXP-2026-081", turn=2
        )
        return TrialResult(
            key="77aa",
            agent="travel-desk",
            case="trip",
            run=run,
            status="passed" if reached else "failed",
            error=error,
            verdicts=verdicts,
            checkpoints=points,
            duration_ms=took * 1.4,
            role_usage=Usage(input_tokens=700, output_tokens=90, cost_usd=0.002),
            transcript=Transcript(messages=talk(*lines), turns=turns, tool_calls=[filed] if reached else []),
        )


QUESTIONS = [
    ("limit-hotel", "What may a hotel in Lisbon cost?", "Up to 150 EUR a night.", ["policy"]),
    ("limit-meal", "And dinner?", "Dinner is covered up to 45 EUR.", ["policy"]),
    ("train-first", "May I take first class?", "Yes, on journeys of more than three hours.", ["policy", "smoke"]),
    ("greeting", "Hello", "Hello, how can I help with your trip?", ["smoke"]),
    ("hotel-choice", "Find me a hotel near the congress centre.", HOTEL, ["booking"]),
    ("visa", "Do I need a visa for Japan?", "Not for stays of up to 90 days.", ["policy"]),
    ("receipt-lost", "I lost a receipt.", "Then fill in form R-7 and let your manager sign it.", ["receipts"]),
    ("mileage", "What do I get for my own car?", "0.30 EUR a kilometre.", ["policy", "smoke"]),
    ("cancel", "Cancel my flight on Friday.", "Flight LX 1952 on Friday is cancelled.", ["booking"]),
    ("arabic", "ما هي تكلفة الفندق؟", "يكلف الفندق 142 يورو في الليلة.", ["languages"]),
]


def repeated_cases(runs: int = 5) -> list[CaseResult]:
    """A run with everything in it that there is to see."""
    desk = Desk()
    made = [case("lisbon-total", *[desk.wrong_total(run) for run in range(1, runs + 1)], name="Adds up a whole trip")]
    made[0].tags, made[0].line = ["receipts", "smoke"], 3
    made[0].input = "What did my trip to Lisbon cost in total? Answer with JSON."
    made[0].expected = {"trip": "Lisbon", "currency": "EUR", "nights": 3, "total": 630.9, "paid": False}
    for number, (ident, question, answer, tags) in enumerate(QUESTIONS):
        trials = [desk.plain(question, answer, run=run) for run in range(1, runs + 1)]
        if ident in ("hotel-choice", "cancel"):
            for trial in trials[: 1 if ident == "cancel" else 3]:
                message = 'expected the output to contain "EUR 142", found "142 EUR a night"'
                verdict = Verdict(
                    type="contains", outcome="failed", message=message, expected="EUR 142", found=HOTEL, where="output"
                )
                trial.status, trial.error, trial.score = "failed", message, 40.0
                trial.verdicts = [verdict]
        made.append(case(ident, *trials, tags=tags, line=10 + number, input=question, index=number + 1))
    made.append(case("trip", *[desk.dialogue(run, run != 2) for run in range(1, runs + 1)], required_rate=0.6))
    made[-1].name, made[-1].tags = "A whole trip, told bit by bit", ["dialogue"]
    for ident, why, blame in [
        ("rates-today", "cannot connect to rates.example: connection refused", "environment"),
        ("rates-weekend", "cannot connect to rates.example: connection refused", "environment"),
        ("tone", "the judge's answer can't be used: it is not a JSON object", "judge"),
        ("crash", "agent error: KeyError: 'amount'", "agent"),
    ]:
        trials = [
            desk.plain("…", "", run=run, status="error", error=why, blame=blame, verdicts=[], score=None, dimensions={})
            for run in range(1, runs + 1)
        ]
        for trial in trials:
            trial.transcript = Transcript(messages=talk("What is the dollar worth today?"))
            trial.left_out = {}
        made.append(case(ident, *trials, tags=["rates"]))
    slow = [
        desk.plain("Plan a trip around the world.", "", run=run, status="timeout", error="timeout after 30s")
        for run in range(1, runs + 1)
    ]
    for trial in slow:
        trial.duration_ms, trial.verdicts, trial.score = 30_004.2, [], None
        trial.transcript = Transcript(messages=talk("Plan a trip around the world."))
    made.append(case("around-the-world", *slow, tags=["booking"]))
    blocked = desk.plain("…", "", status="blocked", error="case `crash` did not pass", verdicts=[], score=None)
    blocked.transcript = Transcript()
    made.append(case("after-crash", blocked))
    for number, one in enumerate(made):
        one.index = number
    return made


def single_cases() -> list[CaseResult]:
    """One trial a case, most of them well, two variations and befores among them."""
    desk = Desk(3)
    made = [case(ident, desk.plain(q, a), tags=tags, input=q) for ident, q, a, tags in QUESTIONS]
    made.append(case("lisbon-total", desk.wrong_total(), tags=["receipts"], name="Adds up a whole trip"))
    later = desk.plain("And what about the taxi?", "The taxi was 38.40 EUR.")
    later.transcript.messages = [*talk("What did I pay?", "426 EUR for the hotel."), *later.transcript.messages]
    later.transcript.inherited = 2
    made.append(case("after-hotel", later, name="Goes on from another case"))
    variations = [
        desk.plain(f"{words} my flight", "It is cancelled.", variation=number, origin=origin)
        for number, (words, origin) in enumerate([("Cancel", "listed"), ("Please drop", "generated")])
    ]
    made.append(case("two-ways", *variations, name="Understands other words"))
    for number, one in enumerate(made):
        one.index = number
    return made


def agent_cases() -> list[CaseResult]:
    """Three agents with the same cases."""
    made = []
    for seed, agent in enumerate(["travel-desk", "travel-desk-mini", "gpt-travel"]):
        desk = Desk(seed)
        for index, (ident, question, answer, tags) in enumerate(QUESTIONS):
            trial = desk.plain(question, answer, agent)
            if (index + seed) % (6 - seed * 2) == 0:
                message = f"expected the output to contain {answer[:10]!r}"
                trial.status, trial.error, trial.score = "failed", message, 0.0
                trial.verdicts = [Verdict(type="contains", outcome="failed", message=message, expected=answer[:10])]
                trial.transcript.turns[0].output = "I can’t help with that."
            made.append(case(ident, trial, tags=tags, index=index))
        made.append(case("lisbon-total", desk.wrong_total(agent=agent), index=len(QUESTIONS)))
    return made


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports that most tests look at, each written once."""
    folder = tmp_path_factory.mktemp("reports")
    skipped = [Case.model_validate({"id": "later", "input": "hi", "skip": True, "tags": ["policy"]})]
    return {
        "repeated": write(folder / "repeated.html", repeated_cases(), left_out=skipped),
        "single": write(folder / "single.html", single_cases(), connector=None),
        "agents": write(folder / "agents.html", agent_cases()),
        "passed": write(folder / "passed.html", [case(i, Desk().plain(q, a)) for i, q, a, _ in QUESTIONS]),
        "stopped": write(
            folder / "stopped.html", single_cases()[:4], reason="the budget of $0.50 is used up", cases=40
        ),
        "empty": write(folder / "empty.html", []),
    }


@pytest.fixture(scope="session")
def write_report() -> Callable[..., Path]:
    """Writes the report of a run with the cases given."""
    return write


@pytest.fixture(scope="session")
def make_case() -> Callable[..., CaseResult]:
    """Makes a case of trials."""
    return case


@pytest.fixture
def desk() -> Desk:
    return Desk()
