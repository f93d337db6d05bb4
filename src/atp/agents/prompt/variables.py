"""Variables in prompts: `$ENV.NAME`, `$CTX.NAME` and `$SYS.NAME`, also in double braces.

`$ENV` is the environment. `$CTX` is the conversation: who talks (`USER_ID`, `TEAM_ID`, `LOCALE` …), and the case's own
data as `$CTX.METADATA.key`. `$SYS` is the clock. Names of `$CTX` and `$SYS` may be written in small letters.
Variables are replaced at each turn; `$$CTX.NAME` is a plain `$CTX.NAME`.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from atp.agents.adapter import AgentError
from atp.agents.agent_files import Variables
from atp.base.diagnostics import Diagnostics, Place
from atp.base.near import near_miss

_NAME = r"(ENV|CTX|SYS)\.((?i:metadata)\.[\w-]*\w|[A-Za-z_]\w*)"
_USE = re.compile(rf"\$\$(?=(?:ENV|CTX|SYS)\.)|\{{\{{\s*\${_NAME}\s*\}}\}}|\${_NAME}")

CONTEXT = {
    "USER": "user",
    "USER_ID": "user",
    "TEAM": "team",
    "TEAM_ID": "team",
    "LOCALE": "locale",
    "CLIENT_TYPE": "client_type",
    "CLIENT_IP": "client_ip",
    "REFERER": "referer",
    "ACCEPT": "accept",
    "SESSION_ID": "session_id",
    "CHAT_ID": "session_id",
    "CASE_ID": "case_id",
    "CASE_NAME": "case_name",
    "AGENT": "agent",
    "ASSISTANT_ID": "agent",
    "ASSISTANT_NAME": "agent",
    "RUN": "run",
    "ITERATION": "iteration",
    "TURN": "turn",
    "MODE": "mode",
    "THEME": "theme",
}
"""The names of `$CTX`, and their keys in a turn's context; `mode` and `theme` are options of the case. `DATE`, `TIME`
and `TIMEZONE` are as in `$SYS`."""
CLOCK = {
    "DATETIME": "%Y-%m-%d %H:%M:%S",
    "DATE": "%Y-%m-%d",
    "TIME": "%H:%M:%S",
    "TIMEZONE": "%Z",
    "WEEKDAY": "%A",
    "YEAR": "%Y",
    "MONTH": "%m",
    "DAY": "%d",
    "HOUR": "%H",
    "MINUTE": "%M",
    "SECOND": "%S",
}
"""The names of `$SYS`, and their formats. `UNIX` is the number of seconds since 1970."""
_SYSTEM = (*CLOCK, "UNIX")
_CLOCK_IN_CONTEXT = ("DATE", "TIME", "TIMEZONE")
_METADATA = "METADATA."


def check_variables(text: str, variables: Variables, notes: Diagnostics, at: Callable[[str], Place]) -> None:
    """Add a mistake for each variable of a text that has no value. `at` finds the place of a variable."""
    for use in _USE.finditer(text):
        kind, name = use[1] or use[3], use[2] or use[4]
        if kind == "ENV":
            variables.look_up(name, notes, partial(at, use[0]))
        elif kind is not None:
            known = _SYSTEM if kind == "SYS" else (*CONTEXT, *_CLOCK_IN_CONTEXT)
            if name.upper() in known or (kind == "CTX" and name.upper().startswith(_METADATA)):
                continue
            meant = near_miss(name, known)
            hint = f"did you mean `${kind}.{meant}`?" if meant else f"known: {', '.join(known)}"
            if kind == "CTX" and not meant:
                hint += f"; the case's own data is `$CTX.METADATA.{name}`"
            notes.error("unknown-variable", f"there is no `${kind}.{name}`", at(use[0]), hint)


def fill(text: str, environment: Mapping[str, str], context: Mapping[str, Any]) -> str:
    """Return the text with its variables replaced by their values now."""
    if "$" not in text:
        return text
    now = datetime.now().astimezone()

    def value(use: "re.Match[str]") -> str:
        kind, name = use[1] or use[3], use[2] or use[4]
        if kind is None:
            return "$"
        if kind == "ENV":
            return environment[name]
        return _clock(name.upper(), now) if kind == "SYS" else _context(name, context, now)

    return _USE.sub(value, text)


def _clock(name: str, now: datetime) -> str:
    return str(int(now.timestamp())) if name == "UNIX" else now.strftime(CLOCK[name])


def _context(name: str, context: Mapping[str, Any], now: datetime) -> str:
    if name.upper() in _CLOCK_IN_CONTEXT:
        return _clock(name.upper(), now)
    if name.upper().startswith(_METADATA):
        key = name[len(_METADATA) :]
        metadata = context.get("metadata") or {}
        if key not in metadata:
            raise AgentError(f"the prompt asks for `$CTX.{name}`, but the case has no metadata `{key}`", "environment")
        return str(metadata[key])
    found = context.get(CONTEXT[name.upper()])
    return "" if found is None else str(found)
