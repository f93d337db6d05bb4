"""The command `atp`, and `python -m atp`."""

import os
import signal
import sys


def main() -> None:
    """Import the commands, call one, and end the process.

    Until a command is called, Ctrl-C ends the process at once, not with Python's traceback.
    """
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from atp.cli.main import main as call
    from atp.usercode.exits import leave

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        call()
    except SystemExit as left:
        leave(left.code if isinstance(left.code, int) else 0)


if __name__ == "__main__":
    # `python -m` puts the working directory first, so that a `jinja2.py` there would be imported in place of ours.
    if sys.path and sys.path[0] in ("", os.getcwd()) and not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    main()
