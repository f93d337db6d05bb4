"""Writes JSONL test files, and JSON files with a list of the same cases."""

import json
from pathlib import Path
from typing import Any

from atp.loader.markdown.names import stem
from atp.loader.writing.cases import CaseWriter, flat_assertion
from atp.loader.writing.losses import Losses, SecretHider, Written
from atp.suite.case import Case
from atp.suite.suite import Suite


def write_jsonl(suite: Suite) -> Written:
    """One line a case."""
    losses = Losses()
    return Written("".join(f"{line}\n" for line in _lines(suite, losses)), losses)


def write_json(suite: Suite) -> Written:
    """A list with one line a case."""
    losses = Losses()
    lines = _lines(suite, losses)
    return Written("[\n" + ",\n".join(f"  {line}" for line in lines) + "\n]\n" if lines else "", losses)


def _lines(suite: Suite, losses: Losses) -> list[str]:
    _note_losses(suite, losses)
    writer = CaseWriter(suite, losses, flat_assertion)
    hiding = SecretHider(suite.secrets)
    lines = []
    for case in suite.cases:
        record = writer.write(case)
        if record is not None:
            lines.append(_line(hiding.hide(_in_dialect(record, case, losses), losses.secret(case))))
    return lines


def _in_dialect(record: dict[str, Any], case: Case, losses: Losses) -> dict[str, Any]:
    """The record without what only YAML tests say, and with the JSONL format's own spelling of a timeout."""
    if record.pop("agents", None) is not None:
        losses.case(case, "agents", ", ".join(case.agents or ()) or "none")
    if record["name"] == case.id:
        del record["name"]
    limits = record.get("constraints", {})
    if (seconds := limits.pop("timeout_seconds", None)) is not None:
        record["timeout"] = f"{seconds}s" if isinstance(seconds, int) else seconds
        if not limits:
            del record["constraints"]
    return record


def _line(record: dict[str, Any]) -> str:
    # Many readers of lines also break at these three, which JSON allows in a text.
    line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return line.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _note_losses(suite: Suite, losses: Losses) -> None:
    """A JSONL file is its cases. What the suite's defaults say, each case says itself."""
    named_after_file = suite.path is not None and suite.name in (Path(suite.path).stem, stem(suite.path))
    if suite.dialect in ("yaml", "markdown") and not named_after_file:
        losses.suite("name", suite.name)
    if suite.version != "1.0":
        losses.suite("version", suite.version)
    if suite.description is not None:
        losses.suite("description")
    for gate in suite.gates:
        losses.suite("gates", gate.text)
    for agent in suite.agents:
        losses.suite("agents", f"`{agent.name}`")
    for key in ("target", "assessor", "generator", "iterations"):
        if (value := getattr(suite, key)) is not None:
            losses.suite(key, str(value))
