"""What the tests of roles share. Their doubles are in `support/`, importable from the repository's root."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
