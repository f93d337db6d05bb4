"""The console on a terminal: colours, a progress line, and nothing of it left at the end."""

import asyncio
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import WAIT_LIMIT, until_async

from atp.report.console.console import ConsoleOptions
from atp.report.console.live import LiveConsole, Progress
from atp.suite.result import CaseResult, Transcript, Usage

TERMINAL: dict[str, Any] = {"force_terminal": True, "width": 80, "color_system": "standard", "legacy_windows": False}
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def bare(text: str) -> str:
    return STEERING.sub("", text)


def shown(story: Any, cases: list[CaseResult], **terminal: Any) -> str:
    stream = io.StringIO()
    story.tell([LiveConsole(stream, ConsoleOptions(), **TERMINAL | terminal)], cases, story.end())
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
    command = [sys.executable, "-m", "atp", "test", "a.jsonl", "-n", "agent.py:answer"]
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
