"""How fast Markdown test files load: 1,000 typical cases must take well under a second of CPU."""

import sys
import time

from atp.loader.load import load_text

CASE = """## Warming the ocean, part {number}

Check that the agent warms the ocean when it is asked in several ways, and that
it stays polite about it.

{before}**Prompts:**

- warm the ocean
- warm the ocean immediately, and tell me
  how warm it is
- do the thing number {number}
- **Chain:**
  - good morning
  - please warm the ocean by 2 degrees
  - centigrade
- ```md
  # A heading
  some **bold** text
  ```

**Expectations:**

- the warm_ocean function was called
- responses were short and to the point
- the ocean is no longer cold

"""


def typical(cases: int) -> str:
    """A file with as many cases, each with five prompt chains and three expectations."""
    head = "---\ntarget: agents/ocean.md\nassessor: agents/test-assessor.md\n---\n\n# Oceans\n\n"
    return head + "".join(
        CASE.format(number=number, before=f"**Before:**\n\n- {number - 1}\n\n" if number % 10 else "")
        for number in range(cases)
    )


def seconds(text: str, cases: int) -> float:
    """The CPU time that one load takes."""
    start = time.process_time()
    loaded = load_text(text, "markdown")
    taken = time.process_time() - start
    assert loaded.suite is not None
    assert len(loaded.suite.cases) == cases
    return taken


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    text = typical(cases)
    seconds(typical(1), 1)  # imports and models are built once
    best = min(seconds(text, cases) for _ in range(5))
    size = f"{len(text) / 1024:,.0f} KB"
    print(f"markdown: {cases:,} cases ({size}) in {best:.3f} s of CPU, {cases / best:,.0f} cases a second")


if __name__ == "__main__":
    main()
