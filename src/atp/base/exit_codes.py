"""The exit codes of `atp`. `cli/main.py` and `usercode/exits.py`, which must not load this, have some of them, too."""

PASSED = 0
"""All passed."""
FAILED = 1
"""At least one agent failed a case."""
UNUSABLE = 2
"""The input can't be used: nothing was run."""
INCOMPLETE = 3
"""Something else broke, a fault of ATP's own included."""
INCONCLUSIVE = 4
"""Nothing is known to be wrong, but what a gate or a comparison asks for is not shown either."""
INTERRUPTED = 130
"""After Ctrl-C or another signal."""
READER_GONE = 141
"""The reader of stdout is gone, as shells show it."""
