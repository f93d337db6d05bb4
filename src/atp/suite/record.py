"""The base classes of all records, and the scalar types they share."""

import re
import warnings
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from atp.base.near import near_miss


class Record(BaseModel):
    """A record of a file. An unknown key is an error."""

    model_config = ConfigDict(
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,
        populate_by_name=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


class OpenRecord(Record):
    """A record that passes further keys on to user code. A misspelled key of its own is an error."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, "Json"]

    @model_validator(mode="before")
    @classmethod
    def _catch_near_misses(cls, raw: Any) -> Any:
        if isinstance(raw, dict):
            for key in raw:
                if key not in cls.model_fields and (meant := near_miss(str(key), cls.model_fields)):
                    raise PydanticCustomError(
                        "near_miss",
                        "unknown key `{key}`: did you mean `{meant}`?",
                        {"key": str(key), "meant": meant},
                    )
        return raw


class Defaulting(Record):
    """A record that knows which of its values a file gives, and which are defaults. A null counts as not given."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, raw: Any) -> Any:
        if type(raw) is not dict or None not in raw.values():
            return raw
        return {key: value for key, value in raw.items() if value is not None}

    def given(self) -> dict[str, Any]:
        """The values that are given, without defaults."""
        names = self.model_fields_set
        if not names:
            return {}
        return {name: value for name, value in self.__dict__.items() if name in names and value is not None}


class Filled(str):
    """Text that is the value of one variable (`${TAGS}`), and may be parsed as a list or a mapping."""

    __slots__ = ()


class Defaulted(Filled):
    """Text that is the default of one variable (`${N:3}`), and is parsed as YAML in untyped places."""

    __slots__ = ()

    #: Set by the loader: turns the text into the value YAML gives it.
    read: ClassVar[Callable[[str], Any]] = str


def _resolve_defaults(value: Any) -> Any:
    if type(value) is Defaulted:
        return Defaulted.read(value)
    if type(value) is Filled:
        return str(value)
    if type(value) is dict:
        return {key: _resolve_defaults(item) for key, item in value.items()}
    if type(value) is list:
        return [_resolve_defaults(item) for item in value]
    return value


def _no_bool(value: Any) -> Any:
    # In Python True is 1, in a test file `runs: true` is a mistake.
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "expected a number, found {found}", {"found": str(value).lower()})
    return value


def _only_bool(value: Any) -> Any:
    # pydantic also takes "yes" and 1. In a variable, where everything is text, they are fine.
    if isinstance(value, int | str) and not isinstance(value, bool | Filled | Defaulted):
        raise PydanticCustomError("bool_type", "expected true or false")
    return value


METRIC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""The name of a metric."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*)+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def _duration(value: Any) -> Any:
    """`"1m30s"` and `90` are the same: seconds."""
    if isinstance(value, str) and _DURATION.fullmatch(value.strip()):
        return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(value))
    if isinstance(value, str) and not re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        raise PydanticCustomError("duration", 'expected a duration like "30s", "5m" or "1h30m"')
    return _no_bool(value)


def compile_regex(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression, without Python's warnings about doubtful ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern)


def check_sought(value: Any) -> Any:
    """Refuse the empty text as a value to search for: every text contains it, so it would check nothing."""
    if value in ("", {"$literal": ""}):
        raise PydanticCustomError(
            "empty", "the empty text is found in every other, so this checks nothing", {"hint": "say what to look for"}
        )
    return value


def _regex(value: str) -> str:
    try:
        compile_regex(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise PydanticCustomError("regex", "not a regular expression: {why}", {"why": str(error)}) from error
    return value


Json = Annotated[Any, BeforeValidator(_resolve_defaults)]
"""Any JSON value, in a place whose type only the agent or the user's own code knows."""
JsonObject = Annotated[dict[str, Any], BeforeValidator(_resolve_defaults)]
"""A JSON object with free keys."""
Text = Annotated[str, Field(min_length=1)]
"""Text that isn't empty."""
Names = Annotated[list[Text], Field(min_length=1)]
"""A list of names, at least one."""
NameOrNames = Annotated[
    Annotated[Text, Tag("name")] | Annotated[Names, Tag("names")],
    Discriminator(lambda value: "names" if isinstance(value, list) else "name"),
]
"""A name, or a list of names, at least one."""
Regex = Annotated[str, Field(json_schema_extra={"minLength": 1}), AfterValidator(check_sought), AfterValidator(_regex)]
"""A regular expression of Python's `re`, not an empty one."""
Truth = Annotated[bool, BeforeValidator(_only_bool)]
"""True or false, and no other word for it."""
Count = Annotated[int, Field(ge=1), BeforeValidator(_no_bool)]
"""A whole number from 1."""
AUTO: Final = "auto"
"""As many runs as the gate of a case needs."""
Runs = Annotated[
    Annotated[Literal["auto"], Tag("auto")] | Annotated[Count, Tag("count")],
    Discriminator(lambda value: "auto" if value == AUTO else "count"),
]
"""A whole number from 1, or `auto`."""
Whole = Annotated[int, Field(ge=0), BeforeValidator(_no_bool)]
"""A whole number from 0."""
Fraction = Annotated[float, Field(ge=0, le=1), BeforeValidator(_no_bool)]
"""A number from 0 to 1."""
Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(_no_bool)]
"""A number above 0, up to 1: a share of nothing would ask for nothing."""
Confidence = Annotated[float, Field(gt=0, lt=1), BeforeValidator(_no_bool)]
"""A number above 0 and below 1: nothing observed is ever certain."""
Margin = Annotated[float, Field(ge=0, lt=1), BeforeValidator(_no_bool)]
"""A number from 0, below 1."""
Score = Annotated[float, Field(ge=0, le=100), BeforeValidator(_no_bool)]
"""A number from 0 to 100."""
Number = Annotated[float, BeforeValidator(_no_bool)]
"""Any number."""
Amount = Annotated[float, Field(ge=0), BeforeValidator(_no_bool)]
"""A number that isn't negative."""
Seconds = Annotated[float, Field(gt=0), BeforeValidator(_duration)]
"""A duration: a number of seconds, or text like "30s", "5m", "1h30m"."""
