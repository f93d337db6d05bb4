"""The examples of documents 2 and 3."""

from collections.abc import Callable
from pathlib import Path

from atp.loader.load import Loaded, load_text
from atp.suite.case import Case

PRINTED = Path(__file__).parents[2] / "documents" / "markdown"
DOCUMENT_3 = (PRINTED / "warming-the-ocean.test.md").read_text("utf-8")
DOCUMENT_2_FRONT, DOCUMENT_2_SINGLE, DOCUMENT_2_CHAIN = (
    (PRINTED / "document-2" / f"{name}.md").read_text("utf-8")
    for name in ("frontmatter", "single-prompt", "prompt-chain")
)


def test_document_3(expect: Callable[..., Loaded]) -> None:
    suite = expect(DOCUMENT_3, "markdown").suite
    assert suite is not None
    assert (suite.target, suite.assessor) == ("agents/some-agent.md", "agents/test-assessor.md")
    [case] = suite.cases
    assert (case.index, case.name, case.iterations) == (0, "Warming the ocean", 50)
    assert [len(chain) for chain in case.chains] == [1, 1, 1, 3]
    assert case.chains[3] == ["good morning", "please warm the ocean by 2 degrees", "centigrade"]
    assert len(case.expectations) == 3


def test_document_2_single_prompt(only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# Arithmetic\n\n{DOCUMENT_2_SINGLE}")
    assert case.intent == "Verify that the AGENT can perform basic arithmetic operations."
    assert case.chains == [["What is 2 plus 2?"]]
    assert case.expectations == ['The RESPONSE should be "4".']


def test_document_2_prompt_chain(only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# Geography\n\n{DOCUMENT_2_CHAIN}")
    assert case.chains == [
        [
            "Tell me about the tallest mountain in the world.",
            "Where is it located?",
            "What is the average temperature there?",
        ]
    ]
    assert len(case.expectations) == 3


def test_document_2_frontmatter() -> None:
    loaded = load_text(f"{DOCUMENT_2_FRONT}\n# Arithmetic\n\n{DOCUMENT_2_SINGLE}", "markdown")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert loaded.suite.description == "Natural language description"
