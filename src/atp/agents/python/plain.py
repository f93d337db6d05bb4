"""Values of the user's Python code as plain JSON values; workers make them in the same way."""

from atp.usercode.json_values import NotJson, plain, refusal

__all__ = ["NotJson", "plain", "refusal"]
