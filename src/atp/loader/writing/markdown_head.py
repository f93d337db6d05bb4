"""The frontmatter of a Markdown file: what it says for all of its cases at once."""

from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from atp.loader.markdown.frontmatter import agent_file
from atp.loader.writing.said import said
from atp.loader.writing.written import Losses
from atp.suite.case import Case
from atp.suite.suite import Suite

_LIMITS = {"timeout": "timeout_seconds", "budget_usd": "budget_usd"}
"""The keys that are limits of a case, and what they are called there."""


def front_keys(suite: Suite, cases: list[Case], losses: Losses) -> dict[str, Any]:
    """The keys in the documents' order; what only some of the cases say is lost."""
    if suite.version != "1.0":
        losses.suite("version", suite.version)
    front = {
        "target": _target(suite, losses),
        "assessor": suite.assessor,
        "iterations": suite.iterations,
        "description": suite.description,
        **{key: _common(key, cases, losses) for key in ("runs", "timeout", "pass_rate", "budget_usd")},
        "generator": suite.generator,
    }
    return {key: value for key, value in front.items() if value is not None}


def _target(suite: Suite, losses: Losses) -> str | None:
    """The target of a Markdown file, or an only agent that can be one."""
    if len(suite.agents) == 1 and suite.agents[0].type == "prompt":
        agent = suite.agents[0]
        path = str(agent.config.path)
        if agent_file(path) is not None and said(agent.config) == {"path": path}:
            if agent.name != PurePosixPath(path).stem or agent.description is not None:
                losses.suite("agents", f"the name and description of `{agent.name}`")
            return path
    for agent in suite.agents:
        losses.suite("agents", f"`{agent.name}`")
    return suite.target


def _common(key: str, cases: list[Case], losses: Losses) -> Any:
    """The value that most cases have, if all have one: none gets a limit that it didn't have."""
    values = [_value(case, key) for case in cases]
    common = None if None in values else next((value for value, _ in Counter(values).most_common(1)), None)
    for case, value in zip(cases, values, strict=True):
        if value != common:
            losses.case(case, "limits" if key in _LIMITS else key, f"{_LIMITS.get(key, key)} {value}")
    return common


def _value(case: Case, key: str) -> Any:
    return said(case.limits).get(_LIMITS[key]) if key in _LIMITS else getattr(case, key)
