"""ATP, the Agent Test Platform: one tool for every kind of agent test.

From Python: `atp.load(path)`, `await atp.run(suite, options)` or `atp.run_sync`, `atp.Options`, `atp.Report`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atp.api import Options, Report, load, run, run_sync

__all__ = ["Options", "Report", "__version__", "load", "run", "run_sync"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the interface for Python when it is asked for: the command line does without."""
    if name not in __all__:
        raise AttributeError(f"module 'atp' has no attribute {name!r}")
    from atp import api

    return getattr(api, name)
