"""The evidence of a trial that an earlier run recorded. What the journal doesn't hold is never taken for absent."""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from atp.base.json.canonical import canonical
from atp.base.secrets import MASK
from atp.checks.evidence import Evidence, NotKept, Subject, forget_computed
from atp.suite.result import Artifact, Event, ToolCall, Turn

Value = TypeVar("Value")


class RecordedEvidence(Evidence):
    """The evidence of a recorded trial. What a check looks at and the journal doesn't hold raises `NotKept`."""

    def __init__(self, *parts: Any, masked: bool, artifacts_open: Callable[[], bool]) -> None:
        """`masked`: `***` stands for a secret. `artifacts_open`: asks whether later turns may have made artifacts."""
        super().__init__(*parts)
        self._masked = masked
        self._artifacts_open = artifacts_open

    def for_judges(self) -> Evidence:
        """The same evidence with masked texts: judges are never shown more."""
        shown = copy(self)
        shown._masked = False
        return forget_computed(shown)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, as role/content objects."""
        return self._unmasked(super().messages, "the conversation")

    @cached_property
    def turns(self) -> list[Turn]:
        """The exchanges, those of befores included."""
        return self._unmasked(super().turns, "the conversation")

    @cached_property
    def artifacts(self) -> list[Artifact]:
        """The artifacts that the agent handed over, in befores, too."""
        if self._artifacts_open():
            raise NotKept("in which turn the agent handed over its artifacts")
        return self._unmasked(super().artifacts, "the artifacts")

    @cached_property
    def input(self) -> Any:
        """The input of the agent: the case's, or that of this turn or variation."""
        return self._unmasked(super().input, "the input")

    @cached_property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls, in order."""
        return self._unmasked(super().tool_calls, "the tool calls")

    @cached_property
    def events(self) -> list[Event]:
        """All other events, in order."""
        return self._unmasked(super().events, "the events")

    def _find_answer(self) -> Subject:
        found = super()._find_answer()
        self._unmasked(found.value, found.name)
        return found

    def _unmasked(self, value: Value, what: str) -> Value:
        """Return a value as it is. Raises `NotKept` if a secret is masked in it."""
        if self._masked and has_mask(value):
            raise NotKept(f"{what} with the secrets in it, which are masked")
        return value


def has_mask(value: Any) -> bool:
    """True if a secret may be masked in a value: `***` stands in it."""
    return MASK in (value if isinstance(value, str) else canonical(msgspec.to_builtins(value)))
