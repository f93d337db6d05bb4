"""What an agent can report to ATP, and what it is given."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an adapter can report of an agent, and pass on to it. A case that needs more is refused before the run.

    A limit on something that is never reported would always seem to be met.
    """

    tool_calls: bool = True
    """Which tools were called."""
    tokens: bool = True
    """How many tokens were used."""
    cost: bool = True
    """The cost of the model's calls."""
    steps: bool = True
    """How many steps the agent took."""
    history: bool = True
    """The agent gets the earlier messages of a conversation, not only the newest one."""


ONLY_ANSWERS = Capabilities(tool_calls=False, tokens=False, cost=False, steps=False, history=False)
"""Of an agent with `protocol: text`: it gets the newest message, and nothing but its answer is seen."""
