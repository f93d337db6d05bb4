"""What code that is not ours does to `sys.stdout` and `sys.stderr`: ATP's output and exit code stay as they are."""

import os
import sys

import pytest
from tests.engine.support.project import Project

from atp.base.streams import own_streams, streams_for_user_code

AGENT = """
    import codecs, io, os, sys

    class Copies:
        def __init__(self, stream):
            self.stream = stream
        def write(self, text):
            self.stream.write(text)

    def act(name):
        out, err = sys.stdout, sys.stderr
        match name:
            case "wrap": sys.stdout = io.TextIOWrapper(out.buffer, encoding="utf-8")
            case "detach": sys.stdout = io.TextIOWrapper(out.detach(), encoding="utf-8")
            case "codec": sys.stdout = codecs.getwriter("utf-8")(out.buffer)
            case "reopen": sys.stdout = open(out.fileno(), "w")
            case "copy": sys.stdout, sys.stderr = Copies(out), Copies(err)
            case "ascii": out.reconfigure(encoding="ascii", errors="strict")
            case "close": (out.buffer.close(), err.buffer.close())
            case "none": sys.stdout = sys.stderr = None

    act(os.environ["AT_IMPORT"])

    def run(prompt):
        act(prompt)
        print("printed", file=sys.stdout and sys.__stdout__)
        return prompt
"""
ACTS = ("wrap", "detach", "codec", "reopen", "copy", "ascii", "close", "none")


@pytest.mark.parametrize("act", ACTS)
def test_the_output_of_atp_is_whole(project: Project, act: str) -> None:
    """Done by an agent when it is imported, and when it is called; the sign ✓ is not ASCII."""
    project.write("agent.py", AGENT)
    file = project.cases("before", act, "after")
    for at_import in ("", act):
        ran = project.atp("test", file, "-n", "agent.py:run", "-v", env={"AT_IMPORT": at_import})
        assert "fault of ATP" not in ran.err, ran.err
        assert "✓ [before]" in ran.out
        assert "✓ [after]" in ran.out, ran.out
        assert (ran.code, ran.out.count("Passed:  3")) == (0, 1), ran.err
        assert "printed" not in ran.out


def test_json_on_stdout_is_not_mixed_with_what_an_agent_prints(project: Project) -> None:
    project.write("agent.py", "import os, sys\ndef run(prompt): os.write(sys.stdout.fileno(), b'raw'); return prompt\n")
    ran = project.test(project.cases("a"), "-n", "agent.py:run")
    assert ran.statuses == {"a": "passed"}
    assert "raw" in ran.err


@pytest.mark.parametrize("spoil", ["detach", "close"])
def test_streams_are_put_back(monkeypatch: pytest.MonkeyPatch, spoil: str) -> None:
    with open(os.devnull, "w") as out, open(os.devnull, "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with streams_for_user_code():
            assert own_streams() == (out, err)
            assert [sys.stdout.fileno(), sys.stderr.fileno()] == [1, 2]
            getattr(sys.stdout, spoil)()
            sys.stderr = None
        assert [sys.stdout, sys.stderr] == list(own_streams()) == [out, err]
        out.write("open")
    os.fstat(1)
