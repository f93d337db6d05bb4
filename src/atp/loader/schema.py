"""Generates the JSON Schema of each format, for editors, from the records that loading validates.

pydantic knows the types. Added here are the other spellings of a key, the short forms that the loaders accept, the keys
of each dialect, and the fields' docstrings.
"""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, pairwise
from typing import Any, ClassVar, Literal, get_args

from pydantic import AliasChoices, BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from atp.loader.cases import JSONL_KEYS, NEVER_NULL, YAML_KEYS
from atp.loader.markdown.frontmatter import Frontmatter
from atp.loader.yaml.suite import SUITE_KEYS
from atp.suite.agent import ANY_AGENT
from atp.suite.assertion import ANY_ASSERTION, Assertion
from atp.suite.case import Case, Simulator
from atp.suite.kinds import OneOf
from atp.suite.record import Seconds
from atp.suite.suite import Suite

Schema = dict[str, Any]
SchemaName = Literal["yaml", "jsonl", "frontmatter"]

_VARIABLE: Schema = {"type": "string", "pattern": r"\$\{"}
_DURATION: Schema = {
    "type": "string",
    "pattern": r"^\s*(?:(?:\d+(?:\.\d+)?\s*(?:ms|s|m|h|d)\s*)+|\d+(?:\.\d+)?\s*)$",
}
_READS_DURATION = next(rule.func for rule in get_args(Seconds) if hasattr(rule, "func"))


def schema(name: SchemaName) -> Schema:
    """The schema of a YAML suite, of one record of a JSONL file, or of a Markdown file's frontmatter."""
    record, generator, title = _SCHEMAS[name]
    result = record.model_json_schema(schema_generator=generator)
    for kinds in (ANY_AGENT, ANY_ASSERTION):
        result = _with_kinds(result, kinds, generator)
    return {"$schema": generator.schema_dialect, **result, "title": title}


def _with_kinds(result: Schema, kinds: OneOf, generator: type[GenerateJsonSchema]) -> Schema:
    """Put the schemas of all kinds, those of plugins included, where a field takes one of them."""
    mark = kinds.json_schema_mark
    if not _has(result, mark):
        return result
    kinds.registry.discover()
    defined: Schema = dict(result.get("$defs", {}))
    union: Schema = {"oneOf": []}
    for record in kinds.records():
        own = record.model_json_schema(schema_generator=generator)
        if kinds is ANY_AGENT:
            _allow_matrix_for_config(own)
        defined |= own.pop("$defs", {})
        defined[record.__name__] = own
        union["oneOf"].append({"$ref": f"#/$defs/{record.__name__}"})
    if kinds is ANY_ASSERTION:  # assertions stand in many places
        defined["Assertion"], union = union, {"$ref": "#/$defs/Assertion"}
    filled: Schema = _replaced(result | {"$defs": dict(sorted(defined.items()))}, mark, union)
    return filled


def _allow_matrix_for_config(agent: Schema) -> None:
    """Ask for `config` and its keys only where there is no `matrix`, which may have them instead."""
    name = agent["properties"]["config"].get("$ref", "").rpartition("/")[2]
    keys = agent.get("$defs", {}).get(name, {}).pop("required", [])
    agent["required"] = [key for key in agent.get("required", ()) if key != "config"]
    agent["if"] = {"not": {"required": ["matrix"]}}
    agent["then"] = {"required": ["config"], **({"properties": {"config": {"required": keys}}} if keys else {})}


class _Schema(GenerateJsonSchema):
    """pydantic's schema of the records, with everything that a file may have."""

    case_keys: ClassVar[frozenset[str]] = JSONL_KEYS
    case_needs: ClassVar[list[str]] = ["id"]

    def field_title_should_be_set(self, _schema: Any) -> bool:
        """Leave titles out: they only repeat the key in capitals."""
        return False

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> Schema:
        """Leave OpenAPI's list of tags out: each kind has its `type`."""
        result = super().tagged_union_schema(schema)
        result.pop("discriminator", None)
        return result

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Schema:
        """Accept durations as text."""
        result = super().function_before_schema(schema)
        return _either(result, _DURATION) if schema["function"]["function"] is _READS_DURATION else result

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """A record with every spelling of its keys."""
        result, shape = super().model_schema(schema), schema["cls"]
        allowed = SUITE_KEYS if shape is Suite else self.case_keys if shape is Case else None
        names = _spellings(shape, allowed)
        _spell_out(result, shape, names)
        if issubclass(shape, Assertion):
            _allow_config(result)
            _require(result, shape, names, _beside_or_in_config)
            return result
        _require(result, shape, names, _beside)
        if shape is Suite:
            _finish_suite(result)
        elif shape is Case:
            _finish_case(result, self.case_needs)
        elif shape is Simulator:
            result["required"] = ["use"]
        elif shape is Frontmatter:
            _finish_frontmatter(result)
        return result


