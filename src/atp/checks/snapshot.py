"""`snapshot`: what the agent answered, or the tools it called, is what a golden file has.

Secrets are masked in golden files, so both sides are compared masked: a mask stands for any secret of the run.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from atp.base.json.found import MISSING, SearchCutShort, read_whole
from atp.base.secrets import current_secrets
from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.golden_files import GoldenError, GoldenFile, TrialGoldenFiles
from atp.checks.matching.compare import difference
from atp.checks.matching.json_paths import without
from atp.checks.output import unless_json_is_unread
from atp.checks.tools import arguments_of, unless_calls_are_unreported, unread_arguments
from atp.checks.verdicts import SHORT, failed, favourable_outcome, passed, show, unjudged
from atp.suite.assertion import Assertion, Need
from atp.suite.paths import JsonPathText, full_path
from atp.suite.record import Text
from atp.suite.result import ToolCall, Verdict

FLAG = "--update-snapshots"
MOST_SHOWN = 4000
"""Characters of a golden value, and of what was found, that a verdict keeps for reports to show the difference of."""
_LEAD = 200
"""Characters before the first difference that a verdict keeps of longer ones."""


class SnapshotAssertion(Assertion):
    """The answer, or the sequence of tool calls, is what a golden file has."""

    type: Literal["snapshot"]
    """Always `snapshot`."""
    match: Literal["text", "normalized", "json", "tools"] = "text"
    """What is compared: the text, the text with blanks and line ends folded, the JSON in it, or the tool calls."""
    ignore: list[JsonPathText] = Field(default_factory=list)
    """What is not compared: places of the JSON; with `tools`, of the arguments of each call."""
    name: Text | None = None
    """Names the golden file, where a case has several; left out: `match`, and a number."""

    @model_validator(mode="after")
    def _check_ignore(self) -> "SnapshotAssertion":
        if self.ignore and self.match in ("text", "normalized"):
            raise PydanticCustomError(
                "snapshot_ignore",
                "`ignore` has no meaning with `match: {match}`, which compares a text",
                {"match": self.match, "hint": "write `match: json` or `match: tools`, or leave `ignore` out"},
            )
        if any(full_path(path) == "$" for path in self.ignore):
            raise PydanticCustomError(
                "snapshot_ignore",
                "`ignore` has the path `$`: nothing would be compared",
                {"hint": "name a place, for example `$.id`"},
            )
        return self

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells the assertion from other snapshots of a case. Equal ones share a golden file."""
        return self.match, self.name, tuple(self.ignore), self.turns

    @property
    def ending(self) -> str:
        """The ending of the golden file's name."""
        return ".json" if self.match in ("json", "tools") else ".txt"

    def needs(self, negated: bool) -> Iterator[Need]:
        if self.match == "tools":  # else an agent that is never seen calling tools would equal a golden file of none
            yield Need("tool_calls", "its tool calls (`snapshot` of the tools)")

    def check(self, evidence: Evidence) -> Verdict:
        files = evidence.golden_files
        file = files.file_of(self) if files is not None else None
        if files is None or file is None:
            return unjudged("golden files are kept for the cases of a suite's file, and this is none")
        where = "tool calls" if self.match == "tools" else evidence.answer.where
        if self.match == "tools" and files.updates.wanted and evidence.unreported_calls is not None:
            return unjudged(f"{evidence.unreported_calls}, so no golden file is written", where=where)
        try:
            found = self._found(evidence)
            if found is MISSING:
                message = f"expected JSON as in {file.name}, found none in {show(evidence.answer.text, SHORT)}"
                verdict = failed(message, found=evidence.answer.text, where=where)
            else:
                verdict = self._compare(found, file, files, where)
        except GoldenError as error:
            return unjudged(error.with_hint, where=where)
        if self.match == "json":
            return unless_json_is_unread(verdict, self, evidence.answer)
        if self.match == "tools":
            what = f"that the tools were{'' if verdict.passed else ' not'} called as in the golden file"
            # Equal texts are equal, whatever they say. Of texts that differ, the JSON in them may be equal.
            unreadable = None if verdict.passed else _unreadable(evidence.tool_calls)
            return unless_calls_are_unreported(verdict, self, evidence, what, (), unreadable)
        return verdict

    def _found(self, evidence: Evidence) -> Any:
        """What is compared: text, or a JSON value without what is ignored; `MISSING` if there is no JSON."""
        secrets = current_secrets()
        if self.match in ("text", "normalized"):
            return secrets.mask_text(evidence.answer.text)
        if self.match == "tools":
            calls = [(call.name, arguments_of(call)) for call in evidence.tool_calls]
            value: Any = [{"name": name, "arguments": without(self.ignore, given)} for name, given in calls]
        else:
            value = evidence.answer.json
            value = value if value is MISSING else without(self.ignore, value)
        return value if value is MISSING else secrets.mask(value, numbers=True)

    def _compare(self, found: Any, file: GoldenFile, files: TrialGoldenFiles, where: str) -> Verdict:
        updates = files.updates
        # What is turned round by `negate` must differ from its golden file, which therefore must not be written here.
        is_negated = favourable_outcome(self) == "failed"
        settled_by = updates.settled.get(file.path)
        writes = updates.wanted and settled_by is None and not is_negated
        try:
            golden = self._read(file)
        except GoldenError:
            if not writes:
                raise
            golden = MISSING
        if golden is MISSING and not writes:
            return self._missing(file, files, where, is_negated=is_negated)
        differs = "it is new" if golden is MISSING else self._difference(golden, found)
        if differs is None:
            updates.settled.setdefault(file.path, files.trial)
            return passed(f"as in {file.name}", where=where)
        if writes:
            updates.write(file, self._written(found))
            updates.settled[file.path] = files.trial
            return passed(f"written to {file.name}", where=where)
        verdict = failed(f"{self._what} differs from {file.name}{differs}", where=where)
        verdict.expected, verdict.found = _windows(golden, found)
        if updates.wanted and not is_negated:
            verdict.message += f"; {settled_by} wrote it, so the agent does not answer the same each time"
        elif not is_negated:
            verdict.message += f"; if the new answer is right: {_how_to_update(files)}"
        return verdict

    def _missing(self, file: GoldenFile, files: TrialGoldenFiles, where: str, *, is_negated: bool) -> Verdict:
        if is_negated:
            return unjudged(f"there is no golden file {file.name} to differ from", where=where)
        return failed(f"there is no golden file {file.name}: {_how_to_update(files)}", where=where)

    @property
    def _what(self) -> str:
        return "the sequence of tool calls" if self.match == "tools" else "the output"

    def _read(self, file: GoldenFile) -> Any:
        """The value in a golden file, as `_found` gives it; `MISSING` if there is no file. Raises `GoldenError`."""
        text = file.read()
        if text is None:
            return MISSING
        secrets = current_secrets()
        if self.match in ("text", "normalized"):
            return secrets.mask_text(text)
        try:
            value = read_whole(text)
        except SearchCutShort as error:
            raise GoldenError(f"{file.name} can't be read: {error}", f"write it anew: {FLAG}") from error
        if value is MISSING:
            raise GoldenError(f"{file.name} is not JSON", f"write it anew: {FLAG}")
        return secrets.mask(self._without_ignored(value), numbers=True)

    def _without_ignored(self, value: Any) -> Any:
        if self.match == "json":
            return without(self.ignore, value)
        calls = value if isinstance(value, list) else []
        if not all(isinstance(call, dict) for call in calls):
            return value
        return [
            {**call, "arguments": without(self.ignore, call["arguments"])} if "arguments" in call else call
            for call in calls
        ]

    def _difference(self, golden: Any, found: Any) -> str | None:
        """Where two values differ, in words; None if they don't."""
        if isinstance(golden, str) and self.match == "normalized":
            if normalized(golden) == normalized(found):
                return None
        elif self.match == "text":
            if golden == found:
                return None
        else:
            differs = difference(golden, found, matchers=False)
            if differs is None:
                return None
            sides = ["nothing" if one is MISSING else show(one, SHORT) for one in (differs.expected, differs.found)]
            return f": expected {sides[0]} at ${differs.path}, found {sides[1]}"
        before, after = golden.splitlines() or [""], found.splitlines() or [""]
        same = sum(1 for _ in _equal_lines(before, after))
        if normalized(golden) == normalized(found):
            return f" from line {same + 1} on (they differ only in blanks)"
        return f" from line {same + 1} on"

    def _written(self, found: Any) -> str:
        if self.match in ("text", "normalized"):
            return str(found)
        return json.dumps(found, indent=2, ensure_ascii=False, sort_keys=True)


