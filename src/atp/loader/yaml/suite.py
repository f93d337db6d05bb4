"""Loads YAML suites."""

from collections.abc import Iterator
from typing import Any

from atp.base.diagnostics import Diagnostics, Place
from atp.base.numbers import is_number
from atp.base.secret_values import secret_settings
from atp.loader.cases import YAML_KEYS, CaseReader, check_default_gate
from atp.loader.error_messages import unknown_key
from atp.loader.source import LoadContext, Source
from atp.loader.validate import Locator, RenamedKeys, validate
from atp.loader.variables import fill_variables
from atp.loader.yaml.nodes import NodeLocator, parse_yaml
from atp.suite.suite import Suite

SUITE_KEYS = frozenset({"test_suite", "version", "description", "defaults", "gates", "agents", "tests"})
"""The top-level keys of a suite."""


def load_yaml(source: Source, context: LoadContext, notes: Diagnostics) -> Suite | None:
    """The suite in a YAML text, as far as it can be read. Mistakes are noted."""
    parsed = parse_yaml(source.text, notes)
    if parsed is None:
        return None
    secrets = fill_variables(parsed, source.text, context.env, notes)
    data, locate = parsed.data, parsed.locator
    if not isinstance(data, dict):
        if data is None:  # after `---` alone, the value would stand behind the last line
            notes.error("empty", "there is nothing in this file", Place(1, 1), "begin with `test_suite:`")
        else:
            notes.error("wrong-type", "a suite must be a mapping", locate.value(()), "begin with `test_suite:`")
        return None
    if "test_suite" not in data and {"prompts", "providers"} <= data.keys():
        hint = "ATP reads suites with `test_suite`, `agents` and `tests`; `atp init yaml` writes one to start from"
        notes.error("other-format", "this looks like a file of promptfoo's, which ATP does not read", Place(1, 1), hint)
        return None
    notes.secrets.update(secret_settings(data.get("agents")))  # before any message about the agents
    written: dict[str, str] = {}
    suite = _read_head(data, context, notes, locate, written)
    if suite is None:
        return None
    places: Locator = RenamedKeys(locate, (), written) if written else locate
    suite.path = source.path
    notes.secrets.update(secrets, *(secret_settings(agent.config.model_dump()) for agent in suite.agents))
    suite.secrets = frozenset(notes.secrets)
    reader = CaseReader(
        notes,
        context,
        YAML_KEYS,
        needs_name=True,
        defaults=suite.defaults,
        # An agent named on the command line may replace the suite's, and then the tests' own lists don't count.
        agent_names=None if context.agent or (context.spare_agent and not suite.agents) else _names(data, suite),
    )
    tests = data.get("tests")
    for index, raw in enumerate(tests if isinstance(tests, list) else ()):
        case = reader.read(raw, index, places, ("tests", index))
        if case is not None:
            suite.cases.append(case)
    check_default_gate(suite.defaults, suite.cases, context, notes, lambda key: places.key(("defaults", key)))
    return suite


def _read_head(
    data: dict[str, Any], context: LoadContext, notes: Diagnostics, locate: NodeLocator, written: dict[str, str]
) -> Suite | None:
    """Validate the suite without its tests. Misspelled keys are renamed in `data`, and entered in `written`."""
    for key in data.keys() - SUITE_KEYS:
        mistake = unknown_key(key, SUITE_KEYS)
        notes.error(mistake.code, mistake.message, locate.key((key,)), mistake.hint)
        if mistake.meant and mistake.meant not in data:
            written[mistake.meant] = key
            data[mistake.meant] = data[key]  # read on as it was meant, to find what else is wrong
    head: dict[str, Any] = {
        key: data[key] for key in ("test_suite", "version", "description", "defaults", "gates", "agents") if key in data
    }
    head = {key: value for key, value in head.items() if value is not None or key == "test_suite"}
    if is_number(head.get("version")):
        head["version"] = locate.written(("version",))  # 1.10 is no 1.1
    if "test_suite" not in data:
        notes.error("missing-key", "`test_suite` is missing", locate.key(("test_suite",)), "add the suite's name")
        head["test_suite"] = "suite"
    _check_filled(data, "tests", "at least one test is required", notes, locate)
    if not context.agent and not context.spare_agent:
        _check_filled(data, "agents", "at least one agent is required", notes, locate)
    respelt = RenamedKeys(locate, (), written)
    suite = _validate(head, notes, respelt)
    _check_agent_names(data.get("agents"), notes, respelt)
    numbers = {name: number for number, name in _agent_names(data.get("agents"))}
    for agent in suite.agents if suite is not None else ():
        at = ("agents", numbers[agent.name])
        written_agent = data["agents"][numbers[agent.name]]
        keys: dict[str, Place] = {}
        for below in ("config", "matrix"):
            given = written_agent.get(below)
            keys |= {key: respelt.key((*at, below, key)) for key in (given if isinstance(given, dict) else {})}
        agent.stands_at(respelt.value(at), keys)
    return suite


def _validate(head: dict[str, Any], notes: Diagnostics, locate: Locator) -> Suite | None:
    agents, spare = head.get("agents"), {"test_suite": "suite"}
    if not any(isinstance(one, dict) and "matrix" in one for one in (agents if isinstance(agents, list) else ())):
        return validate(Suite, head, notes, locate, spare=spare)
    from atp.loader.matrix import validate_agents  # imported late: only few suites need it

    return validate_agents(Suite, head, notes, locate, spare)


def _check_filled(data: dict[str, Any], key: str, message: str, notes: Diagnostics, locate: Locator) -> None:
    otherwise = ", or name one with -n" if key == "agents" else ""
    if key not in data:
        notes.error("missing-key", f"`{key}` is missing: {message}", locate.key((key,)), f"add `{key}:`{otherwise}")
    elif data[key] is None or data[key] == []:
        data.pop(key)
        notes.error("empty", f"`{key}` is empty: {message}", locate.key((key,)), f"add one below `{key}:`{otherwise}")
    elif key == "tests" and not isinstance(data[key], list):
        notes.error("wrong-type", "`tests` must be a list", locate.value((key,)), "begin each test with `- id:`")


def _names(data: dict[str, Any], suite: Suite) -> frozenset[str]:
    """The names of agents that tests may list: those of the file, and those of the columns of a matrix."""
    columns = (name for agent in suite.agents for name in agent.column_names)
    return frozenset([*(name for _, name in _agent_names(data.get("agents"))), *columns])


def _check_agent_names(agents: Any, notes: Diagnostics, locate: Locator) -> None:
    seen: set[str] = set()
    for number, name in _agent_names(agents):
        if name in seen:
            at = locate.value(("agents", number, "name"))
            notes.error("duplicate-agent", f"the agent `{name}` is there twice", at, "give it another name")
        seen.add(name)


def _agent_names(agents: Any) -> Iterator[tuple[int, str]]:
    """The index and name of each agent, also of agents with mistakes, because tests may name them."""
    for number, raw in enumerate(agents if isinstance(agents, list) else ()):
        name = raw.get("name") if isinstance(raw, dict) else None
        if isinstance(name, str):
            yield number, name
