"""The JUnit report, for CI: a suite for each file and agent, a test for each case.

What the agent did wrong is a `failure`; any other error is an `error`, and its type says who is to blame. A run that
ended early has an error of its own, so that nobody takes a part of the run for the whole.

The report keeps to the schema of Jenkins' xUnit plugin, which refuses other reports. In that schema a test has no
properties, no file and no line: these are at the head of its `<system-out>`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from atp.base.secrets import Hide
from atp.base.text import harmless, one_line
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.console.case_text import conversation_lines, went_wrong
from atp.report.facts import (
    agent_id,
    is_failure,
    long_run_text,
    no_assertions,
    quarantine_text,
    reason,
    shown_trial,
    stability_text,
    timestamp,
)
from atp.report.figure_text import gate_text, gate_title
from atp.report.files import Order, Spool
from atp.report.reporter import SpooledReport
from atp.stats.stability import case_score
from atp.suite.case import Case
from atp.suite.result import NO_ASSERTIONS, CaseResult, TrialResult

LONGEST = 10_000
"""Characters of a conversation that are shown."""
_SUITE_BITS = 32
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitReport(SpooledReport):
    """`<testsuites>`, in the order of the files and agents."""

    format = "report.junit"
    extensions = (".xml",)

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._suites: dict[int, _Suite] = {}
        self._left_out: dict[int, _Suite] = {}
        """The suites of skipped cases, by file: skipped cases belong to no agent."""
        self._classes: Counter[str] = Counter()

    def place(self, order: Order, result: CaseResult) -> int:
        """The place among the other results of the suite."""
        return order.by_agent(result)

    def case_part(self, result: CaseResult) -> bytes:
        """`<testcase>`."""
        number = self._order.by_agent(result) >> _SUITE_BITS
        suite = self._suites.setdefault(number, _Suite())
        if not suite.tests:
            self._name(suite, result.file, result.agent)
        suite.count(_kind(result), sum(one.duration_ms for one in result.trials))
        return _test(result, suite.class_name, self.hide).encode()

    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """`<testcase>` with `<skipped>`."""
        suite = self._left_out.setdefault(self._order.file_number(file), _Suite())
        if not suite.tests:
            self._name(suite, file, None)
        suite.count("skipped", 0.0)
        name = attributes(name=_name(case.id, case.name, self.hide), classname=suite.class_name, time="0.000")
        why = "" if case.skip_reason is None else attributes(message=self.hide(case.skip_reason))
        return f"    <testcase{name}>\n      <skipped{why}/>\n    </testcase>\n".encode()

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write all suites, and an error if the run ended early."""
        suites, broken = [*self._suites.values(), *self._left_out.values()], end.reason is not None
        missed = sum(gate.outcome != "passed" for gate in end.gates)
        counts = sum((suite.counts for suite in suites), Counter[str]())
        about = attributes(
            name=self.hide(agent_id(end.info)) or "atp",
            tests=sum(suite.tests for suite in suites) + len(end.gates) + broken,
            failures=counts["failure"] + missed,
            errors=counts["error"] + broken,
            time=_seconds(end.duration_ms),
        )
        file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{about}>\n'.encode())
        for known, spool, bits in ((self._suites, results, _SUITE_BITS), (self._left_out, skipped, 0)):
            for number, items in groupby(spool.placed(), key=lambda one: one[0] >> bits):
                file.write("".join(known[number].head(end.info, self.hide)).encode())
                file.writelines(item for _, item in items)
                file.write(b"  </testsuite>\n")
        if end.gates:
            file.write(_gates(end, missed, self.hide).encode())
        if broken:
            file.write(_early_end(end, self.hide).encode())
        file.write(b"</testsuites>\n")

    def _name(self, suite: "_Suite", file: str | None, agent: str | None) -> None:
        """Name a suite. Dots are replaced: many readers take the last dot for the end of a package's name."""
        suite.file = xml_line(self.hide(file)) if file else "message"
        suite.agent = xml_line(self.hide(agent)) if agent else None
        suite.class_name = ".".join(part.replace(".", "_") for part in (suite.file, suite.agent) if part)
        self._classes[suite.class_name] += 1
        if (same := self._classes[suite.class_name]) > 1:  # names that differ only in dots
            suite.class_name += f"-{same}"


class _Suite:
    """The counts of a file and agent."""

    def __init__(self) -> None:
        self.file, self.class_name = "", ""
        self.agent: str | None = None
        self.tests = 0
        self.counts: Counter[str] = Counter()
        self._milliseconds = 0.0

    def count(self, kind: str | None, milliseconds: float) -> None:
        self.tests += 1
        self._milliseconds += milliseconds
        self.counts[kind or "passed"] += 1

    def head(self, info: RunInfo, hide: Hide) -> Iterator[str]:
        about = attributes(
            name=f"{self.file} ({self.agent})" if self.agent else self.file,
            tests=self.tests,
            failures=self.counts["failure"],
            errors=self.counts["error"],
            skipped=self.counts["skipped"],
            time=_seconds(self._milliseconds),
            timestamp=timestamp(info.started_at).rstrip("Z"),
            file=self.file,
        )
        yield f"  <testsuite{about}>\n"
        known = {"run_id": info.id, "agent": self.agent, "connector": hide(info.connector), "atp": info.version}
        yield from properties(known, "    ")


