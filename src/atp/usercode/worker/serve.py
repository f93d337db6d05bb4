"""The main program of a worker: `python serve.py REQUESTS EVENTS REPLIES`, the descriptors of three open pipes."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

_PACKAGE = "_atp_usercode"
"""The name of `atp.usercode` in a worker. Another one, because the environment may have its own `atp` installed."""


def _load_server(here: str) -> Any:
    # Python adds the folder of a script, and this one has a `server.py`, which is a likely name in the user's code.
    sys.path[:] = [one for one in sys.path if one != here]
    folder = os.path.dirname(here)
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
    return importlib.import_module(f"{_PACKAGE}.worker.server")


def main() -> None:
    """Serve requests until their pipe is closed."""
    pipes = [int(text) for text in sys.argv[1:4]]
    for pipe in pipes:
        os.set_inheritable(pipe, False)
    del sys.argv[1:]
    _load_server(os.path.dirname(os.path.abspath(__file__))).Server(*pipes).run()


if __name__ == "__main__":
    main()
