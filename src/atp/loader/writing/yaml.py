"""Writes YAML suites as a person would: block style, literal blocks for lines of text, few quotes."""

import re
from pathlib import PurePosixPath
from typing import Any

import yaml

from atp.loader.writing.cases import CaseWriter, nested_assertion, to_plain
from atp.loader.writing.losses import Losses, SecretHider, Written
from atp.loader.yaml.nodes import read_plain
from atp.suite.suite import Suite

_READABLE = re.compile(r"[\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffe]*")
"""What YAML takes as it is, and takes for no line end."""
_WORD = re.compile(r"[\w.:/-]+")
_WIDEST_LIST = 80


def write_yaml(suite: Suite) -> Written:
    """The head, the defaults, the agents and the tests, each set off by a blank line."""
    losses = Losses()
    hiding = SecretHider(suite.secrets, _escape)
    head = {"test_suite": suite.name, "version": suite.version, "description": suite.description}
    head = {key: value for key, value in head.items() if value is not None}
    parts = [yaml_text(hiding.hide(head, losses.secret()))]
    if defaults := {key: value for key, value in to_plain(suite.defaults).items() if value is not None}:
        parts.append(yaml_text(hiding.hide({"defaults": defaults}, losses.secret())))
    if suite.gates:
        parts.append(yaml_text(hiding.hide({"gates": [gate.text for gate in suite.gates]}, losses.secret())))
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
    agents = [to_plain(agent) for agent in suite.agents]
    if suite.target is not None and not agents:
        agents.append({"name": PurePosixPath(suite.target).stem, "type": "prompt", "config": {"path": suite.target}})
    return agents


def _escape(text: str) -> str:
    return text.replace("${", "$${")


class _Dumper(yaml.SafeDumper):
    """PyYAML in the look of the format's own examples."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> Any:
        analysis = super().analyze_scalar(scalar)
        analysis.allow_block = analysis.allow_block or _fits_block(scalar)  # PyYAML lets no tab into a block
        return analysis


def _fits_block(text: str) -> bool:
    """Whether a literal block shows the text as it is: no escapes, no blanks or empty lines that nobody sees."""
    if not _READABLE.fullmatch(text) or text[:1] in " \t\n" or text.endswith("\n\n"):
        return False
    return not any(line[-1:] in (" ", "\t") for line in text.split("\n"))


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None
    if "\n" in text and _fits_block(text):
        style = "|"
    elif "\n" in text or not _READABLE.fullmatch(text) or not isinstance(read_plain(text), str):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    short = len(", ".join(map(str, items))) <= _WIDEST_LIST
    on_one_line = short and all(isinstance(one, str) and _WORD.fullmatch(one) for one in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=on_one_line)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def yaml_text(plain: Any) -> str:
    """The text of a value, its keys in their order."""
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text


def yaml_list(key: str, items: list[Any]) -> str:
    """A key with a list whose items are set off by blank lines."""
    blocks = [indented(yaml_text([item])) for item in items]
    return f"{key}:\n" + "\n".join(blocks)


def indented(text: str) -> str:
    """The text two blanks further in; only at real line ends, which `textwrap` doesn't promise."""
    return "\n".join(f"  {line}" if line else line for line in text.split("\n"))
