"""`OneOf`: in a record, "an assertion or an agent of any registered kind", validated by the class of its `type`."""

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from atp.base.registry import Registry


class OneOf:
    """The annotation of a field that takes one member of a registry, told apart by `type`.

    The class is looked up for each value. So a plugin may be registered after the record that has the field, and the
    classes of kinds that no file uses are never loaded.
    """

    def __init__(self, registry: Registry[Any], record_of: Callable[[str], type[BaseModel] | None]) -> None:
        """`record_of` gives the class that validates values of a `type`; none if there is no such kind."""
        self.registry = registry
        self.record_of = record_of

    def records(self) -> Iterator[type[BaseModel]]:
        """The classes of all kinds that are known by now."""
        return (record for name in self.registry.names if (record := self.record_of(name)) is not None)

    def __get_pydantic_core_schema__(self, source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        def validate(raw: Any) -> Any:
            return self._validate(raw) if isinstance(raw, dict) or not isinstance(raw, source) else raw

        return core_schema.no_info_plain_validator_function(validate)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.json_schema_mark

    @property
    def json_schema_mark(self) -> dict[str, Any]:
        """What stands for the kinds in a generated schema, until the loader puts their schemas there.

        pydantic could not generate them here: a group of assertions has assertions in it, and so on without end.
        """
        return {"x-one-of": self.registry.group}

    def _validate(self, raw: Any) -> Any:
        # The errors are those of pydantic's tagged unions, which `loader/error_messages.py` has words for.
        if not isinstance(raw, dict):
            raise PydanticKnownError("model_attributes_type")
        if "type" not in raw:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": "'type'"})
        kind = raw["type"]
        record = self.record_of(kind) if isinstance(kind, str) else None
        if record is None:
            expected = ", ".join(f"'{name}'" for name in self.registry.names)
            known = {"discriminator": "'type'", "tag": str(kind), "expected_tags": expected}
            raise PydanticKnownError("union_tag_invalid", known)
        return record.model_validate(raw)
