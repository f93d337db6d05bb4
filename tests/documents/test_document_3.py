"""Document 3's example file."""

from pathlib import Path

from atp.loader import TestLoader

FILE = Path(__file__).parent / "markdown" / "warming-the-ocean.test.md"


def test_the_example_is_one_case_with_four_chains_and_three_expectations() -> None:
    suite = TestLoader().load_file(FILE)
    (case,) = suite.cases
    assert (suite.target, suite.assessor, suite.iterations) == ("agents/some-agent.md", "agents/test-assessor.md", 50)
    assert (case.index, case.name) == (0, "Warming the ocean")
    assert case.chains == [
        ["warm the ocean"],
        ["warm the ocean immediately"],
        ["do the thing"],
        ["good morning", "please warm the ocean by 2 degrees", "centigrade"],
    ]
    assert case.expectations == [
        "the warm_ocean function was called",
        "responses were short and to the point",
        "the ocean is no longer cold",
    ]
