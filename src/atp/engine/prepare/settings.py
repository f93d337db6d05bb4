"""Settings: flags before a case's own values, before the environment, before `atp.toml` or `pyproject.toml`."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from atp.agents.leftovers import OF_AGENT, OF_PROCESS, OF_RUN
from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, Place, has_errors
from atp.base.near import near_miss
from atp.base.secret_values import secret_variables
from atp.base.secrets import Secrets
from atp.engine.prepare.options import Options, settings
from atp.loader.source import read_source
from atp.loader.validate import DataPath, NoLocator, validate
from atp.usercode.environment import Environment

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""^("(?:[^"\\]|\\.)*"|'[^']*')\s+#.*$""")
"""A value in quotes, with a comment behind it."""


class _TomlLocator:
    """Finds keys in a TOML text by their name, because tomllib keeps no positions."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        ours = [number for number, line in enumerate(self._lines) if re.match(r"\s*\[tool\.atp\b", line)]
        self._begin = ours[0] if ours else 0

    def key(self, path: DataPath) -> Place:
        keys = [str(one) for one in path if isinstance(one, str)]  # items of lists have no names
        name = re.escape(keys[-1] if keys else "").replace("_", "[-_]")
        pattern = re.compile(rf"\s*[\"']?{name}[\"']?\s*=|\[.*\b{name}\]")
        for number, line in enumerate(self._lines[self._begin :], self._begin + 1):
            if pattern.match(line):
                return Place(number, len(line) - len(line.lstrip()) + 1)
        return Place(1, 1)

    def value(self, path: DataPath) -> Place:
        place = self.key(path)
        line = self._lines[place.line - 1]
        after = re.match(r"[^=]*=\s*", line)
        return Place(place.line, after.end() + 1) if after else place


def table_offset(text: str, name: str) -> int:
    """The offset at which a table of a TOML text begins, by the last part of its name; 0 if it is not found."""
    found = re.search(rf"""^\s*(?:\[.*\b|["']?){re.escape(name)}["']?\s*[].=]""", text, re.MULTILINE)
    return found.start() if found else 0


def find_config(root: Path) -> tuple[Path, dict[str, Any], str] | None:
    """Return the settings file of a project, its settings and its text. Raises `LoadError`."""
    for name in ("atp.toml", "pyproject.toml"):
        path = root / name
        if not path.is_file():
            continue
        text = _read(path)
        try:
            data: Any = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
            raise LoadError(_toml_error(path, error)) from error
        if name == "pyproject.toml":
            tools = data.get("tool")
            if not isinstance(tools, dict) or "atp" not in tools:
                continue
            data = tools["atp"]
        if isinstance(data, dict):
            return path, data, text
        notes = Diagnostics(str(path))
        notes.error("wrong-type", "`tool.atp` must be a table", _TomlLocator(text).key(("atp",)), "write [tool.atp]")
        raise LoadError(notes)
    return None


def _read(path: Path) -> str:
    notes = Diagnostics(str(path))
    source = read_source(path, notes)
    if source is None:
        raise LoadError(notes)
    return source.text


def connectors(root: Path) -> dict[str, Any]:
    """Return the connectors of the settings file: `[connectors."NAME"]`. Raises `LoadError`."""
    config = find_config(root)
    tables = config[1].get("connectors", {}) if config else {}
    if config is not None and not isinstance(tables, dict):
        notes = Diagnostics(str(config[0]))
        at = _TomlLocator(config[2]).key(("connectors",))
        notes.error("wrong-type", "`connectors` must be a table", at, 'write [connectors."NAME"]')
        raise LoadError(notes)
    return tables


def _toml_error(path: Path, error: Exception) -> Diagnostics:
    notes = Diagnostics(str(path))
    found = re.search(r"line (\d+), column (\d+)", str(error))
    at = Place(int(found[1]), int(found[2])) if found else Place(1, 1)
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition(" (at")[0]
    notes.error("syntax", f"not TOML: {why.partition(';')[0]}", at, "fix the file")
    return notes


def read_env_file(path: Path, *, must_exist: bool) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return the variables of a `.env` file, and warnings about the file. Raises `LoadError`."""
    notes = Diagnostics(str(path))
    if not path.is_file():
        if must_exist:
            notes.error("no-such-file", f"{path}: there is no such file", hint="check --env-file")
            raise LoadError(notes)
        return {}, []
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(_read(path).split("\n"), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = _LINE.fullmatch(bare)
        if match is None:
            notes.error("syntax", "expected NAME=value", Place(number, 1), "fix the line, or begin it with #")
            continue
        name = match[1]
        if name in lines:
            message = f"{name} is set in line {lines[name]} already: this line is used instead"
            at = Place(number, line.index(bare) + match.start(1) + 1)
            notes.warn("duplicate-variable", message, at, "remove one of the lines")
        found[name], lines[name] = _unquote(match[2]), number
    if has_errors(notes):
        raise LoadError(notes)
    return found, list(notes)


def _unquote(value: str) -> str:
    value = _QUOTED.sub(r"\1", value)
    if value[:1] in ("'", '"') and value.endswith(value[0]) and len(value) > 1:
        inner = value[1:-1]
        return inner.replace("\\n", "\n").replace('\\"', '"') if value[0] == '"' else inner
    return value.partition(" #")[0].rstrip()


def environment(root: Path, env_file: str | None) -> Environment:
    """Return the process environment with the variables of `.env`, which never override variables that are set."""
    return Environment(
        *(
            read_env_file(Path(env_file), must_exist=True)
            if env_file
            else read_env_file(root / ".env", must_exist=False)
        )
    )


def _flag(name: str) -> str:
    """The long flag of a setting: `--gate` for `gates`."""
    flags = settings()[name]["flags"] if name in settings() else ()
    return next((flag for flag in flags if flag.startswith("--")), f"--{name.replace('_', '-')}")


def resolve_options(
    flags: Mapping[str, Any], root: Path, env: Mapping[str, str], spell: Callable[[str], str] = _flag
) -> Options:
    """Return the options of a run: flags before the environment, before the settings file. Raises `LoadError`.

    `spell` turns the name of a setting into the form that the caller used: `--name` on the command line.
    """
    known = settings()
    allowed = {name for name, about in known.items() if not about["only_flag"]}
    config = find_config(root)
    values: dict[str, Any] = {}
    if config is not None:
        path, data, text = config
        values |= _from_file(path, {key: value for key, value in data.items() if key not in SECTIONS}, text, allowed)
    values |= _from_environment(env, allowed)
    lower = frozenset(values.keys() - flags.keys())
    notes = Diagnostics("<command line>")
    made = validate(Options, {**values, **flags, "lower": lower}, notes, NoLocator(), spell=spell)
    if made is not None:
        _contradictions(made, notes, spell)
    if notes or made is None:
        raise LoadError(notes)
    return made


def _contradictions(options: Options, notes: Diagnostics, spell: Callable[[str], str]) -> None:
    """Report flags that contradict each other, and a filter without a tag."""
    tags = [word.strip() for word in (options.tags or "").split(",") if word.strip()]
    if options.tags and (not tags or "!" in tags):
        notes.error("empty", f"`{spell('tags')}` names no tag: {options.tags!r}", hint="write a,!b")
    if options.given("quiet") and options.given("verbose") and options.quiet and options.verbose:
        notes.error("contradiction", "--quiet and --verbose", hint="leave one out")
    if options.min_runs > options.max_runs:
        message = f"{spell('min_runs')} {options.min_runs} is more than {spell('max_runs')} {options.max_runs}"
        notes.error("contradiction", message, hint="give a smaller one, or a larger maximum")
    if options.only_failed and (options.resume or options.resume_from):
        hint = "--resume goes on with what is missing; --only-failed starts a new run"
        notes.error("contradiction", "--only-failed and --resume", hint=hint)


def environment_secrets(env: Mapping[str, str]) -> Secrets:
    """The secrets of an environment, and those of its file that the process overrides."""
    overridden = secret_variables(env.from_file) if isinstance(env, Environment) else set()
    return Secrets(secret_variables(env) | overridden)


def environment_warnings(env: Mapping[str, str]) -> list[Diagnostic]:
    """Return the warnings about the `.env` file, and about variables `ATP_…` that are no settings but nearly so."""
    notes = Diagnostics("<environment>")
    flags = {name.upper() for name, about in settings().items() if about["only_flag"]}
    known = {name.upper() for name in settings()} - flags
    for variable in sorted(env.keys() - {OF_RUN, OF_AGENT, OF_PROCESS}):
        name = variable.removeprefix("ATP_")
        if name == variable or name in known:
            continue
        if name in flags:
            notes.warn("unknown-setting", f"{variable} has no effect", hint="use the flag instead: atp test --help")
        elif meant := near_miss(name, known):
            notes.warn("unknown-setting", f"{variable} is not a setting", hint=f"did you mean `ATP_{meant}`?")
    return [*(env.warnings if isinstance(env, Environment) else ()), *notes]


_LISTS = ("name", "output", "connector", "gates")
"""Settings that take several values; a file may give one as a text, the environment separates them by commas."""
SECTIONS = frozenset({"agents", "connectors"})
"""Tables of the settings file that aren't settings."""


def _from_file(path: Path, data: dict[str, Any], text: str, allowed: set[str]) -> dict[str, Any]:
    notes = Diagnostics(str(path))
    locate = _TomlLocator(text)
    plain: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name in plain:
            notes.error("duplicate-key", f"`{name}` is given twice", locate.key((key,)), "remove one of them")
        plain[name] = value
    for listed in _LISTS:
        if isinstance(plain.get(listed), str):
            plain[listed] = [plain[listed]]
    from atp.loader.error_messages import unknown_key

    for key in plain.keys() - allowed:
        mistake = unknown_key(key, allowed | SECTIONS)
        notes.error(mistake.code, mistake.message, locate.key((key,)), mistake.hint)
    known = {key: value for key, value in plain.items() if key in allowed}
    validate(Options, known, notes, locate)
    if notes:
        raise LoadError(notes)
    return known


def _from_environment(env: Mapping[str, str], allowed: set[str]) -> dict[str, Any]:
    notes = Diagnostics("<environment>")
    found: dict[str, Any] = {}
    for name in allowed:
        value = env.get(f"ATP_{name.upper()}")
        if value:
            found[name] = value.split(",") if name in _LISTS else value
    validate(Options, found, notes, NoLocator(), spell=lambda name: f"ATP_{name.upper()}")
    if notes:
        raise LoadError(notes)
    return found