class _YamlSchema(_Schema):
    """In YAML a variable can stand for any text, number or boolean."""

    case_keys = YAML_KEYS
    case_needs: ClassVar[list[str]] = ["id", "name"]

    def bool_schema(self, schema: core_schema.BoolSchema) -> Schema:
        """Accept a variable, too."""
        return _either(super().bool_schema(schema), _VARIABLE)

    def int_schema(self, schema: core_schema.IntSchema) -> Schema:
        """Accept a variable, too."""
        return _either(super().int_schema(schema), _VARIABLE)

    def float_schema(self, schema: core_schema.FloatSchema) -> Schema:
        """Accept a variable, too."""
        return _either(super().float_schema(schema), _VARIABLE)

    def str_schema(self, schema: core_schema.StringSchema) -> Schema:
        """Accept a variable, too, where the text has a pattern."""
        result = super().str_schema(schema)
        return _either(result, _VARIABLE) if "pattern" in result else result

    def literal_schema(self, schema: core_schema.LiteralSchema) -> Schema:
        """Accept a variable, too, except for `type`."""
        result = super().literal_schema(schema)
        return _either(result, _VARIABLE) if len(schema["expected"]) > 1 else result


class _FrontmatterSchema(_Schema):
    """In frontmatter a number may stand in quotes."""

    def int_schema(self, schema: core_schema.IntSchema) -> Schema:
        """Accept the number as text, too."""
        return _either(super().int_schema(schema), {"type": "string", "pattern": r"^\s*[0-9]+\s*$"})


_SCHEMAS: dict[str, tuple[type[BaseModel], type[_Schema], str]] = {
    "yaml": (Suite, _YamlSchema, "ATP test suite"),
    "jsonl": (Case, _Schema, "ATP test case"),
    "frontmatter": (Frontmatter, _FrontmatterSchema, "Frontmatter of an ATP test file"),
}


def _has(value: Any, mark: Schema) -> bool:
    if isinstance(value, dict):
        return mark.items() <= value.items() or any(_has(item, mark) for item in value.values())
    return isinstance(value, list) and any(_has(item, mark) for item in value)


def _replaced(value: Any, mark: Schema, new: Schema) -> Any:
    if isinstance(value, dict):
        if mark.items() <= value.items():
            return new | {key: item for key, item in value.items() if key not in mark}
        return {key: _replaced(item, mark, new) for key, item in value.items()}
    return [_replaced(item, mark, new) for item in value] if isinstance(value, list) else value


def _either(one: Schema, other: Schema) -> Schema:
    choices = one["anyOf"] if one.keys() == {"anyOf"} else [one]
    return {"anyOf": [*choices, other]}


def _spellings(shape: type[BaseModel], allowed: frozenset[str] | None) -> dict[str, list[str]]:
    """The keys that a file may give for each field."""
    found = {}
    for name, field in shape.model_fields.items():
        alias = field.validation_alias
        spellings = [str(one) for one in alias.choices] if isinstance(alias, AliasChoices) else [str(alias or name)]
        kept = [one for one in spellings if allowed is None or one in allowed]
        if kept:
            found[name] = kept
    return found


def _spell_out(result: Schema, shape: type[BaseModel], names: dict[str, list[str]]) -> None:
    """Give each spelling its property, with the field's docstring."""
    docstrings = field_docstrings(shape)
    known: dict[str, Schema] = result.get("properties", {})
    result["properties"] = {}
    for name, spellings in names.items():
        found = next(known[one] for one in spellings if one in known)
        described = {"description": docstrings[name]} if name in docstrings else {}
        plain = {key: value for key, value in found.items() if (key, value) != ("default", None)}
        result["properties"] |= dict.fromkeys(spellings, plain | described)


Places = Callable[[str], list[Schema]]


def _beside(key: str) -> list[Schema]:
    return [{"required": [key]}]


def _beside_or_in_config(key: str) -> list[Schema]:
    return [{"required": [key]}, {"properties": {"config": {"required": [key]}}, "required": ["config"]}]


