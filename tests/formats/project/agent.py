"""The agent under test."""

import re


def answer(prompt: str) -> object:
    """Answer, or raise, as the prompt asks. `flaky` is answered differently each time."""
    if "raise" in prompt:
        raise RuntimeError("the backend is down")
    if "flaky" in prompt:
        return {"output": next(_FLAKY), "usage": {"input_tokens": 12, "output_tokens": 3, "cost_usd": 0.0005}}
    if re.search("yes", prompt, re.IGNORECASE):
        return {"output": "It is submitted.", "tool_calls": [{"name": "create_expense", "arguments": {"amount": 310}}]}
    if "ocean" in prompt:
        return {"output": "It is warmer.", "tool_calls": [{"name": "warm_ocean"}]}
    return "Shall I submit it?" if re.search(r"\d", prompt) else "What type of expense is it, and how much?"


_FLAKY = iter(["heads", "tails", "heads"] * 10)
