"""Names under which agents with a state of their own shape take the prompt."""

PROMPT_KEYS = ("prompt", "input", "question", "query", "user_input", "task", "text", "message", "topic")
"""In the order of preference."""
