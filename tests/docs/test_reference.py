"""What the docs list is what the code has."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

import msgspec
import pytest

from atp.journal import records
from atp.report.records import report as report_records
from atp.suite import result

ROOT = Path(__file__).parents[2]


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"atp_tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["flags.md", "keys.md"])
def test_reference_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert written == _tool("reference").pages()[name], "run `make docs`"


def test_every_diagnostic_is_documented() -> None:
    page = (ROOT / "docs/diagnostics.md").read_text(encoding="utf-8")
    listed: dict[str, str] = {}
    for names, severity in re.findall(r"^\| (`[a-z0-9`, -]+`) \| (error|warning) \|", page, re.MULTILINE):
        listed |= dict.fromkeys(re.findall(r"`([a-z0-9-]+)`", names), severity)
    known = _tool("codes").codes()
    assert sorted(known.keys() - listed.keys()) == [], "add a line for each to docs/diagnostics.md"
    assert sorted(listed.keys() - known.keys()) == [], "nothing gives these any more: remove them"
    assert [code for code, severity in listed.items() if severity not in known[code]] == []


def test_every_field_of_the_journal_is_documented() -> None:
    page = (ROOT / "docs/journal.md").read_text(encoding="utf-8").partition("## The fields")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", page))
    kinds = {one for module in (records, result) for one in vars(module).values() if _is_record(one)}
    written = kinds - {result.CaseResult, result.TrialRef}  # made of the trials, and of the plan
    keys = {(kind.__name__, key) for kind in written for key in kind.__struct_encode_fields__}
    set_by_readers = {("RunInfo", "folder"), ("RunInfo", "started_in"), ("GateResult", "doubt")}
    unnamed = [f"{kind}.{key}" for kind, key in keys - set_by_readers if key not in named]
    assert sorted(unnamed) == [], "name each in docs/journal.md"


def _is_record(value: object) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def test_formats_on_the_page_are_the_current_ones() -> None:
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    assert f"of `format: {records.FORMAT}` |" in page
    assert f"[`format: {report_records.FORMAT}`](reports.md#json)" in page
