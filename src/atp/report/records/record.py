"""The base class of records, the types of their fields, and how figures are rounded in them."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]
Number = Annotated[float, Meta(ge=0)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Interval = Annotated[list[Percent], Meta(min_length=2, max_length=2)]
"""The lower and the upper limit, in percent."""
Limits = Annotated[list[float | None], Meta(min_length=2, max_length=2)]
"""The lower and the upper limit of a figure; null for one that is not known."""
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Yes = Annotated[bool, Meta(extra_json_schema={"const": True})]


class Record(Struct, kw_only=True, forbid_unknown_fields=True):
    """An object of a report: closed, with the keys in the order of the fields."""


def rounded(value: float) -> float:
    """The value with the nine decimals that a report has."""
    return round(value, 9)


def percents(interval: tuple[float, float]) -> list[float]:
    """The two limits in percent, with one decimal."""
    return [round(100 * limit, 1) for limit in interval]
