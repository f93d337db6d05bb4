"""The CTRF report (ctrf.io), a JSON format that many CI tools read: a test for each case.

CTRF has the statuses `passed`, `failed`, `skipped` and `other`. An error that is not the agent's fault is `other`;
`rawStatus` has our own status. A test is flaky when its runs differ.
"""

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from atp.base.json.text import encode, whole_text
from atp.base.secrets import Hide
from atp.base.text import one_line
from atp.journal.listeners import RunEnd
from atp.report.console.case_text import went_wrong
from atp.report.facts import agent_id, case_usage, is_failure, milliseconds, reason, shown_trial, timestamp
from atp.report.files import Spool
from atp.report.records.figures import GateRecord
from atp.report.records.run import environment
from atp.report.records.stability import stability_fields
from atp.report.reporter import SpooledReport
from atp.stats.stability import case_score
from atp.suite.case import Case
from atp.suite.result import CaseResult

SPEC = "0.0.0"
"""The version of the standard: the only one that its reference implementation knows."""
_OURS = uuid.uuid5(uuid.NAMESPACE_URL, "https://ctrf.io/atp")


class CtrfReport(SpooledReport):
    """One JSON object, with the tests in the order of the files."""

    format = "report.ctrf"
    extensions = (".ctrf.json",)

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._counts: Counter[str] = Counter()
        self._suites: set[tuple[str | None, str]] = set()

    def case_part(self, result: CaseResult) -> bytes:
        """An item of `tests[]`."""
        test = _test(result, self.hide)
        self._counts[test["status"]] += 1
        self._counts["flaky"] += test["flaky"]
        self._suites.add((result.file, result.agent))
        return encode(test)

    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """An item of `tests[]`: in CTRF, skipped is a status like the others."""
        self._counts["skipped"] += 1
        self._suites.add((file, ""))
        left = CaseResult(agent="", case=case.id, name=case.name, file=file, line=case.place.line, tags=case.tags)
        why = {} if case.skip_reason is None else {"message": one_line(self.hide(case.skip_reason), 1000)}
        return encode(_about(left, self.hide) | {"status": "skipped", "rawStatus": "skipped", "duration": 0, **why})

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write the object."""
        info, hide = end.info, self.hide
        tool = {"name": "atp", "version": info.version}
        extra = {"stopped": hide(end.reason), "exitCode": end.exit_code, "journal": hide(info.folder)}
        if end.gates:
            extra["gates"] = hide([GateRecord.of(one) for one in end.gates])
        about = {
            "appName": hide(agent_id(info)),
            "extra": hide(environment(info) | {"connector": info.connector}),
        }
        head = {
            "reportFormat": "CTRF",
            "specVersion": SPEC,
            "reportId": str(uuid.uuid5(_OURS, info.id)),
            "timestamp": timestamp(end.ended_at),
            "generatedBy": f"atp {info.version}",
        }
        file.write(encode(head).removesuffix(b"}") + b',\n"results": {"tool": ' + encode(tool))
        file.write(b',\n"summary": ' + encode(self._summary(end)))
        file.write(b',\n"tests": [')
        between = b"\n"
        for item in self._tests(end, results, skipped):
            file.write(between + item)
            between = b",\n"
        file.write(b'\n],\n"environment": ' + encode(about) + b',\n"extra": ' + encode(extra) + b"}}\n")

    def _tests(self, end: RunEnd, results: Spool, skipped: Spool) -> Iterator[bytes]:
        yield from results
        yield from skipped
        if end.reason is not None:  # nobody may take a part of the run for the whole
            stopped = {"name": "the run came to its end", "status": "other", "duration": 0}
            word = "damaged" if end.damaged else "stopped"
            yield encode(stopped | {"rawStatus": word, "message": self.hide(end.reason)})

    def _summary(self, end: RunEnd) -> dict[str, Any]:
        counts = self._counts + Counter({"other": int(end.reason is not None)})
        statuses = ("passed", "failed", "skipped", "pending", "other")
        return {
            "tests": sum(counts[one] for one in statuses),
            **{one: counts[one] for one in statuses},
            "flaky": counts["flaky"],
            "suites": len(self._suites),
            "start": round(end.info.started_at * 1000),
            "stop": round(end.ended_at * 1000),
            "duration": milliseconds(end.duration_ms),
            "extra": {"runId": end.info.id, **end.counts},
        }


def _test(case: CaseResult, hide: Hide) -> dict[str, Any]:
    passed = sum(one.status == "passed" for one in case.counted)
    score = case_score(case.counted)
    made: dict[str, Any] = {
        **_about(case, hide),
        "status": case.status if case.status in ("passed", "skipped") else "failed" if is_failure(case) else "other",
        "rawStatus": case.status,
        "duration": milliseconds(sum(one.duration_ms for one in case.trials)),
        "flaky": 0 < passed < len(case.counted),
        "retries": max((one.attempt for one in case.trials), default=1) - 1,
    }
    if case.trials and all(one.started_at for one in case.trials):
        made["start"] = round(min(one.started_at for one in case.trials) * 1000)
        made["stop"] = round(max(one.started_at * 1000 + one.duration_ms for one in case.trials))
    if case.status != "passed":
        lines = went_wrong(case, shown_trial(case), hide)
        text = "\n".join(line.removeprefix("  ") for line, _ in lines)
        made |= {"message": one_line(hide(reason(case)), 1000), "trace": text}
    extra: dict[str, Any] = {
        "agent": hide(case.agent),
        "blame": shown_trial(case).blame,
        "usage": case_usage(case.trials) or None,
        "score": None if score is None else round(score, 2),
    }
    if case.repeated:
        extra["stability"] = stability_fields(case)
    return made | {"extra": extra}


def _about(case: CaseResult, hide: Hide) -> dict[str, Any]:
    suite, identity = [hide(one) for one in (case.file, case.agent) if one], hide(case.case)
    made: dict[str, Any] = {
        "id": str(uuid.uuid5(_OURS, whole_text("\n".join((*suite, identity))))),
        "name": identity if not case.name or case.name == case.case else f"{identity}: {hide(case.name)}",
        "tags": hide(case.tags),
    }
    if suite:
        made["suite"] = suite
    if case.file:
        made |= {"filePath": hide(case.file), "line": case.line}
    return made
