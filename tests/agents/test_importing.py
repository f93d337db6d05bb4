"""How long code of others may take to load."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import WAIT_LIMIT

LOADS = """
import os, subprocess, sys, time
from atp.usercode.importing import TakesTooLong, limit_imports, loading

own, others = float(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
busy = "import os; parent = os.getppid()\\nwhile os.getppid() == parent: pass"
for _ in range(others):
    subprocess.Popen([sys.executable, "-c", busy])
limit_imports(2)
began = time.thread_time()
try:
    with loading():
        while time.thread_time() - began < own:
            pass
    print("loaded")
except TakesTooLong as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="this system doesn't say who had to wait")
@pytest.mark.parametrize(("own", "others", "said"), [(0.5, 7, "loaded"), (600, 0, "it took longer than 2s")])
def test_where_others_have_the_processor(own: float, others: int, said: str) -> None:
    """What takes long only because it has to wait for the processor is no import that hangs; an endless one is."""
    command = [sys.executable, "-c", LOADS, str(own), str(others)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=WAIT_LIMIT)
    assert ran.stdout == f"{said}\n"
