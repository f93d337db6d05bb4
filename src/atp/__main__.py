"""`python -m atp` is `atp`."""

import os
import sys

# `python -m` puts the working directory first, so that a `jinja2.py` there would be imported in place of ours.
if sys.path and sys.path[0] in ("", os.getcwd()) and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

from atp.cli.main import main

main()
