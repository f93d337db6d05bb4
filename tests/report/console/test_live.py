"""The console on a terminal: colours, a progress line, and nothing of it left at the end."""

import asyncio
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import WAIT_LIMIT, until_async

from atp.report.console.console import ConsoleOptions
from atp.report.console.live import LiveConsole, Progress
from atp.suite.result import CaseResult, Transcript, Usage, Verdict

TERMINAL: dict[str, Any] = {"force_terminal": True, "width": 80, "color_system": "standard", "legacy_windows": False}
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def bare(text: str) -> str:
    return STEERING.sub("", text)


def shown(story: Any, cases: list[CaseResult], verbose: int = 1, **terminal: Any) -> str:
    stream = io.StringIO()
    story.tell([LiveConsole(stream, ConsoleOptions(verbose=verbose), **TERMINAL | terminal)], cases, story.end())
    return stream.getvalue()


def test_the_same_lines_in_colour(story: Any, document: list[CaseResult]) -> None:
    text = shown(story, document)
    assert "\x1b[1;32m✓\x1b[0m [expense-turn1] First turn - ask type (1.2s)" in text
    assert "  Passed:  3\n" in bare(text)


def test_no_color(story: Any, document: list[CaseResult], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown(story, document))


def test_it_fits_into_80_columns(story: Any) -> None:
    case = story.case("c", story.trial(status="failed", error="word " * 50, verdicts=[]), name="long name " * 12)
    lines = bare(shown(story, [case])).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("  word word") for line in lines) >= 3, "what doesn't fit goes on below its beginning"


PARAGRAPH = "The cheapest hotel near the congress centre costs 142 EUR a night, a walk of 25 minutes away."


def wrong(story: Any) -> CaseResult:
    """A case with a text and a JSON value that differ from what was expected."""
    found = PARAGRAPH.replace("142", "152").replace("walk", "ride")
    trip = {"city": "Lisbon", "nights": 3, "currency": "EUR", "total": 630.9, "paid": False, "guests": ["Ada", "Bob"]}
    verdicts = [
        Verdict(type="equals", outcome="failed", message="no", expected=PARAGRAPH, found=found, where="output"),
        Verdict(type="equals", outcome="failed", message="no", expected=trip, found=trip | {"total": 612.4}),
    ]
    made: CaseResult = story.case("hotel", story.trial(status="failed", error="no", verdicts=verdicts), name="Hotel")
    return made


def test_the_words_that_differ_stand_out(story: Any) -> None:
    text = shown(story, [wrong(story)], verbose=0, width=120)
    for word in ("1;4;31m142", "1;4;31mwalk", "1;4;32m152", "1;4;32mride", "1;4;31m630.9", "1;4;32m612.4"):
        assert f"\x1b[{word}\x1b[0m" in text
    assert "Lisbon" not in "".join(re.findall(r"\x1b\[1;4;3[12]m([^\x1b]*)", text))


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("colours", [True, False])
def test_golden_of_a_terminal(
    story: Any,
    troubles: list[CaseResult],
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    colours: bool,
) -> None:
    """With the steering characters, written so that they can be read."""
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    console = LiveConsole(stream, ConsoleOptions(command="atp test x.jsonl"), **TERMINAL | {"width": width})
    counts = story.counts(passed=1, failed=2)
    info = story.info(agents=["one", "two"], trials=3)
    end = story.end(info, counts=counts, exit_code=1)
    console.start(end.info)
    console._screen.settle()  # the progress line has the time in it
    stream.seek(0)
    stream.truncate()
    for case in (troubles[0], wrong(story), story.case("fine")):
        console.case(case)
    console.end(end)
    text = stream.getvalue()
    assert max(len(line) for line in bare(text).splitlines()) <= width
    if not colours:
        assert set(re.findall(r"\x1b\[([0-9;]*)m", text)) <= {"0", "1", "2", "4", "1;4"}, (
            "bold and underlined words stay"
        )
    golden(f"terminal-{width}{'' if colours else '-no-color'}.txt", text.replace("\x1b", "␛"))


