"""Durations: measured in milliseconds, and for people, as the documents write them: `30s`, `5m`, `1m30s`, `500ms`."""

import time


def milliseconds_since(began: float) -> float:
    """The milliseconds since `began`, a time of `time.perf_counter`, to the microsecond."""
    return int((time.perf_counter() - began) * 1_000_000) / 1000


def duration(seconds: float) -> str:
    """The shortest exact form."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{rest:g}s" if rest else ""]
    return "".join(parts)


def elapsed(milliseconds: float) -> str:
    """A time that passed, rounded for reading: `234ms`, `1.2s`, `2m05s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f}s" if seconds < 60 else f"{int(seconds // 60)}m{int(seconds % 60):02}s"
