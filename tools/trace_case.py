"""Prints the functions of ATP that one command passes through, in order: `python tools/trace_case.py test suite.yaml`.

Run on a suite of one case, the list tells what happens to a case from the file to the report. Each line is the first
call of a function by another one: indented by depth, with its place and, once, the first line of its
docstring. Where the caller is not the line that the indentation points to, `<-` names it. Threads and tasks begin at
their own depth; importing a module calls functions, too. The last lines count. The command is really run, and writes
what it always writes: the journal into the `.atp/` of the suite's project, and the reports that `-o` names.
"""

import dis
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import atp

PACKAGE = Path(atp.__file__).parent
_NOT_FUNCTIONS = ("<module>", "<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


@dataclass(slots=True)
class Trace:
    """The calls of ATP's own functions, as `sys.setprofile` reports them."""

    calls: list[tuple[int, CodeType | None, CodeType]] = field(default_factory=list)
    """Each call in order: its depth among ATP's own functions, the caller among them, and the function."""
    _starts: dict[CodeType, int | None] = field(default_factory=dict)
    """The offset of each function's first instruction; none for code that is not a function of ATP's."""

    def record(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note a call. A coroutine or generator that goes on is not called again."""
        if event != "call":
            return
        start = self._start(frame.f_code)
        if start is not None and frame.f_lasti <= start:
            self.calls.append((*self._callers(frame), frame.f_code))

    def _start(self, code: CodeType) -> int | None:
        if code not in self._starts:
            ours = code.co_filename.startswith(str(PACKAGE)) and code.co_name not in _NOT_FUNCTIONS
            is_class_body = not code.co_flags & 0x2  # CO_NEWLOCALS
            self._starts[code] = _first_offset(code) if ours and not is_class_body else None
        return self._starts[code]

    def _callers(self, frame: FrameType) -> tuple[int, CodeType | None]:
        """Return how many functions of ATP are on the stack below a frame, and the innermost of them."""
        depth, caller, around = 0, None, frame.f_back
        while around is not None:
            if self._start(around.f_code) is not None:
                depth, caller = depth + 1, caller or around.f_code
            around = around.f_back
        return depth, caller


def _first_offset(code: CodeType) -> int:
    """Where a function begins: generators and coroutines have a few instructions before they first run."""
    return next((one.offset for one in dis.get_instructions(code) if one.opname == "RESUME"), 0)


def trace(arguments: Sequence[str]) -> tuple[Trace, int]:
    """Run a command of `atp` in this process and record its calls, those in threads included."""
    from atp.cli.main import main

    found = Trace()
    argv, sys.argv = sys.argv, ["atp", *arguments]
    threading.setprofile(found.record)
    sys.setprofile(found.record)
    status = 0
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.argv = argv
    return found, status


def module_of(code: CodeType) -> str:
    """A module's path below the package: `engine/trial/trial`."""
    return str(Path(code.co_filename).relative_to(PACKAGE).with_suffix(""))


def lines(found: Trace) -> list[str]:
    """Return the first call of each function by each other one, as text."""
    pairs: set[tuple[CodeType | None, CodeType]] = set()
    seen: set[CodeType] = set()
    above: list[CodeType | None] = []
    """The function of the last line at each depth: whom the indentation shows as the caller of the next line."""
    text = []
    for depth, caller, code in found.calls:
        if (caller, code) not in pairs:
            summary = _summary(code) if code not in seen else ""
            shown = above[depth - 1] if 0 < depth <= len(above) else None
            by = f"  <- {caller.co_qualname}" if caller is not None and caller is not shown else ""
            text.append(f"{'  ' * depth}{module_of(code)}:{code.co_firstlineno} {code.co_qualname}{by}{summary}")
            above[depth:] = [*[None] * (depth - len(above)), code]
            pairs.add((caller, code))
            seen.add(code)
    return text


def _summary(code: CodeType) -> str:
    first = code.co_consts[0] if code.co_consts else None
    return f"  -- {first.strip().splitlines()[0]}" if isinstance(first, str) and first.strip() else ""


def counts(found: Trace) -> str:
    """How far a case travels: calls, functions, modules, and how often the next call is in another module."""
    modules = [module_of(code) for _, _, code in found.calls]
    switches = sum(one != other for one, other in pairwise(modules))
    functions = len({code for _, _, code in found.calls})
    deepest = max((depth for depth, _, _ in found.calls), default=0)
    return (
        f"{len(modules)} calls of {functions} functions in {len(set(modules))} modules, "
        f"{switches} changes of module, {deepest} deep"
    )


def main() -> None:
    """Trace the command that the arguments give."""
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/trace_case.py test SUITE [FLAGS …]: any command of atp, which is really run")
    found, status = trace(sys.argv[1:])
    sys.stdout.write("\n".join([*lines(found), "", counts(found), f"atp ended with exit code {status}", ""]))


if __name__ == "__main__":
    main()