def test_signs_tell_without_colours(story: Any, troubles: list[CaseResult]) -> None:
    """What a colour says, a sign or a word says, too."""
    lines = bare(shown(story, [*troubles, wrong(story)], verbose=0)).splitlines()
    for beginning in ("✗ [wrong]", "! [gone]", "- [cancelled]", "    - The cheapest", "    + The cheapest"):
        assert any(line.startswith(beginning) for line in lines), beginning


def test_progress(story: Any) -> None:
    trials = [SimpleNamespace(key=str(number), case=SimpleNamespace(id=f"case-{number}")) for number in range(3)]

    async def run() -> str:
        stream = io.StringIO()
        console = LiveConsole(stream, ConsoleOptions(), **TERMINAL)
        console.start(story.info())
        for trial in trials:
            console.began(trial)  # type: ignore[arg-type]
        seen = Transcript(usage=Usage(cost_usd=0.25))
        console.ended(trials[0], story.trial(transcript=seen, status="failed"))  # type: ignore[arg-type]
        await until_async(lambda: "1/3, 2 running" in bare(stream.getvalue()))
        middle = stream.getvalue()
        console.end(story.end())
        assert stream.getvalue().endswith("journal.jsonl\n")
        return middle

    last = bare(asyncio.run(run())).rpartition("\r")[2]
    assert re.search(r"━+ 1/3, 2 running, 1 not passed, \$0\.2500, \d+ms, [\d.]+m?s left", last)


def test_the_cursor_is_never_left_hidden(story: Any) -> None:
    stream = io.StringIO()
    console = LiveConsole(stream, ConsoleOptions(), **TERMINAL)
    console.start(story.info())
    text = stream.getvalue()
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
    console.end(story.end())


def test_trials_taken_over_count_as_done(story: Any) -> None:
    progress = Progress()
    progress.total = 2
    progress.end("never began", story.trial())
    assert progress.text.startswith("1/2, 0 running, ")


def test_a_terminal_that_goes_away(story: Any) -> None:
    class Gone(io.StringIO):
        broken = False

        def write(self, text: str) -> int:
            if self.broken:
                raise OSError(5, "Input/output error")
            return super().write(text)

    stream = Gone()
    console = LiveConsole(stream, ConsoleOptions(), **TERMINAL)
    console.start(story.info())
    stream.broken = True
    console.case(story.case())
    console.end(story.end())
    assert list(console.problems) == ["the console: Input/output error"]


SCRIPT = """
import sys
from atp.report.choose import console
from atp.report.console.console import ConsoleOptions
print(type(console(sys.stdout, ConsoleOptions())).__name__, "rich" in sys.modules)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(("term", "expected"), [("xterm", "LiveConsole True"), ("dumb", "Console False")])
def test_a_real_terminal(tmp_path: Path, term: str, expected: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": term}
    subprocess.run([sys.executable, "-c", SCRIPT], stdout=theirs, env=environment, check=True, timeout=WAIT_LIMIT)
    os.close(theirs)
    assert os.read(ours, 1000).decode().strip() == expected
    os.close(ours)


def test_rich_is_not_imported_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=WAIT_LIMIT
    )
    assert done.stdout.strip() == "Console False"


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("variable", ["COLUMNS", "LINES"])
def test_a_terminal_whose_size_is_said_to_be_0(tmp_path: Path, variable: str) -> None:
    import pty

    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "a.jsonl").write_text('{"id": "greeting", "input": "hi", "expected": "hi"}\n')
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", variable: "0"}
    command = [sys.executable, "-m", "atp", "test", "a.jsonl", "-n", "agent.py:answer", "-v"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while block := os.read(ours, 4096):
            said += block
    except OSError:  # how a terminal ends on Linux
        pass
    assert process.wait(WAIT_LIMIT) == 0
    os.close(ours)
    text = bare(said.decode())
    assert "[greeting]" in text
    assert "Passed:  1" in text
