"""ATP, the Agent Test Platform: one tool for every kind of agent test.

From Python: `atp.load(path)`, `await atp.run(suite, options)` or `atp.run_sync`, `atp.Options`, `atp.Report`. All
errors that a user can cause are `atp.Error`.
"""

# Nothing is imported here, `typing` neither: until `atp.__main__` runs, Ctrl-C shows Python's traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from atp.agents.adapter import AgentError
    from atp.api import Options, Report, load, run, run_sync
    from atp.base.diagnostics import LoadError
    from atp.base.errors import ConfigurationError, Error
    from atp.engine.scripts.runner import ScriptError
    from atp.engine.scripts.verdict import NotJudged
    from atp.models.model import ModelError
    from atp.suite.case import Case
    from atp.suite.suite import Suite

__all__ = [
    "AgentError",
    "Case",
    "ConfigurationError",
    "Error",
    "LoadError",
    "ModelError",
    "NotJudged",
    "Options",
    "Report",
    "ScriptError",
    "Suite",
    "__version__",
    "load",
    "run",
    "run_sync",
]
__version__ = "0.1.0"

_MODULES = {
    "AgentError": "atp.agents.adapter",
    "Case": "atp.suite.case",
    "ConfigurationError": "atp.base.errors",
    "Error": "atp.base.errors",
    "LoadError": "atp.base.diagnostics",
    "ModelError": "atp.models.model",
    "NotJudged": "atp.engine.scripts.verdict",
    "ScriptError": "atp.engine.scripts.runner",
    "Suite": "atp.suite.suite",
}


def __getattr__(name: str) -> "Any":
    """Load a name of the Python interface when it is asked for: the command line does without."""
    if name not in __all__:
        raise AttributeError(f"module 'atp' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES.get(name, "atp.api")), name)
