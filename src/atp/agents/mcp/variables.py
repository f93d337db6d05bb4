"""Variables in the description of an MCP server: `$ENV.NAME`, also in double braces; `$$ENV.NAME` is a plain one.

A server is started for a run or a trial, not for a turn, so the variables of a conversation have no value there.
"""

import re
from typing import Any

from atp.agents.prompt.reading import Reading
from atp.base.diagnostics import Diagnostics
from atp.loader.validate import DataPath, Locator
from atp.loader.variables import is_secret

_USE = re.compile(r"\$\$(?=ENV\.)|\{\{\s*\$ENV\.([A-Za-z_]\w*)\s*\}\}|\$ENV\.([A-Za-z_]\w*)")
_OTHER = re.compile(r"(?<!\$)\$(?:CTX|SYS)\.\w+")


def filled(value: Any, path: DataPath, reading: Reading, notes: Diagnostics, locate: Locator) -> Any:
    """The value with all its variables filled in; those that have no value are noted."""
    if isinstance(value, dict):
        return {key: filled(item, (*path, key), reading, notes, locate) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, (*path, number), reading, notes, locate) for number, item in enumerate(value)]
    if not isinstance(value, str) or "$" not in value:
        return value
    if other := _OTHER.search(value):
        message = f"`{other[0]}` has no value here: a server is not started for one conversation"
        notes.error("unknown-variable", message, locate.value(path), "use `$ENV.NAME`")

    def fill(use: "re.Match[str]") -> str:
        name = use[1] or use[2]
        if name is None:
            return "$"
        if name not in reading.variables:
            hint = f"set {name} in the environment or in .env"
            notes.error("missing-variable", f"the variable `{name}` is not set", locate.value(path), hint)
            return use[0]
        found = reading.variables[name]
        if is_secret(name, found, path[-1]):
            notes.secrets.add(found)
        return found

    return _USE.sub(fill, value)
