"""Every form that a test file may be written in gives the same case, and nothing to complain about."""

from pathlib import Path

import pytest

from atp.loader.load import load_path

FORMS = Path(__file__).parents[2] / "fixtures" / "markdown" / "forms"


@pytest.mark.parametrize("path", sorted(FORMS.glob("*.test.md")), ids=lambda path: path.name.removesuffix(".test.md"))
def test_each_form_says_the_same(path: Path) -> None:
    loaded = load_path(path)
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    [case] = loaded.suite.cases
    assert case.name == "Warming the ocean"
    assert case.chains == [
        ["warm the ocean"],
        ["warm the ocean immediately"],
        ["good morning", "please warm the ocean by 2 degrees", "centigrade"],
    ]
    assert case.expectations == [
        "the warm_ocean function was called",
        "responses were short and to the point",
        "the ocean is no longer cold",
    ]
    assert case.intent == ("The agent must warm it." if path.name.startswith("with-intent") else None)
    assert case.befores == []
