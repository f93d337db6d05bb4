"""What the Markdown tests share."""

from collections.abc import Callable

import pytest

from atp.loader.load import Loaded, load_text
from atp.loader.source import LoadContext
from atp.suite.case import Case

FRAME = "---\ntarget: agents/ocean.md\nassessor: agents/test-assessor.md\n---\n\n"


@pytest.fixture
def load() -> Callable[[str], Loaded]:
    """Loads a body below a frontmatter that is right."""
    return lambda body: load_text(FRAME + body, "markdown", LoadContext(env={}), "suites/ocean.test.md")


@pytest.fixture
def only_case(load: Callable[[str], Loaded]) -> Callable[[str], Case]:
    """The one case of a body that there is nothing to say about."""

    def read(body: str) -> Case:
        loaded = load(body)
        assert loaded.diagnostics == []
        assert loaded.suite is not None
        [case] = loaded.suite.cases
        return case

    return read