def _unreadable(calls: Sequence[ToolCall]) -> str | None:
    """Say that the arguments of a call were not reported, or not so that they can be read."""
    if unreported := next((call for call in calls if call.arguments is None), None):
        return f"the arguments of a call of `{cut(unreported.name, 60)}` were not reported"
    return unread_arguments(calls)


def normalized(text: str) -> str:
    """The text with each run of blanks and line ends as one blank, and none around."""
    return " ".join(text.split())


def _equal_lines(before: list[str], after: list[str]) -> Iterator[str]:
    for one, other in zip(before, after, strict=False):
        if one != other:
            return
        yield one


def _how_to_update(files: TrialGoldenFiles) -> str:
    if files.updates.refused is not None:
        return f"{FLAG} writes nothing here, because {files.updates.refused}"
    return f"write it with {FLAG}"


def _windows(golden: Any, found: Any) -> tuple[Any, Any]:
    """Both sides for a report; of long ones as text, the part around the first difference."""
    texts = [
        one if isinstance(one, str) else json.dumps(one, indent=2, ensure_ascii=False, sort_keys=True)
        for one in (golden, found)
    ]
    if max(map(len, texts)) <= MOST_SHOWN:
        return golden, found
    same = next((at for at, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), min(map(len, texts)))
    begin = max(same - _LEAD, 0)
    begin = texts[0].rfind("\n", 0, begin) + 1 if begin else 0
    begin = begin if same - begin < MOST_SHOWN // 2 else max(same - _LEAD, 0)
    shown = [f"{'…' if begin else ''}{one[begin : begin + MOST_SHOWN]}" for one in texts]
    return shown[0], shown[1]