def _require(result: Schema, shape: type[BaseModel], names: dict[str, list[str]], places: Places) -> None:
    """Add which keys are required, and which exclude each other."""
    required: list[str] = []
    rules: list[Schema] = []
    for name, spellings in names.items():
        given = [place for one in spellings for place in places(one)]
        if shape.model_fields[name].is_required():
            if len(given) == 1 or name == "type":
                required.append(spellings[0])
            else:
                rules.append({"oneOf": given})
        elif len(spellings) > 1 and (shape, name) != (Case, "messages"):
            rules += [{"not": {"allOf": list(pair)}} for pair in combinations(given, 2)]
    result.pop("required", None)
    if required:
        result["required"] = required
    if rules:
        result["allOf"] = rules


def _allow_config(result: Schema) -> None:
    """Accept the keys in `config`, too, as the YAML suite format has them."""
    inside = {key: value for key, value in result["properties"].items() if key != "type"}
    result["properties"]["config"] = {
        "type": "object",
        "description": "The keys of this kind; they may also stand beside `type`.",
        "properties": inside,
        "additionalProperties": result.get("additionalProperties", True),
    }


def _finish_suite(result: Schema) -> None:
    properties = result["properties"]
    properties["version"] = _either({"type": "string", "minLength": 1}, {"type": "number"}) | {
        "description": properties["version"]["description"]
    }
    for key in ("agents", "tests"):
        properties[key]["minItems"] = 1
    properties["gates"]["items"] = _either(properties["gates"]["items"], {"type": "string", "pattern": r"\S"})
    _allow_nulls(properties, ("version", "description", "defaults", "gates"))
    result["required"] = ["test_suite", "agents", "tests"]


def _finish_case(result: Schema, needs: list[str]) -> None:
    """Accept the short forms of lists, and require exactly one form of prompt."""
    properties = result["properties"]
    for key in ("assertions", "assert", "messages", "input"):
        many = properties[key]
        short = [many["items"]] if "assert" in key else [many["items"], {"type": "string", "pattern": r"\S"}]
        listed = {"type": "array", "items": many["items"], **({} if "assert" in key else {"minItems": 1})}
        properties[key] = {"anyOf": [listed, *short], "description": many["description"]}
    properties["checkpoints"]["minItems"] = 1
    result["required"] = needs
    _allow_nulls(properties, properties.keys() - NEVER_NULL - set(needs))
    result["anyOf"] = [{"required": [key]} for key in ("task", "input", "messages", "simulator", "checkpoints")]
    result.setdefault("allOf", []).extend({"not": {"required": ["task", other]}} for other in ("input", "messages"))
    result["dependentRequired"] = {"checkpoints": ["simulator"]}
    no_simulator = {"properties": {"simulator": {"type": "null"}}}
    result["dependentSchemas"] = {"simulator": {"anyOf": [no_simulator, {"required": ["checkpoints"]}]}}


def _allow_nulls(properties: dict[str, Schema], keys: Iterable[str]) -> None:
    """Accept null as the value of a key, which then counts as not given."""
    for key in keys:
        found = properties[key]
        if {"type": "null"} not in found.get("anyOf", ()):
            beside = ("description", "default")
            value = {name: item for name, item in found.items() if name not in beside}
            about = {name: item for name, item in found.items() if name in beside}
            properties[key] = _either(value, {"type": "null"}) | about


def _finish_frontmatter(result: Schema) -> None:
    """Accept the keys of other tools, and refuse empty values of our own."""
    for key, value in result["properties"].items():
        choices = [one for one in value.pop("anyOf", []) if one != {"type": "null"}]
        result["properties"][key] = value | (choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})
    listed = result["properties"]["tags"]
    result["properties"]["tags"] = {
        "anyOf": [{"type": "array", "items": listed["items"]}, {"type": "string"}],
        "description": f"{listed['description']} A list, or text with commas.",
    }
    result["required"] = ["target"]
    result["additionalProperties"] = True


def field_docstrings(shape: type[BaseModel]) -> dict[str, str]:
    """The docstring of each field, inherited fields included; empty if the source is not available.

    Not pydantic's `use_attribute_docstrings`: it reads the source of every class at import, which doubles start-up.
    """
    found: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if issubclass(base, BaseModel):
            found |= _module_docstrings(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _module_docstrings(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(__import__(module, fromlist=["*"])))
    except (OSError, TypeError, ImportError, SyntaxError):
        return {}
    return dict(_classes(tree, ""))


def _classes(around: ast.AST, prefix: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The docstrings of all classes in a module or class, by qualified name."""
    for node in ast.iter_child_nodes(around):
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", _own_docstrings(node)
            yield from _classes(node, f"{prefix}{node.name}.")


def _own_docstrings(shape: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, below in pairwise(shape.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found
