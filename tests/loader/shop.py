"""A shop's suite to put tests into, and what came of loading it."""

from collections.abc import Callable
from textwrap import dedent, indent

from atp.loader import Loaded
from atp.suite import Case

Expect = Callable[..., Loaded]
"""The fixture `expect`."""
HEAD = "test_suite: shop\nagents: [{name: clerk, type: custom, config: {}}]\n"


def suite_with(test: str) -> str:
    """A suite whose only test has these lines beside its id and name."""
    return f"{HEAD}tests:\n  - id: one\n    name: One\n{indent(dedent(test).strip(), '    ')}\n"


def one_case(loaded: Loaded) -> Case:
    """The only case of what was loaded."""
    assert loaded.suite is not None
    (case,) = loaded.suite.cases
    return case
