"""A Suite and options become a journal: plan, workers, trials, limits, workspaces, resume.

The package can be called: `atp.run` is this folder's name, and that of the function which `atp.api` defines.
"""

import sys
from collections.abc import Coroutine, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atp.api import Report
    from atp.run.options import Options
    from atp.suite.suite import Suite


class _Callable(ModuleType):
    def __call__(
        self, suite: "Suite | Sequence[Suite]", options: "Options | None" = None
    ) -> "Coroutine[Any, Any, Report]":
        from atp.api import run

        return run(suite, options)


sys.modules[__name__].__class__ = _Callable
