"""Opens the input of a run: each file or message becomes a suite whose cases can be iterated repeatedly."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors
from atp.base.project import input_folder, working_directory
from atp.base.secrets import current_secrets
from atp.checks.before_run import compiled_expectations
from atp.engine.case_source import CaseSource, Survey
from atp.engine.prepare.options import Options
from atp.loader.inputs import find_files
from atp.loader.load import dialect_of, load_message, load_path
from atp.loader.source import LoadContext
from atp.suite.case import Case
from atp.suite.suite import Suite

Wants = Callable[[Case], bool]
"""True for a case that is to run."""
ToolsOf = Callable[[CaseSource], frozenset[str]]
"""The tools of a suite's agents, as far as files name them. Called only if a case has expectations."""
_KNOWN_ENDING = re.compile(r".*\.(test\.md|yaml|yml|jsonl|json|md)", re.IGNORECASE)


_DOTTED_SCRIPT = re.compile(r"scripts(\.[^\W\d][\w-]*)+(\?\S*)?")
"""A script as assertions may spell it. No message looks like this, so one that isn't there is an error."""
SMALL = 1_000_000
"""Bytes. The cases of a file up to this size stay in memory, because reading them again takes a fifth of the run."""


@dataclass(frozen=True, slots=True)
class Input:
    """The input of the command line: each `-i` and each positional path."""

    texts: tuple[str, ...]
    paths: tuple[str, ...] = ()

    def identity(self, root: Path) -> list[str]:
        """Identifies the input, independent of the working directory and of where the project is."""
        given = (*self.texts, *self.paths)
        return [os.path.relpath(Path(one).resolve(), root) if os.path.exists(one) else one for one in given]

    @property
    def anchor(self) -> Path:
        """The folder from which the project's root is searched."""
        return input_folder((*self.paths, *self.texts))


def hook_folders(anchor: Path, root: Path) -> tuple[Path, ...]:
    """Return the folders in which hooks are found; `anchor` is that of the input."""
    return working_directory(), anchor, root


def load_context(options: Options, env: Mapping[str, str]) -> LoadContext:
    """Return what the options supply, so that a file need not."""
    return LoadContext(
        env=env,
        agent=options.given("name") and bool(options.name),
        spare_agent=bool(options.name),
        simulator=bool(options.simulator or options.role_connector),
        assessor=bool(options.assessor),
        pass_rate=options.pass_rate is not None,
    )


def open_input(
    given_input: Input, given: LoadContext, wants: Wants, tools_of: ToolsOf | None = None
) -> tuple[list[CaseSource], list[Diagnostic]]:
    """Load all suites of the input; return them with the warnings. Raises `LoadError` if any can't be used."""
    notes = Diagnostics()
    sources: list[CaseSource] = []
    paths = list(given_input.paths)
    for text in given_input.texts:
        if is_reference(text):
            continue
        if is_message(text):
            sources.append(in_memory(load_message(text), wants))
        else:
            paths.append(text)
    found: list[Diagnostic] = []
    for path in find_files(paths, notes) if paths else ():
        if not _is_unicode(path):
            notes.error("file-name", f"{str(path)!a}: its name is not Unicode", hint="rename it, or its folder")
            continue
        source, said = _open_file(path, given, wants, tools_of)
        found.extend(said)
        if source is not None:
            sources.append(source)
    found = [*notes, *found]
    if has_errors(found):
        raise LoadError(found)
    return sources, found


def is_reference(text: str) -> bool:
    """True if an input names an agent or a script: `agents:a.b?count=3`, `scripts:a.b` or `scripts.a.b`."""
    return text.startswith(("agents:", "scripts:")) or bool(_DOTTED_SCRIPT.fullmatch(text))


def _is_unicode(path: Path) -> bool:
    """True if the path can be encoded in a journal or a report."""
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_message(text: str) -> bool:
    """True if an input is a message: no existing path, and nothing that looks like a path."""
    return not (os.path.exists(text) or _KNOWN_ENDING.fullmatch(text) or ("/" in text and not re.search(r"\s", text)))


def _open_file(
    path: Path, given: LoadContext, wants: Wants, tools_of: ToolsOf | None
) -> tuple[CaseSource | None, list[Diagnostic]]:
    if dialect_of(path) == "jsonl":
        return _open_jsonl(path, given, wants, tools_of)
    loaded = load_path(path, given)
    current_secrets().add(loaded.secrets)  # the file may be refused, and the error shows its lines
    if loaded.suite is None:
        return None, loaded.diagnostics
    source = in_memory(loaded.suite, wants, tools_of)
    return source, relevant(loaded.diagnostics, loaded.suite)


def relevant(diagnostics: Iterable[Diagnostic], suite: Suite) -> list[Diagnostic]:
    """The diagnostics of a loaded suite without `missing-assessor`, if it has only expectations with an exact meaning.

    The loader does not know that. The tools that cases know must be set before.
    """
    if any(compiled_expectations(case)[1] for case in suite.cases):
        return list(diagnostics)
    return [one for one in diagnostics if one.code != "missing-assessor"]


def in_memory(suite: Suite, wants: Wants, tools_of: ToolsOf | None = None) -> CaseSource:
    """Return the source of a loaded suite, with its survey."""
    source = CaseSource(suite, lambda: iter(suite.cases), Survey(wants))
    name_tools = _NameTools(source, tools_of)
    for case in suite.cases:
        source.survey.add(name_tools(case))
    return source


class _NameTools:
    """Tells each case with expectations which tools its agents have, so that a word in them can be a tool's name."""

    def __init__(self, source: CaseSource, tools_of: ToolsOf | None) -> None:
        self._source = source
        self._tools_of = tools_of
        self._known: frozenset[str] | None = None

    def __call__(self, case: Case) -> Case:
        if case.expectations and self._tools_of is not None:
            if self._known is None:
                self._known = self._tools_of(self._source)
            case.tools = self._known
        return case


def _open_jsonl(
    path: Path, given: LoadContext, wants: Wants, tools_of: ToolsOf | None
) -> tuple[CaseSource | None, list[Diagnostic]]:
    """Validate a JSONL file now; stream it again when it runs, because the file may be larger than memory.

    A small file is read once: its cases stay in memory.
    """
    from atp.loader.jsonl.records import check_jsonl_file, stream_file

    notes = Diagnostics(str(path))
    kept: list[Case] = []
    small = path.is_file() and path.stat().st_size <= SMALL
    suite = Suite.model_construct(name=path.stem, dialect="jsonl", path=str(path), cases=[], agents=[])
    source = CaseSource(suite, partial(iter, kept), Survey(wants))
    name_tools = _NameTools(source, tools_of)

    def keep(case: Case) -> None:
        source.survey.add(name_tools(case))
        if small:
            kept.append(case)

    if not check_jsonl_file(path, given, notes, keep):
        return None, notes.in_order()
    if not small:
        source.cases = lambda: map(name_tools, stream_file(path, given))
    return source, notes.in_order()
