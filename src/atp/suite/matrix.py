"""`matrix` of an agent: values to try for keys of its configuration. Each combination of values is an agent by itself.

Such an agent is called a column, because reports show the agents of a run side by side.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from atp.base.json.text import encode
from atp.base.secret_values import is_secret_setting
from atp.base.secrets import current_secrets
from atp.base.text import one_line
from atp.suite.record import Json, Text

MOST_COLUMNS = 100
"""The most columns that one agent may become: more is a slip far more often than a wish."""
LONGEST_LABEL = 40
"""Characters of a value in the name of a column."""


def _check_values(values: list[Any]) -> list[Any]:
    for number, value in enumerate(values):
        # In Python `True == 1`, in a file they are two values.
        if any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values[:number]):
            raise PydanticCustomError(
                "matrix_twice",
                "{value} is there twice",
                {"value": one_line(_text(value), LONGEST_LABEL), "hint": "leave one out: each value is a column"},
            )
    return values


def _check_matrix(matrix: dict[str, list[Any]]) -> dict[str, list[Any]]:
    if (columns := prod(map(len, matrix.values()))) > MOST_COLUMNS:
        raise PydanticCustomError(
            "matrix_size",
            "{columns} combinations are more than the {most} columns that an agent may become",
            {"columns": columns, "most": MOST_COLUMNS, "hint": "try fewer values at a time"},
        )
    return matrix


Matrix = Annotated[
    dict[Text, Annotated[list[Json], Field(min_length=1), AfterValidator(_check_values)]],
    Field(min_length=1),
    AfterValidator(_check_matrix),
]
"""The values to try, by the key of `config`. A dot leads into a mapping: `environment.MODEL`."""


class Combination(NamedTuple):
    """One value of each key of a matrix."""

    values: dict[str, Any]
    """The value of each key."""
    numbers: dict[str, int]
    """The index of each value in its list."""

    def put_into(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration with the values in place of its own."""
        made = dict(config)
        for key, value in self.values.items():
            *above, last = key.split(".")
            place = made
            for name in above:
                below = place.get(name)
                place[name] = dict(below) if isinstance(below, dict) else {}
                place = place[name]
            place[last] = value
        return made


def combinations(matrix: Mapping[str, Sequence[Any]]) -> Iterator[Combination]:
    """Yield all combinations of values, the last key's values changing fastest."""
    for numbers in product(*(range(len(values)) for values in matrix.values())):
        picked = dict(zip(matrix, numbers, strict=True))
        yield Combination({key: matrix[key][number] for key, number in picked.items()}, picked)


def labels(matrix: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    """Return a readable text for each value of each key, different from those of the key's other values.

    A value that is secret, or that looks like another one once it is cut, is called by its number in the list.
    """
    found: dict[str, list[str]] = {}
    for key, values in matrix.items():
        texts = [_label(key, value) for value in values]
        found[key] = [
            text if text and texts.count(text) == 1 else f"{_before(key)}{_shortened(text)}#{number}"
            for number, text in enumerate(texts, 1)
        ]
    return found


def _label(key: str, value: Any) -> str:
    """Return the text for a value by itself; nothing if it may not be shown."""
    text = _text(value)
    if is_secret_setting(key.rpartition(".")[2]) or current_secrets().mask_text(text) != text:
        return ""
    return _before(key) + one_line(text, LONGEST_LABEL)


def _before(key: str) -> str:
    # A connector is what columns differ in most often, and its id says what it is.
    return "" if key == "connector" else f"{key}="


def _shortened(text: str) -> str:
    return f"{text.partition('=')[2][:12].rstrip()} " if text else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def column_name(agent: str, parts: Sequence[str]) -> str:
    """Return the name of a column: that of the agent, and what the column differs in."""
    return f"{agent} [{', '.join(parts)}]"
