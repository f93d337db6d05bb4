"""What the tests of the docs share. The mock model server is importable from the repository's root."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
