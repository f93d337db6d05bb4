"""Turns the agents of a run into the columns of its grid: one for each combination of a `matrix` and each connector."""

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from atp.base.diagnostics import Diagnostics, Place
from atp.base.near import near_miss
from atp.base.text import one_line
from atp.engine.named_agent import NamedAgent
from atp.engine.prepare.options import Options
from atp.suite.agent import PromptConfig
from atp.suite.matrix import MOST_COLUMNS, column_name

CONNECTOR = "connector"
_MODEL_KEYS = (CONNECTOR, "model")
"""The keys of a prompt's configuration that name its connector."""


def columns_of(named: NamedAgent, options: Options, notes: Diagnostics, file: str | None = None) -> list[NamedAgent]:
    """Return the columns of an agent; the agent itself, if it has no matrix and the options name at most one connector.

    A connector that a flag names replaces the agent's own, and so does each of several, wherever they are named.
    """
    agent, connectors = named.agent, options.connector
    several = len(connectors) > 1
    replacing: list[str | None] = [*connectors] if several or (connectors and options.given(CONNECTOR)) else [None]
    if agent.matrix is None and replacing == [None]:
        return [named]
    here = Diagnostics(file if agent.place.line else None)
    keys = _MODEL_KEYS if isinstance(agent.config, PromptConfig) else (CONNECTOR,)
    tried = next((key for key in keys if key in (agent.matrix or {})), None)
    if tried is not None and replacing != [None]:
        hint = f"leave -c out, or take `{tried}` out of the matrix"
        message = f"-c and `matrix.{tried}` of the agent `{agent.name}` both choose the connector"
        here.error("contradiction", message, agent.place_of(tried), hint)
    try:
        rows = agent.columns()
    except ValidationError as error:  # the loader has reported it, unless the agent was made in code
        why = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        here.error("agent-configuration", f"agent `{agent.name}`: its `matrix`: {why}", agent.place)
        rows = []
    if len(rows) * len(replacing) > MOST_COLUMNS:
        message = f"agent `{agent.name}`: {len(rows)} combinations with {len(replacing)} connectors each are too many"
        here.error("too-many-columns", message, agent.place, f"an agent may become {MOST_COLUMNS} columns at most")
    notes.extend(here)
    if here:
        return []
    found: list[NamedAgent] = []
    for parts, column in rows:
        own = None if tried is None else str(column.column_values[tried])
        for connector in replacing:
            one = column.model_copy(deep=True)
            if several and connector is not None:
                one.name = column_name(agent.name, [*parts, one_line(connector)])
            made = named.as_column(one, connector or own)
            if one.name != column.name:
                made.column, made.column_connector = column.name, connector
            found.append(made)
    return found


def all_columns(
    agents: Iterable[NamedAgent], options: Options, notes: Diagnostics, file: str | None = None
) -> list[NamedAgent]:
    """Return the columns of all agents of a suite. Two of the same name are an error: reports could not tell them."""
    found: list[NamedAgent] = []
    names: set[str] = set()
    for named in agents:
        for column in columns_of(named, options, notes, file):
            if column.agent.name in names:
                at = named.agent.place
                here = Diagnostics(file if at.line else None)
                message = f"two agents would be called `{column.agent.name}`"
                here.error("duplicate-agent", message, at, "give one another name")
                notes.extend(here)
            names.add(column.agent.name)
            found.append(column)
    return found


def split_column(name: str) -> Iterator[str]:
    """Yield the names of agents of which `name` could be a column, the longest first."""
    place = len(name) if name.endswith("]") else -1
    while (place := name.rfind(" [", 0, max(place, 0))) > 0:
        yield name[:place]


def no_such_column(name: str, columns: Iterable[NamedAgent], notes: Diagnostics) -> None:
    """Report that an agent has no column of this name."""
    known = [one.agent.name for one in columns]
    meant = near_miss(name, known)
    hint = f"did you mean `{meant}`?" if meant else f"columns: {', '.join(f'`{one}`' for one in known[:5])}"
    notes.error("no-such-agent", f"there is no agent `{name}`", Place(1, 1), hint)
