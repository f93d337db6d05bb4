"""The examples of documents 2 and 3."""

from collections.abc import Callable

from atp.loader.load import Loaded, load_text
from atp.suite.case import Case

DOCUMENT_3 = """---
target: agents/some-agent.md
assessor: agents/test-assessor.md
iterations: 50
---

# Warming the ocean

**Prompts:**

- warm the ocean
- warm the ocean immediately
- do the thing
- **Chain:**
  - good morning
  - please warm the ocean by 2 degrees
  - centigrade

**Expectations:**

- the warm_ocean function was called
- responses were short and to the point
- the ocean is no longer cold
"""

DOCUMENT_2_SINGLE = """# Arithmetic

- **Test Intent:**

  - Verify that the AGENT can perform basic arithmetic operations.

- **Single Prompt:**

  - "What is 2 plus 2?"

- **Expectations:**

  - The RESPONSE should be "4".
"""

DOCUMENT_2_CHAIN = """# Geography

- **Test Intent:**

  - Test the AGENT's ability to maintain context in a conversation about geography.

- **Prompt Chain:**

  - "Tell me about the tallest mountain in the world."
  - "Where is it located?"
  - "What is the average temperature there?"

- **Expectations:**

  - The AGENT should identify Mount Everest as the tallest mountain.
  - The AGENT should state that Mount Everest is located in the Himalayas on the border of Nepal and China.
  - The AGENT should provide information about the average temperature at Mount Everest.
"""


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
    case = only_case(DOCUMENT_2_SINGLE)
    assert case.intent == "Verify that the AGENT can perform basic arithmetic operations."
    assert case.chains == [["What is 2 plus 2?"]]
    assert case.expectations == ['The RESPONSE should be "4".']


def test_document_2_prompt_chain(only_case: Callable[[str], Case]) -> None:
    case = only_case(DOCUMENT_2_CHAIN)
    assert case.chains == [
        [
            "Tell me about the tallest mountain in the world.",
            "Where is it located?",
            "What is the average temperature there?",
        ]
    ]
    assert len(case.expectations) == 3


def test_document_2_frontmatter() -> None:
    front = """---
target: agents/ocean.md
assessor: agents/test-assessor.md
iterations: 50
description: "Natural language description"
---
"""
    loaded = load_text(front + DOCUMENT_2_SINGLE, "markdown")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert loaded.suite.description == "Natural language description"
