"""Validates agents that have a `matrix`: every combination of values, with each mistake at the value that makes it."""

from itertools import islice
from math import prod
from typing import Any, TypeVar

from pydantic import BaseModel

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.validate import DataPath, Locator, validate
from atp.suite.agent import AgentList, with_first_values
from atp.suite.matrix import MOST_COLUMNS, combinations

Shape = TypeVar("Shape", bound=BaseModel)


class _ColumnPlaces:
    """The locator of agents whose configurations have values of a matrix: such a value is found in the matrix."""

    def __init__(self, locate: Locator, numbers: dict[int, dict[str, int]], moved: dict[int, int]) -> None:
        """`numbers` has the indexes of the values by agent and key; `moved` the index of an agent in its file."""
        self._locate = locate
        self._numbers = numbers
        self._moved = moved

    def key(self, path: DataPath) -> Place:
        """The place of a key, in the matrix if the key is there."""
        written, found = self._as_written(path)
        return self._locate.key(written[:-1] if found and found == len(path) else written)

    def value(self, path: DataPath) -> Place:
        """The place of a value, in the matrix if it comes from there."""
        return self._locate.value(self._as_written(path)[0])

    def _as_written(self, path: DataPath) -> tuple[DataPath, int]:
        """The path in the file, and how many steps of `path` lead to a value of the matrix; 0 if it is not in one."""
        if len(path) < 2 or path[0] != "agents" or not isinstance(path[1], int):
            return path, 0
        at: DataPath = ("agents", self._moved.get(path[1], path[1]))
        if len(path) > 2 and path[2] == "config":
            for key, number in self._numbers.get(path[1], {}).items():
                steps = tuple(key.split("."))
                if path[3 : 3 + len(steps)] == steps:
                    used = 3 + len(steps)
                    return (*at, "matrix", key, number, *path[used:]), used
        return (*at, *path[2:]), 0


def validate_agents(
    shape: type[Shape],
    raw: dict[str, Any],
    notes: Diagnostics,
    locate: Locator,
    spare: dict[str, Any] | None = None,
) -> Shape | None:
    """Validate a record that has `agents`, as `validate` does, and every column of those agents."""
    agents = raw.get("agents")
    matrices = {number: one["matrix"] for number, one in _with_matrix(agents)}
    if not matrices:
        return validate(shape, raw, notes, locate, spare=spare)
    filled = [with_first_values(one) if number in matrices else one for number, one in enumerate(agents or ())]
    first = {number: dict.fromkeys(matrix, 0) for number, matrix in matrices.items()}
    made = validate(shape, {**raw, "agents": filled}, notes, _ColumnPlaces(locate, first, {}), spare=spare)
    for number, matrix in matrices.items():
        for one in islice(combinations(matrix), 1, None):
            said = Diagnostics(notes.file)
            said.secrets = notes.secrets
            rest = {key: value for key, value in filled[number].items() if key != "matrix"}
            column = {**rest, "config": one.put_into(rest["config"])}
            places = _ColumnPlaces(locate, {0: one.numbers}, {0: number})
            validate(AgentList, {"agents": [column]}, said, places)
            notes.extend(mistake for mistake in said if mistake not in notes)
    return made


def _with_matrix(agents: Any) -> list[tuple[int, dict[str, Any]]]:
    """The agents whose matrix has the right form, each with its index; of others, validation reports the matrix."""
    found = []
    for number, one in enumerate(agents if isinstance(agents, list) else ()):
        matrix = one.get("matrix") if isinstance(one, dict) else None
        if not isinstance(matrix, dict) or not isinstance(one.get("config", {}), dict):
            continue
        lists = [values for key, values in matrix.items() if isinstance(key, str) and isinstance(values, list)]
        if len(lists) == len(matrix) and 0 < prod(map(len, lists)) <= MOST_COLUMNS:
            found.append((number, one))
    return found
