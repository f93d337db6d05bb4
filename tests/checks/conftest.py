"""A trial made up on the spot, and a verdict on it."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.suite.assertion import AnyAssertion, Assertion
from atp.suite.case import Case
from atp.suite.result import ToolCall, Transcript, Turn, Verdict

Judge = Callable[..., Verdict]


class Folder:
    """A workspace in which everything was made by the agent, but for what the fixtures put there."""

    def __init__(self, root: Path, seeded: set[str]) -> None:
        self._root = root
        self._seeded = seeded

    @property
    def exists(self) -> bool:
        return True

    def path(self) -> Path:
        return self._root

    def files(self) -> Mapping[str, Path]:
        found = [one for one in self._root.rglob("*") if one.is_symlink() or not one.is_dir()]
        return {one.relative_to(self._root).as_posix(): one for one in found}

    def changed_files(self, *, own: bool = False) -> Mapping[str, Path]:
        return {name: path for name, path in self.files().items() if name not in self._seeded}


_ASSERTION: TypeAdapter[Assertion] = TypeAdapter(AnyAssertion)


def make_assertion(given: dict[str, Any]) -> Assertion:
    return _ASSERTION.validate_python(given)


def make_evidence(
    output: Any = None,
    *,
    calls: list[ToolCall | str] | None = None,
    turns: list[Turn] | None = None,
    case: dict[str, Any] | None = None,
    workspace: Folder | None = None,
    folders: tuple[Path, ...] = (),
    turn: int | None = None,
    **transcript: Any,
) -> Evidence:
    made = [ToolCall(name=call) if isinstance(call, str) else call for call in calls or []]
    said = turns if turns is not None else [Turn(turn=1, input="hello", output=output)]
    return Evidence(
        case=Case(id="case", **{"messages": "hello", **(case or {})}),
        transcript=Transcript(turns=said, tool_calls=made, **transcript),
        workspace=workspace,
        folders=folders,
        turn=turn,
    )


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    return make_evidence


@pytest.fixture
def judge() -> Judge:
    """`judge({"type": …}, output, calls=…, …)`: the verdict."""

    def judge(given: dict[str, Any], output: Any = None, **seen: Any) -> Verdict:
        return asyncio.run(run_check(make_assertion(given), make_evidence(output, **seen)))

    return judge


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Folder]:
    """`folder({"a.txt": "text"}, seeded={"b.txt"})`: a workspace with these files."""

    def folder(files: dict[str, str | bytes], seeded: set[str] | None = None) -> Folder:
        root = tmp_path / "workspace"
        root.mkdir(exist_ok=True)
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Folder(root, seeded or set())

    return folder


@pytest.fixture
def fast_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches are given up after a tenth of a second."""
    monkeypatch.setattr("atp.checks.run_check.LONGEST", 0.1)
