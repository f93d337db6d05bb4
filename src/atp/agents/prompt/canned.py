"""Tools with prepared answers: tests of a prompt need no service, and every call has the same result."""

from typing import Any

from atp.agents.prompt.head import CannedAnswer, CannedTool
from atp.agents.prompt.tools import ToolCalled, ToolFailed, ToolRun, UsableTool
from atp.models.model import Tool


class Canned(UsableTool):
    """A tool that answers by a table."""

    def __init__(self, name: str, table: CannedTool, stands_for: UsableTool | None) -> None:
        real = stands_for.tool if stands_for is not None else Tool(name=name, parameters=_parameters(table))
        self.tool = Tool(
            name=name,
            description=real.description if table.description is None else table.description,
            parameters=real.parameters if table.parameters is None else table.parameters,
        )
        self.files = stands_for.files if stands_for is not None else ()
        self._table = table
        self._check = _schema_check(self.tool.parameters)

    def standing_for(self, real: UsableTool) -> "Canned":
        """The same, in the place of a tool that was found only when the run began."""
        return Canned(self.tool.name, self._table, real)

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolCalled:
        """The answer that the table has for these arguments. How often it was asked is part of the agent's state."""
        if wrong := self._check(arguments):
            raise ToolFailed(wrong)
        for number, case in enumerate(self._table.when):
            if holds(case.arguments, arguments):
                return self._answer(case, f"{self.tool.name}/{number}", run)
        if not self._table.given:
            raise ToolFailed("no answer is prepared for these arguments (`tools` of the agent's file)")
        return self._answer(self._table, self.tool.name, run)

    def _answer(self, answer: CannedAnswer, place: str, run: ToolRun) -> ToolCalled:
        if answer.error is not None:
            raise ToolFailed(answer.error)
        if answer.results is None:
            return ToolCalled(result=answer.result)
        used = run.counts.get(place, 0)
        if used == len(answer.results):
            raise ToolFailed(f"no answer is left: {used} are prepared (`results` in the agent's file)")
        run.counts[place] = used + 1
        found = answer.results[used]
        if isinstance(found, dict) and found.keys() == {"error"}:
            raise ToolFailed(str(found["error"]))
        is_quoted = isinstance(found, dict) and found.keys() == {"result"}
        return ToolCalled(result=found["result"] if is_quoted else found)


def holds(expected: Any, found: Any) -> bool:
    """Whether a value has all that is expected of it; an object may have more."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            key in found and holds(value, found[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        is_same_length = isinstance(found, list) and len(expected) == len(found)
        return is_same_length and all(holds(one, other) for one, other in zip(expected, found, strict=True))
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)


def _parameters(table: CannedTool) -> dict[str, Any]:
    """At least the names of the arguments that the table knows."""
    names = dict.fromkeys(name for case in table.when for name in case.arguments)
    return {"type": "object", "properties": {name: {} for name in names}}


def _schema_check(schema: dict[str, Any]) -> Any:
    from jsonschema.validators import validator_for

    validator = validator_for(schema)(schema)

    def check(arguments: dict[str, Any]) -> str | None:
        found = sorted(validator.iter_errors(arguments), key=lambda one: [str(step) for step in one.absolute_path])
        reasons = [f"`{'.'.join(map(str, one.absolute_path))}`: {one.message}".removeprefix("``: ") for one in found]
        return "; ".join(reasons) or None

    return check
