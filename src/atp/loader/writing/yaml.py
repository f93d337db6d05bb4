"""YAML suites (document 1)."""

from pathlib import PurePosixPath
from typing import Any

from atp.loader.writing.cases import CaseWriter
from atp.loader.writing.hide_secrets import Hiding
from atp.loader.writing.to_plain import nested_assertion, said
from atp.loader.writing.written import Losses, Written
from atp.loader.writing.yaml_text import yaml_list, yaml_text
from atp.suite.suite import Suite


def write_yaml(suite: Suite) -> Written:
    """The head, the defaults, the agents and the tests, each set off by a blank line."""
    losses = Losses()
    hiding = Hiding(suite.secrets, _escape)
    head = {"test_suite": suite.name, "version": suite.version, "description": suite.description}
    head = {key: value for key, value in head.items() if value is not None}
    parts = [yaml_text(hiding.hide(head, losses.secret()))]
    if defaults := {key: value for key, value in said(suite.defaults).items() if value is not None}:
        parts.append(yaml_text(hiding.hide({"defaults": defaults}, losses.secret())))
    agents = _agents(suite)
    if agents:
        parts.append(yaml_list("agents", [hiding.hide(one, losses.secret(), ("agents",)) for one in agents]))
    for key in ("assessor", "generator", "iterations"):
        if (value := getattr(suite, key)) is not None:
            losses.suite(key, str(value))
    writer = CaseWriter(suite, losses, nested_assertion, suite.defaults)
    tests = []
    for case in suite.cases:
        record = writer.write(case)
        if record is not None:
            tests.append(hiding.hide(record, losses.secret(case)))
    return Written("\n".join([*parts, yaml_list("tests", tests)]) if tests else "", losses)


def _agents(suite: Suite) -> list[dict[str, Any]]:
    """The suite's agents; a Markdown file's target is an agent that is a prompt."""
    agents = [said(agent) for agent in suite.agents]
    if suite.target is not None and not agents:
        agents.append({"name": PurePosixPath(suite.target).stem, "type": "prompt", "config": {"path": suite.target}})
    return agents


def _escape(text: str) -> str:
    return text.replace("${", "$${")
