"""The published schemas of JUnit and CTRF, as their README tells."""

import json
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import xmlschema
from jsonschema import Draft7Validator, FormatChecker

HERE = Path(__file__).parent
FORMATS = FormatChecker(())
"""jsonschema alone checks neither of the two formats that reports have, and lets pass what it does not check."""


@FORMATS.checks("uuid", ValueError)
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or str(uuid.UUID(value)) == value.lower()


@FORMATS.checks("date-time", ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


def junit_schema() -> xmlschema.XMLSchema:
    """What Jenkins' xUnit plugin takes for JUnit."""
    return xmlschema.XMLSchema((HERE / "junit-10.xsd").read_text("utf-8"))


def ctrf_schema() -> Draft7Validator:
    """The standard's own schema, with its formats."""
    schema: dict[str, Any] = json.loads((HERE / "ctrf.schema.json").read_text("utf-8"))
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema, format_checker=FORMATS)