def _test(case: CaseResult, class_name: str, hide: Hide) -> str:
    trial = shown_trial(case)
    seconds = _seconds(sum(one.duration_ms for one in case.trials))
    about = attributes(name=_name(case.case, case.name, hide), classname=class_name, time=seconds)
    lines = [f"    <testcase{about}>\n"]
    if told := hide(quarantine_text(case)) if case.excused else None:
        lines.append(f"      <skipped{attributes(message=told)}/>\n")
    elif kind := _kind(case):
        why = attributes(message=hide(reason(case)), type=_type(case, trial))
        text = "\n".join(line.removeprefix("  ") for line, _ in went_wrong(case, trial, hide))
        lines.append(f"      <{kind}{why}>{xml_text(text)}</{kind}>\n")
    conversation = "\n".join(line.strip() for line, _ in conversation_lines(case, trial, hide))
    shown = conversation if len(conversation) <= LONGEST else f"{conversation[:LONGEST]}\n…"
    if out := "\n\n".join(part for part in ("\n".join(_known(case, hide)), shown) if part):
        lines.append(f"      <system-out>{xml_text(out)}</system-out>\n")
    lines.append("    </testcase>\n")
    return "".join(lines)


def _known(case: CaseResult, hide: Hide) -> Iterator[str]:
    """The file and line of the case, its tags, its score and its stability: a line for each."""
    if case.file:
        yield xml_line(hide(case.file)) + (f":{case.line}" if case.line else "")
    if case.tags:
        yield xml_line(f"tags: {', '.join(hide(case.tags))}")
    if told := quarantine_text(case):
        yield xml_line(hide(told))
        yield from (xml_line(line.strip()) for line, _ in went_wrong(case, shown_trial(case), hide))
    if (score := case_score(case.counted)) is not None:
        yield f"score: {score:.2f}"
    if no_assertions(case.trials):
        yield NO_ASSERTIONS
    if case.repeated:
        yield stability_text(case)
        yield long_run_text(case)


def _kind(case: CaseResult) -> str | None:
    if case.status == "passed":
        return None
    if case.status == "skipped" or case.excused:
        return "skipped"
    return "failure" if is_failure(case) or case.status == "inconclusive" else "error"


def _type(case: CaseResult, trial: TrialResult) -> str:
    """Who is to blame, or the kind of check that failed."""
    if case.status in ("blocked", "cancelled", "timeout", "inconclusive"):
        return case.status
    failed = next((one.type for one in trial.verdicts if one.outcome == "failed"), case.status)
    return trial.blame or failed


def _gates(end: RunEnd, missed: int, hide: Hide) -> str:
    """A suite with a test for each gate. One that is not passed is a failure, of the type of its outcome."""
    head = attributes(name="gates", tests=len(end.gates), failures=missed, errors=0, skipped=0, time="0.000")
    lines = [f"  <testsuite{head}>\n"]
    for gate in end.gates:
        about = attributes(name=hide(gate_title(gate, end.info)), classname="gates", time="0.000")
        lines.append(f"    <testcase{about}>\n")
        if gate.outcome != "passed":
            why = attributes(message=hide(gate_text(gate)), type="gate" if gate.outcome == "failed" else gate.outcome)
            lines.append(f"      <failure{why}/>\n")
        else:
            lines.append(f"      <system-out>{xml_text(hide(gate_text(gate)))}</system-out>\n")
        lines.append("    </testcase>\n")
    return "".join([*lines, "  </testsuite>\n"])


def _early_end(end: RunEnd, hide: Hide) -> str:
    """A suite with one error: an unfinished run must not look like a success."""
    head = attributes(name="atp", tests=1, failures=0, errors=1, skipped=0, time="0.000")
    test = attributes(name="the run came to its end", classname="atp", time="0.000")
    why = attributes(message=hide(end.reason), type="damaged" if end.damaged else "stopped")
    return f"  <testsuite{head}>\n    <testcase{test}>\n      <error{why}/>\n    </testcase>\n  </testsuite>\n"


def _name(identity: str, name: str, hide: Hide) -> str:
    """The id, which is unique in a file, and the name."""
    return hide(identity) if not name or name == identity else f"{hide(identity)}: {hide(name)}"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def properties(known: dict[str, Any], indent: str) -> Iterator[str]:
    """`<properties>` with the values that are not empty."""
    found = {name: value for name, value in known.items() if value not in (None, "")}
    if found:
        yield f"{indent}<properties>\n"
        for name, value in found.items():
            yield f"{indent}  <property{attributes(name=name, value=value)}/>\n"
        yield f"{indent}</properties>\n"


def attributes(**values: Any) -> str:
    """The attributes of an element, each after a blank, without those that are None."""
    return "".join(f" {name}={quoteattr(xml_line(str(value)))}" for name, value in values.items() if value is not None)


def xml_line(text: str) -> str:
    """A text for an attribute: on one line, with characters of XML 1.0 only."""
    return _NOT_XML.sub("\ufffd", one_line(text, 1000))


def xml_text(text: str) -> str:
    """A text for an element: escaped, with characters of XML 1.0 only."""
    return escape(_NOT_XML.sub("\ufffd", harmless(text)))
