"""How long code of others may take to be imported."""

import subprocess
import sys

from tests.waiting import WAIT_LIMIT

LOADS = """
import sys, time
from atp.usercode.importing import TakesTooLong, limit_imports, loading

limit_imports(0.5)
try:
    with loading():
        while True:
            try:
                time.sleep(60)
            except Exception:
                pass
except TakesTooLong as error:
    print(error)
limit_imports()
with loading():
    print("loaded")
"""


def test_an_import_that_hangs_is_given_up() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADS], check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=WAIT_LIMIT
    )
    assert ran.stdout == "it took longer than 0.5s\nloaded\n"
