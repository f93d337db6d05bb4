"""Timers of the C library: what they change in the process is put back. What they do: `test_watchdog.py`."""

import ctypes
import signal
import sys

import pytest

from atp.usercode.cpu_timers import CpuTimers
from atp.usercode.watchdog import HELD

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the timers are there on Linux only")


def program_name() -> int | None:
    """The address of the name that warnings of the C library begin with."""
    return ctypes.c_void_p.in_dll(ctypes.CDLL(None), "program_invocation_short_name").value


def test_the_name_of_the_program_and_the_handler_of_the_signal_are_put_back() -> None:
    before, handler = program_name(), signal.getsignal(signal.SIGQUIT)
    timers = CpuTimers.create(HELD)
    assert timers is not None
    assert program_name() != before
    timers.close()
    assert program_name() == before
    assert signal.getsignal(signal.SIGQUIT) == handler


def test_a_text_that_warnx_would_read_as_a_format_is_refused() -> None:
    with pytest.raises(AssertionError, match="format string"):
        CpuTimers.create("100% of the time")
