"""Packages import only from packages before them, and subpackages meet only in modules of their parent."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import atp

PACKAGE = Path(atp.__file__).parent
ORDER = [
    *(
        "base",
        "suite",
        "stats",
        "loader",
        "usercode",
        "models",
        "agents",
        "roles",
        "checks",
        "journal",
        "history",
        "engine",
        "report",
        "view",
    ),
    *("testing", "pytest_plugin", "cli"),
]
"""A folder imports only from those to its left, and from itself."""
ALLOWED: dict[tuple[str, str], str] = {}
"""What goes against the order, and why."""
ALLOWED_SIBLINGS = {
    ("engine.prepare", "engine.scripts"): "a script test is found while a run is prepared",
    ("engine.scripts", "engine.trial"): "a script test leads conversations in the trial's workspace",
    ("engine.trial", "engine.scripts"): "a case may be a script test",
    ("loader.markdown", "loader.yaml"): "frontmatter is YAML",
    ("loader.writing", "loader.markdown"): "what is written is read again by the same rules",
    ("loader.writing", "loader.yaml"): "what is written is read again by the same rules",
    ("models.cassettes", "models.connectors"): "a recording is found by its connector",
    ("models.cassettes", "models.local"): "a recording is found by the local model's name",
    ("models.local", "models.connectors"): "the local model is a connector",
    ("report.compare", "report.html"): "the page of a comparison has the style of the HTML report",
    ("report.console", "report.compare"): "the end of a run shows how it compares with a baseline",
    ("report.html", "report.compare"): "the end of a run shows how it compares with a baseline",
    ("report.formats", "report.compare"): "the end of a run shows how it compares with a baseline",
    ("report.formats", "report.console"): "some formats contain the console's text",
    ("report.formats", "report.records"): "the JSON formats are made of these records, others of parts of them",
    ("report.html", "report.records"): "the page's data are partly those of the JSON report",
}
"""Subpackages that import a sibling directly, and why."""


def _modules(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, wherever in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node)
            if (PACKAGE.parent / module.replace(".", "/")).is_dir():  # `from atp import checks` names a folder, too
                yield from ((node.lineno, f"{module}.{one.name}") for one in node.names)
            else:
                yield node.lineno, module
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    """The module that is meant, also by a relative import."""
    if not node.level:
        return node.module or ""
    around = ["atp", *path.relative_to(PACKAGE).parts][: -node.level]
    return ".".join([*around, *([node.module] if node.module else [])])


def _ours(path: Path) -> Iterator[tuple[int, str]]:
    """The part of the package that each import leads to."""
    for line, name in _imports(path):
        parts = name.split(".")
        if parts[0] == "atp" and len(parts) > 1 and not parts[1].startswith("__"):
            yield line, parts[1]


def test_every_folder_has_its_place() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert folders == set(ORDER)


@pytest.mark.parametrize("folder", ORDER)
def test_imports_lead_only_to_the_left(folder: str) -> None:
    allowed = set(ORDER[: ORDER.index(folder) + 1])
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports atp.{to}"
        for path in _modules(folder)
        for line, to in _ours(path)
        if to not in allowed and (folder, to) not in ALLOWED
    ]
    assert wrong == []


def test_what_is_allowed_is_needed() -> None:
    found = {(folder, to) for folder in ORDER for path in _modules(folder) for _, to in _ours(path)}
    assert ALLOWED.keys() <= found


def _siblings(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """Every import of a sibling subpackage, as (own subpackage, sibling), with the line."""
    own = ("atp", *path.relative_to(PACKAGE).parent.parts)
    for line, name in _imports(path):
        other = tuple(name.split("."))
        shared = next((n for n, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), None)
        # From the second level on: the order above decides about packages of the first.
        if shared is not None and shared >= 2 and (PACKAGE.parent / Path(*other[: shared + 1])).is_dir():
            yield line, (".".join(own[1 : shared + 1]), ".".join(other[1 : shared + 1]))


def test_subpackages_meet_in_modules_of_their_parent() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports atp.{to}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, (own, to) in _siblings(path)
        if (own, to) not in ALLOWED_SIBLINGS
    ]
    assert wrong == []


def test_what_siblings_are_allowed_is_needed() -> None:
    found = {pair for path in PACKAGE.rglob("*.py") for _, pair in _siblings(path)}
    assert ALLOWED_SIBLINGS.keys() <= found


def test_modules_say_what_they_are_for() -> None:
    silent = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
