"""The frontmatter of a Markdown file: what it says for all of its cases at once."""

from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from atp.loader.markdown.frontmatter import agent_file
from atp.loader.writing.to_plain import said
from atp.loader.writing.written import Losses
from atp.suite.case import Case, Limits
from atp.suite.suite import Suite


def front_keys(suite: Suite, cases: list[Case], losses: Losses) -> dict[str, Any]:
    """The keys in the documents' order."""
    if suite.version != "1.0":
        losses.suite("version", suite.version)
    defaults = suite.defaults
    limits = said(Limits(timeout_seconds=defaults.timeout_seconds)) | said(defaults.constraints or Limits())
    front = {
        "target": _target(suite, losses),
        "assessor": suite.assessor,
        "iterations": suite.iterations,
        "description": suite.description,
        "runs": _common([case.runs for case in cases], defaults.runs_per_test),
        "timeout": _common([said(case.limits).get("timeout_seconds") for case in cases], limits.get("timeout_seconds")),
        "pass_rate": _common([case.pass_rate for case in cases], defaults.pass_rate),
        "budget_usd": _common([said(case.limits).get("budget_usd") for case in cases], limits.get("budget_usd")),
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


def _common(values: list[Any], default: Any) -> Any:
    """The suite's default, else the value that most cases have; but only if all have one.

    A case can change what the file says for all, but it can't take it back.
    """
    if None in values or not values:
        return None
    return Counter(values).most_common(1)[0][0] if default is None else default
