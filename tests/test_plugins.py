"""`atp.plugins`: all that a plugin imports, and all that the documentation's examples import."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import atp
from atp import plugins

PACKAGE = Path(atp.__file__).parent
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = {"atp", "atp.plugins", "atp.testing", "atp.testing.reference.behaviour", "atp.loader"}
"""What examples may import: `atp.testing` is for the tests of plugins, `atp.loader` has the documented `TestLoader`."""


def _imported(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("name", plugins.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(plugins, name) is not None


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"module 'atp.plugins' has no attribute 'Nothing'"):
        plugins.Nothing  # noqa: B018  (the access is what is tried)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "plugins.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {name.name for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    seen |= {node.targets[0].id for node in block.body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
    assert seen - {"ASSERTIONS", "AGENTS", "MODELS", "REPORTERS"} == set(plugins.__all__)


def test_a_check_loads_no_models_and_no_http_client() -> None:
    code = (
        "import sys; from atp.plugins import Assertion, Evidence, Verdict, check, failed, passed\n"
        "print([name for name in ('aiohttp', 'atp.models', 'atp.report', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_nothing_of_ours_imports_it() -> None:
    found = [
        path.name
        for path in sorted(PACKAGE.rglob("*.py"))
        if "atp.plugins" in set(_imported(path.read_text())) or "import plugins" in path.read_text()
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_import_only_what_is_public(page: Path) -> None:
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text(), re.M | re.S)
    imported = {name for block in blocks for name in _imported(block)}
    assert {name for name in imported if name.split(".")[0] == "atp"} <= PUBLIC
