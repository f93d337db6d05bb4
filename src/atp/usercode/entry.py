"""Finding a function of the user's: `module:function` or `path/to/file.py:function`."""

from collections.abc import Callable
from typing import Any

from atp.agents.adapter import AdapterContext
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.usercode.importing import loading
from atp.usercode.load import find_name, load_place
from atp.usercode.unusable import Unusable


def load_function(entry: str, context: AdapterContext) -> Callable[..., Any]:
    """What an entry names. Raises `ConfigurationError` when it can't be found or imported."""
    place, _, name = entry.rpartition(":")
    if not place or not name:
        raise ConfigurationError(f"`{entry}` names no function", "write `module:function` or `file.py:function`")
    try:
        with loading():
            found = find_name(load_place(place, (context.base, *context.search)), name, place)
    except Unusable as error:
        raise misconfigured(error) from error
    if not callable(found):
        raise ConfigurationError(f"`{entry}` is not a function", f"it is of type {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def misconfigured(error: Unusable) -> ConfigurationError:
    """What is wrong with an agent's code, with a guess at what was meant."""
    meant = near_miss(error.word, error.known) if error.word is not None else None
    return ConfigurationError(str(error), f"did you mean `{meant}`?" if meant else error.hint)
