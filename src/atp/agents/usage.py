"""What an agent says that it used: the protocol's `metrics`, a model's `usage`."""

from typing import Any

from atp.agents.breach import ProtocolError
from atp.base.numbers import is_number
from atp.suite.result import Usage

_NAMES = {
    **{name: name for name in Usage.__struct_fields__},
    "total_steps": "steps",
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
}
_FRACTIONS = ("cost_usd", "wall_time_seconds")


def read_usage(raw: Any, where: str) -> tuple[Usage, dict[str, Any]]:
    """The usage, and what else was said beside it."""
    if not isinstance(raw, dict):
        raise ProtocolError(f"`{where}` is not an object")
    usage, unknown = Usage(), {}
    for name, value in raw.items():
        field = _NAMES.get(name)
        if field is None:
            unknown[name] = value
        elif value is not None:
            number = _number(value, field in _FRACTIONS, f"`{where}.{name}`")
            if name == field or getattr(usage, field) is None:
                setattr(usage, field, number)
    return usage, unknown


def _number(value: Any, fraction: bool, where: str) -> int | float:
    if not is_number(value) or value < 0:
        raise ProtocolError(f"{where} is not a number from 0")
    if fraction:
        return float(value)
    if value != int(value):
        raise ProtocolError(f"{where} is not a whole number")
    return int(value)
