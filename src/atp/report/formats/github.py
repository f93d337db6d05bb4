"""GitHub Actions: annotations at the lines of cases that did not pass, and the summary of the step."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from atp.base.json.text import whole_text
from atp.base.numbers import counted
from atp.base.secrets import hider
from atp.base.text import one_line
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.report.compare.markdown import comparison_markdown
from atp.report.console.case_text import title, went_wrong
from atp.report.console.page import lost
from atp.report.facts import quarantine_text, reason, shown_trial
from atp.report.figure_text import gate_text, gate_title
from atp.report.files import let_go
from atp.report.formats.markdown import case_section, gates_section, judges_section, summary_section
from atp.report.reporter import Reporter
from atp.suite.result import CaseResult

MOST = 50
"""The most annotations that GitHub keeps of a job."""
LARGEST = 1024 * 1024
"""Bytes of a step's summary. GitHub shows nothing of a larger one."""
_ROOM = 2_000
"""Bytes that are kept free for the line about further cases."""


def in_github() -> bool:
    """True in a workflow of GitHub."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


class Annotations(Listener):
    """Prints a workflow command for each case that did not pass, when the run is over."""

    def __init__(self, stream: TextIO, secrets: Sequence[str] = ()) -> None:
        self._stream = stream
        self._hide = hider(secrets)
        self._lines: list[str] = []
        self._more = 0
        self._problems: list[str] = []

    @property
    def problems(self) -> Sequence[str]:
        """What could not be printed."""
        return self._problems

    def case(self, result: CaseResult) -> None:
        """Note a case that did not pass."""
        if result.status in ("passed", "skipped", "cancelled"):
            return
        if len(self._lines) < MOST:
            self._lines.append(self._command(result))
        else:
            self._more += 1

    def end(self, end: RunEnd) -> None:
        """Print the workflow commands."""
        lines = self._lines
        if self._more:
            lines.append(f"::notice title=ATP::{counted(self._more, 'more case')} did not pass")
        for gate in end.gates:
            if gate.outcome != "passed":
                level = "error" if gate.outcome == "failed" else "warning"
                text = one_line(self._hide(f"{gate_title(gate, end.info)}: {gate_text(gate)}"), 1000)
                lines.append(f"::{level} title=ATP gate::{_data(text)}")
        if end.reason:
            lines.append(f"::error title=ATP::{_data(one_line(self._hide(end.reason), 1000))}")
        try:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
        except OSError as error:
            self._problems.extend(lost(error))
            let_go(self._stream)

    def _command(self, case: CaseResult) -> str:
        hide = self._hide
        where = ""
        if case.file:
            where = f"file={_property(one_line(hide(_in_repository(case.file))))},line={case.line or 1},col=1,"
        lines = [one_line(line.strip()) for line, _ in went_wrong(case, shown_trial(case), hide)]
        if case.status == "inconclusive" or not lines:  # a failed run is not why
            lines.insert(0, one_line(hide(reason(case))))
        text = "\n".join(lines)
        if case.excused:
            told = one_line(hide(quarantine_text(case) or ""))
            return (
                f"::warning {where}title={_property(title(case.name, case.case, hide))}::{_data(told)}%0A{_data(text)}"
            )
        return f"::error {where}title={_property(title(case.name, case.case, hide))}::{_data(text)}"


class StepSummary(Reporter):
    """Adds the summary of the run and the cases that did not pass to the page of the workflow."""

    def __init__(self, path: Path, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._several = False
        self._sections: list[bytes] = []
        self._size = 0
        self._more = 0

    def start(self, info: RunInfo) -> None:
        """Cases name their agent where there are several."""
        self._several = len(info.agents) > 1

    def case(self, result: CaseResult) -> None:
        """Keep the section of a case that did not pass, while there is room."""
        if result.status in ("passed", "skipped"):
            return
        section = "".join(f"{line}\n" for line in case_section(result, self.hide, self._several)).encode()
        if self._more or self._size + len(section) > LARGEST:
            self._more += 1
            return
        self._size += len(section)
        self._sections.append(section)

    def end(self, end: RunEnd) -> None:
        """Append the summary to what earlier commands of the step have written."""
        assert self.path is not None
        lines = ["# Agent Test Report", "", *summary_section(end, self.hide), *gates_section(end, self.hide)]
        lines += judges_section(end, self.hide)
        lines += comparison_markdown(end.comparison, self.hide) if end.comparison is not None else []
        head = "".join(f"{line}\n" for line in lines).encode()
        try:
            free = LARGEST - _ROOM - len(head) - (self.path.stat().st_size if self.path.exists() else 0)
            with self.path.open("ab") as file:
                if free > 0:
                    file.write(head)
                for section in self._sections:
                    free -= len(section)
                    if free > 0:
                        file.write(section)
                    else:
                        self._more += 1
                if self._more:
                    file.write(f"{counted(self._more, 'more case')} did not pass: see the report.\n".encode())
        except OSError as error:
            self.problem(error)


def _in_repository(file: str) -> str:
    """The file's path relative to the repository."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = os.path.abspath(file)
    return os.path.relpath(path, root) if root and path.startswith(os.path.join(os.path.abspath(root), "")) else file


def _data(text: str) -> str:
    """A text for a workflow command, which ends at the end of its line."""
    return whole_text(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
