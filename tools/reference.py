"""Writes `docs/reference/`: every command and flag, and every key of every record, from the code that reads them.

`make docs` runs it. A test sees to it that the pages in the repository are up to date.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from pydantic import AliasChoices, BaseModel
from pydantic_core import PydanticUndefined

from atp.checks import output
from atp.cli.main import COMMANDS
from atp.engine.prepare.identity import Identity
from atp.engine.prepare.options import settings
from atp.loader.cases import COMMON_KEYS, JSONL_KEYS, YAML_KEYS
from atp.loader.markdown.frontmatter import Frontmatter
from atp.loader.schema import field_docstrings
from atp.loader.yaml.suite import SUITE_KEYS
from atp.suite import agent, assertion, case, message, options, paths, record, reference, suite

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made by tools/reference.py (`make docs`): edit the docstrings in the code, not this page. -->"


def pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    return {"flags.md": _page(_flags()), "keys.md": _page(_keys())}


def _page(lines: Iterable[str]) -> str:
    return "\n".join([MADE, "", *lines]).rstrip() + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(_cell(text) for text in row)} |"
    yield ""


def _cell(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text).replace("|", "\\|")


# Commands and flags


def _flags() -> Iterator[str]:
    yield "# Commands and flags"
    yield ""
    for name in COMMANDS:
        yield from _command(name, import_module(f"atp.cli.{name}").command)
    yield "## Settings"
    yield ""
    yield "Where each setting of `atp test` can be given. [Settings](../settings.md) says which goes first."
    yield ""
    yield from _table(("setting", "`atp.toml`", "environment", "is"), map(_setting, settings().items()))


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"atp {name}")
    arguments = [one.make_metavar(context) for one in command.params if isinstance(one, click.Argument)]
    yield f"## atp {name}"
    yield ""
    yield f"`{' '.join([f'atp {name}', '[OPTIONS]', *arguments])}`"
    yield ""
    yield from inspect.cleandoc(command.help or "").split("\n")
    yield ""
    rows = [_option(one, context) for one in command.params if isinstance(one, click.Option)]
    if rows:
        yield from _table(("flag", "does"), rows)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _command(f"{name} {below}", found)


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    spelled = [*sorted(option.opts, key=len), *option.secondary_opts]
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    return ", ".join(f"`{one}{value}`" for one in spelled), option.help or ""


def _setting(named: tuple[str, dict[str, Any]]) -> tuple[str, ...]:
    name, about = named
    flag = next((one for one in about["flags"] if one.startswith("--")), f"--{name.replace('_', '-')}")
    if about["only_flag"]:
        return f"`{flag}`", "", "", about["help"]
    return f"`{flag}`", f"`{name}`", f"`ATP_{name.upper()}`", about["help"]


# Keys of records


def _keys() -> Iterator[str]:
    yield "# Keys"
    yield ""
    yield "Every key of every record that a test file can have. A key that isn't here is an error. Where a key has two"
    yield "spellings, both work, never both at once."
    yield ""
    yield from _record("Suite", suite.Suite, "A YAML file is one of these.", allowed=SUITE_KEYS)
    yield from _record("Defaults", suite.Defaults)
    yield from _cases()
    for name, shape in _RECORDS.items():
        if shape not in (suite.Suite, suite.Defaults):
            yield from _record(name, shape)
    yield from _record("Frontmatter", Frontmatter, "The head of a `.test.md` file. Keys in any letter case.")
    yield from _record("Test environment", Identity, "The file of `--ctx`.")
    yield from _agents()
    yield from _assertions()
    yield from _scalars()


def _cases() -> Iterator[str]:
    yield "## Test"
    yield ""
    yield "A test of a YAML suite, or a record of a JSONL file. Keys that work *everywhere* are labels in Markdown;"
    yield "there `user` is called `Actor`. A YAML test needs a `name`, too."
    yield ""
    docstrings = field_docstrings(case.Case)
    rows = []
    for name, keys in _spellings(case.Case).items():
        known = [key for key in keys if key in YAML_KEYS | JSONL_KEYS]
        if known:
            where = "everywhere" if known[0] in COMMON_KEYS else "YAML, JSONL" if known[0] in JSONL_KEYS else "YAML"
            rows.append((_code(known), where, _type(case.Case, name), docstrings.get(name, "")))
    yield from _table(("key", "in", "type", "is"), rows)


def _record(
    title: str, shape: type[BaseModel], about: str = "", allowed: frozenset[str] | None = None
) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield " ".join(part for part in (_summary(shape), about) if part)
    yield ""
    yield from _table(("key", "type", "is"), _rows(shape, allowed))


def _agents() -> Iterator[str]:
    yield "## Agents"
    yield ""
    yield from _table(("key", "type", "is"), _rows(agent.Agent))
    for kind, config in sorted(agent.CONFIGURATIONS.items()):
        yield f"### Agents of type {kind}"
        yield ""
        yield _summary(config)
        yield ""
        yield from _table(("key", "type", "is"), _rows(config))


def _assertions() -> Iterator[str]:
    yield "## Assertions"
    yield ""
    yield "Every kind takes these; its own keys may stand beside `type` or in `config`."
    yield ""
    yield from _table(("key", "type", "is"), _rows(assertion.Assertion))
    common = set(assertion.Assertion.model_fields)
    for kind in assertion.ASSERTIONS.names:
        yield f"### {kind}"
        yield ""
        record = assertion.ASSERTIONS.find(kind)
        assert record is not None
        yield _summary(record)
        yield ""
        yield from _table(("key", "type", "is"), _rows(record, leave_out=common))


def _scalars() -> Iterator[str]:
    yield "## Types"
    yield ""
    yield "What the types in these tables are."
    yield ""
    yield from _table(("type", "is"), ((words, text) for words, text in _DESCRIBED.items()))


def _rows(
    shape: type[BaseModel], allowed: frozenset[str] | None = None, leave_out: Iterable[str] = ()
) -> Iterator[tuple[str, ...]]:
    docstrings = field_docstrings(shape)
    for name, keys in _spellings(shape).items():
        known = [key for key in keys if allowed is None or key in allowed]
        if known and name not in leave_out:
            yield _code(known), _type(shape, name), docstrings.get(name, "")


def _spellings(shape: type[BaseModel]) -> dict[str, list[str]]:
    """The keys that a file may give for each field."""
    found = {}
    for name, field in shape.model_fields.items():
        alias = field.validation_alias
        found[name] = [str(one) for one in alias.choices] if isinstance(alias, AliasChoices) else [str(alias or name)]
    return found


def _code(keys: Iterable[str]) -> str:
    return " or ".join(f"`{key}`" for key in keys)


def _summary(shape: type[BaseModel]) -> str:
    return inspect.cleandoc(shape.__doc__ or "").partition("\n\n")[0]


# Types in words

_RECORDS: dict[str, type[BaseModel]] = {
    "Suite": suite.Suite,
    "Defaults": suite.Defaults,
    "Task": case.Task,
    "Constraints": case.Limits,
    "Scoring": case.Weights,
    "Message": message.Message,
    "Text part": message.TextPart,
    "Image part": message.ImagePart,
    "Image URL part": message.ImageUrlPart,
    "Image address": message.ImageAddress,
    "File part": message.FilePart,
    "Audio part": message.AudioPart,
    "Simulator": case.Simulator,
    "Checkpoint": case.Checkpoint,
    "Options": options.Options,
}
_TITLES = {shape: name for name, shape in _RECORDS.items()} | {case.Case: "Test"}
_PLAIN = {str: "text", bool: "true or false", int: "whole number", float: "number", type(None): "", Any: "any value"}
_WORDS = {
    "Text": "text",
    "Regex": "regular expression",
    "Count": "count",
    "Whole": "whole number",
    "Fraction": "share",
    "Share": "share above 0",
    "Score": "score",
    "Amount": "amount",
    "Seconds": "duration",
    "Json": "any value",
    "JsonObject": "mapping",
    "JsonPathText": "JSONPath",
    "JsonSchemaObject": "JSON Schema",
    "Matched": "value or matcher",
    "PrefixedAgent": "`agents:` reference",
    "BareAgent": "agent id",
    "Script": "script reference",
    "Entry": "function reference",
    "Contained": "value to find",
}
"""The types that records share, by their names in the code."""
_MODULES = (record, paths, output, reference)
_ALIASES = {name: vars(module)[name] for module in _MODULES for name in _WORDS if name in vars(module)}


def _alias_docstrings() -> dict[str, str]:
    """What stands below each alias in the code."""
    found: dict[str, str] = {}
    for module in _MODULES:
        body = ast.parse(inspect.getsource(module)).body
        for one, below in pairwise(body):
            match one, below:
                case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found


_DOCSTRINGS = _alias_docstrings()
_DESCRIBED = {_WORDS[name]: _DOCSTRINGS[name] for name in _ALIASES}


def _type(shape: type[BaseModel], name: str) -> str:
    """A field's type in words, and its default if that says something."""
    hints = get_type_hints(shape, include_extras=True)
    words = "mapping" if (shape, name) == (agent.Agent, "config") else _words(hints[name])
    field = shape.model_fields[name]
    if field.is_required():
        return f"{words}, needed" if name != "type" else words
    default = field.default
    if default in (None, PydanticUndefined, "", False):
        return words
    return f"{words} (`{str(default).lower() if isinstance(default, bool) else default}`)"


def _words(hint: Any) -> str:
    alias = next((name for name, one in _ALIASES.items() if one == hint), None)
    if alias is not None:
        return _WORDS[alias]
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(inside[0], inside[1:])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inside)
    if origin in (list, frozenset):
        return f"list of {_words(inside[0])}"
    if origin is dict:
        return "mapping" if inside[1] is Any else f"mapping of {_words(inside[1])}"
    if origin is Union or origin is type(int | str):
        parts = [words for one in inside if (words := _words(one))]
        return " or ".join(dict.fromkeys(parts))
    return _named(hint)


def _annotated(inner: Any, rules: tuple[Any, ...]) -> str:
    if assertion.ANY_ASSERTION in rules:
        return "[assertion](#assertions)"
    if agent.ANY_AGENT in rules:
        return "[agent](#agents)"
    return _words(inner)


def _named(hint: Any) -> str:
    title = _TITLES.get(hint)
    if title is not None:
        return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"
    return "depends on the kind" if hint is object else getattr(hint, "__name__", str(hint))


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
