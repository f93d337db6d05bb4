"""What code of the user's raised, in words. Its own methods may raise, too."""

from __future__ import annotations

import traceback


def said(error: BaseException) -> str:
    """The exception's kind and text."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        text = "(its text can't be told)"
    return f"{name}: {text}" if text else name


def traceback_text(error: BaseException) -> str:
    """Where it happened, the last frames."""
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-10))
    except BaseException:
        return "(the traceback can't be told)\n"
