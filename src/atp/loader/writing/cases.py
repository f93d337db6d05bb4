"""Writes a case as the keys that YAML tests and JSONL records both have, and notes what neither has."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import ValidationError

from atp.loader.writing.losses import Losses
from atp.suite.assertion import Assertion, Group
from atp.suite.case import Case, Checkpoint, Task
from atp.suite.message import Message
from atp.suite.record import Record
from atp.suite.suite import Defaults, Suite


@dataclass(slots=True)
class CaseWriter:
    """Writes the cases of one suite, one after the other."""

    suite: Suite
    losses: Losses
    assertion: Callable[[Assertion], dict[str, Any]]
    """How the dialect writes an assertion."""
    defaults: Defaults = field(default_factory=Defaults)
    """The file's defaults, which cases need not repeat."""

    def write(self, case: Case) -> dict[str, Any] | None:
        """The case as a record in the formats' order of keys, or None if its prompt can't be written."""
        says = self._says(case)
        if says is None:
            self.losses.case(case, "everything", _why_unwritable(case))
            return None
        self._note_losses(case)
        defaults = self.defaults
        record = {
            "id": case.id,
            "name": case.name or case.id,
            "description": case.description,
            "tags": case.tags or None,
            "skip": case.skip or None,
            "agents": case.agents,
            **says,
            "simulator": _plain_or_none(case.simulator),
            "checkpoints": [self._checkpoint(one) for one in case.checkpoints] or None,
            "max_turns": case.max_turns,
            "constraints": self._limits(case) or None,
            "assertions": [self.assertion(one) for one in case.assertions] or None,
            "expectations": case.expectations or None,
            "expected": case.expected,
            "scoring": _plain_or_none(_unless(defaults.scoring, case.scoring)),
            **{
                key: _unless(getattr(defaults, key), getattr(case, key))
                for key in ("min_score", "pass_rate", "confidence", "margin")
            },
            "runs": _unless(defaults.given().get("runs_per_test"), case.runs),
            **{key: getattr(case, key) for key in ("user", "team", "locale")},
            "metadata": case.metadata or None,
            "options": _plain_or_none(case.options),
            **{key: getattr(case, key) for key in ("workspace", "before_hook", "after_hook")},
        }
        expects_null = "expected" in case.model_fields_set and case.expected is None
        return {
            key: value for key, value in record.items() if value is not None or (key == "expected" and expects_null)
        }

    def _says(self, case: Case) -> dict[str, Any] | None:
        """The keys with the prompt. The only form of a chain that both dialects have is a task."""
        if case.task is not None:
            return {"task": to_plain(case.task)}
        if case.messages:
            text = plain_message(case.messages)
            return {"messages": [to_plain(one) for one in case.messages]} if text is None else {"input": text}
        if case.chains:
            single = next((chain[0] for chain in case.chains if len(chain) == 1 and _fits_task(chain[0])), None)
            if single is None:
                return None
            if len(case.chains) > 1:
                self.losses.case(
                    case, "chains", f"{len(case.chains) - 1} of {len(case.chains)}: it takes one prompt only"
                )
            return {"task": {"description": single}}
        return {} if case.mode == "dialogue" else None

    def _checkpoint(self, checkpoint: Checkpoint) -> dict[str, Any]:
        plain = to_plain(checkpoint)
        del plain["assertion"]
        return plain | {"assertion": self.assertion(checkpoint.assertion)}

    def _limits(self, case: Case) -> dict[str, Any]:
        inherited = self.defaults.limits()
        return {
            key: value
            for key, value in to_plain(case.limits).items()
            if value is not None and (key not in inherited or inherited[key] != value)
        }

    def _note_losses(self, case: Case) -> None:
        if case.intent is not None:
            self.losses.case(case, "intent")
        if case.befores:
            self.losses.case(case, "befores", ", ".join(f"`{self.suite.cases[one].id}`" for one in case.befores))
        if case.path not in ([], [case.name], [self.suite.name, case.name]):
            self.losses.case(case, "path", " / ".join(case.path))
        if case.iterations is not None and case.iterations != self.suite.iterations:
            self.losses.case(case, "iterations", str(case.iterations))


def plain_message(messages: list[Message]) -> str | None:
    """The text of a conversation that is one plain message of the user; None for any other."""
    text = messages[0].content if len(messages) == 1 else None
    return text if isinstance(text, str) and to_plain(messages[0]) == {"role": "user", "content": text} else None


def _plain_or_none(record: Record | None) -> dict[str, Any] | None:
    return None if record is None else to_plain(record)


def _unless(default: Any, value: Any) -> Any:
    return None if value == default else value


def _fits_task(prompt: str) -> bool:
    try:
        Task(description=prompt)
    except ValidationError:
        return False
    return True


def _why_unwritable(case: Case) -> str:
    if not case.chains:
        return "it says nothing to the agent"
    several = all(len(chain) > 1 for chain in case.chains)
    return "its chains have several prompts" if several else "its prompt is too long"


def to_plain(record: Record) -> dict[str, Any]:
    """The record as JSON values: the keys that the file had, spelled-out defaults included, in one spelling."""
    plain = {
        field.serialization_alias or name: _plain(getattr(record, name), _takes_fractions(field.annotation))
        for name, field in type(record).model_fields.items()
        if name in record.model_fields_set and not field.exclude
    }
    return plain | (record.model_extra or {})


def _plain(value: Any, is_number: bool) -> Any:
    if isinstance(value, Record):
        return to_plain(value)
    if isinstance(value, list):
        return [_plain(item, is_number=False) for item in value]
    if is_number and isinstance(value, float) and value.is_integer():
        return int(value)  # `timeout: 30` has become 30.0; a free value's 30.0 is left as it is
    return value


def _takes_fractions(annotation: Any) -> bool:
    return annotation is float or any(_takes_fractions(part) for part in get_args(annotation))


def flat_assertion(assertion: Assertion) -> dict[str, Any]:
    """An assertion as in the JSONL format: the kind's own keys beside the common ones."""
    own, common = _parts(assertion, flat_assertion)
    return {"type": assertion.type, **own, **common}


def nested_assertion(assertion: Assertion) -> dict[str, Any]:
    """An assertion as in the YAML suite format: the kind's own keys in `config`."""
    own, common = _parts(assertion, nested_assertion)
    if isinstance(assertion, Group) or not own:
        return {"type": assertion.type, **own, **common}
    return {"type": assertion.type, "config": own, **common}


def _parts(assertion: Assertion, inner: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    own, common = to_plain(assertion), {}
    for key in Assertion.model_fields:
        if key in own:
            common[key] = own.pop(key)
    del common["type"]
    if isinstance(assertion, Group):
        own["assertions"] = [inner(one) for one in assertion.assertions]
    return own, common
