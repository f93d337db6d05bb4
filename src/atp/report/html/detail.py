"""The details of cases and trials in the HTML report: everything recorded, with secrets masked and long texts cut."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from atp.base.json.text import encode
from atp.base.secrets import Hide, fixed_fields
from atp.journal.made_files import read_kept
from atp.journal.records import RunInfo
from atp.report.differences import compared_values
from atp.report.facts import judge_flips, long_run_text
from atp.report.html.pictures import attached_pictures, picture_address
from atp.report.records.stability import stability_fields
from atp.report.rerun import case_command
from atp.suite.result import Artifact, CaseResult, MadeFile, TrialResult, Verdict

MOST_ITEMS = 2000
"""The most messages, events, calls or log lines of a trial in the report; the journal has all."""
_LONGEST = (
    (0, 1_000_000, 1_000_000),
    (12_000_000, 100_000, 10_000),
    (24_000_000, 10_000, 1_000),
    (36_000_000, 500, 200),
)
"""From this many bytes of details on, the longest text of a trial that did not pass, and of one that passed."""
_FREE = frozenset({"input", "output", "arguments", "result", "expected", "found", "data", "payload"})
"""Fields with any JSON value: an empty list in these is a value, not the absence of one."""
_ELSEWHERE = frozenset({"agent", "case", "index", "surplus", "base64"})
"""Fields that stand in the case's row, and content that isn't text."""


def longest_text(size: int, passed: bool) -> int:
    """The longest text when there are `size` bytes of details already. A browser must still open the report."""
    failed_one, passed_one = next(one[1:] for one in reversed(_LONGEST) if size >= one[0])
    return passed_one if passed else failed_one


def trial_object(trial: TrialResult, case: CaseResult, hide: Hide, longest: int, run: Path) -> dict[str, Any]:
    """A trial as an object with the names of its fields; empty values are left out.

    `run` is the run's folder, where the contents of files that the agent made are.
    """
    shaper = _Shaper(hide, longest)
    made = shaper.struct(trial)
    if trial.files:
        _show_contents(trial.files, made["files"], shaper, run)
    for verdict, shaped in _with_parts(trial.verdicts, made.get("verdicts", [])):
        if verdict.passed:
            continue
        pair = compared_values(verdict, case, trial)
        if pair != (verdict.expected, verdict.found):
            shaped["compared"] = [shaper.value(value) for value in pair]
    if shaper.left_out:
        made["more"] = shaper.left_out
    return made


def _show_contents(files: list[MadeFile], shaped: list[dict[str, Any]], shaper: "_Shaper", run: Path) -> None:
    """Add to each file its text or picture, as far as the contents of all files of the trial are not too long."""
    left = shaper.longest
    for made, about in zip(files, shaped, strict=False):
        content = read_kept(run, made) if left > 0 else None
        if content is None:
            continue
        if (picture := picture_address(content)) is not None:
            if len(picture) <= left:
                about["picture"] = picture
                left -= len(picture)
            continue
        try:
            text = shaper.hide(content.decode())
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            about["binary"] = True
            continue
        about["text"] = _cut_text(text, left, "in the run's folder")
        left -= len(text)


def _with_parts(verdicts: list[Verdict], shaped: list[dict[str, Any]]) -> Iterator[tuple[Verdict, dict[str, Any]]]:
    """Yield every verdict, those inside groups included, with its object."""
    for verdict, made in zip(verdicts, shaped, strict=False):
        yield verdict, made
        yield from _with_parts(verdict.parts, made.get("parts", []))


def case_object(case: CaseResult, info: RunInfo, hide: Hide, longest: int) -> dict[str, Any]:
    """The details that belong to the case, not to one of its trials."""
    shaper = _Shaper(hide, longest)
    made = {
        "input": shaper.value(case.input),
        "input_data": shaper.value(case.input_data) if case.input_data else None,
        "expected": shaper.value(case.expected),
        "command": _printable(case_command(case, info, hide)),
        "required_rate": case.required_rate,
        "user": hide(case.user),
        "team": hide(case.team),
        "metadata": shaper.value(case.metadata) if case.metadata else None,
        "pictures": attached_pictures(case) or None,
        "judge": [f"{name}: {flips}" for name, flips in judge_flips(case, hide)] or None,
    }
    if case.repeated:
        made["variations"] = stability_fields(case).get("variations")
        made["long_run"] = long_run_text(case) or None
    return {name: value for name, value in made.items() if value is not None}


def _printable(text: str) -> str | None:
    """The text, if it can be pasted into a terminal without steering the terminal."""
    return text if text.isprintable() else None


class _Shaper:
    """Turns structs into objects, with secrets masked and texts cut."""

    def __init__(self, hide: Hide, longest: int) -> None:
        self.hide = hide
        self.longest = longest
        self.left_out: dict[str, int] = {}

    def struct(self, value: Struct) -> dict[str, Any]:
        made: dict[str, Any] = {}
        # The page depends on these and on the types of checks and events: they stay even if a secret is the same word.
        fixed = fixed_fields(type(value)) | {"type"}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if item is None or name in _ELSEWHERE or (item in ([], {}) and name not in _FREE):
                continue
            made[name] = item if name in fixed else self._field(name, item)
        if isinstance(value, Artifact) and value.base64 is not None:
            picture = self._picture(value.base64)
            made |= {"binary": True} if picture is None else {"picture": picture}
        return made

    def _picture(self, encoded: str) -> str | None:
        """The `data:` address of the picture in an artifact's content; None if it is none, or too long."""
        if len(encoded) > self.longest:
            return None
        try:
            return picture_address(base64.b64decode(encoded))
        except ValueError:
            return None

    def value(self, value: Any) -> Any:
        """The value, or the beginning of its text if that is too long."""
        value = self.hide(value)
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, dict | list) and value:
            text = encode(value)
            if len(text) > self.longest:
                return self._cut(text.decode())
        return value

    def _field(self, name: str, item: Any) -> Any:
        if isinstance(item, Struct):
            return self.struct(item)
        if isinstance(item, list) and name not in _FREE:
            if len(item) > MOST_ITEMS:
                self.left_out[name] = len(item) - MOST_ITEMS
            return [self._item(one) for one in item[:MOST_ITEMS]]
        return self._item(item) if isinstance(item, dict) and name not in _FREE else self.value(item)

    def _item(self, item: Any) -> Any:
        if isinstance(item, Struct):
            return self.struct(item)
        if isinstance(item, dict):  # a message, whose parts are cut one by one so that it stays a message
            return {self.hide(key): self.value(part) for key, part in item.items()}
        return self.value(item)

    def _cut(self, text: str) -> str:
        return _cut_text(text, self.longest, "in the journal")


def _cut_text(text: str, longest: int, where: str) -> str:
    """The beginning of a text that is too long, with where the rest is."""
    more = len(text) - longest
    return text if more <= 0 else f"{text[:longest]}… ({more:,} more characters are {where})"
