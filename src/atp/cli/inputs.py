"""The arguments and options that commands on test files share, and the files loaded."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors
from atp.base.project import QUARANTINE, find_root, input_folder
from atp.base.secrets import Secrets, masking
from atp.engine.prepare.options import Options
from atp.engine.prepare.settings import environment, environment_secrets, resolve_options
from atp.engine.prepare.sources import load_context
from atp.loader.inputs import find_files
from atp.loader.load import Loaded, load_path

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = [
    click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path()),
    click.option("-n", "--name", multiple=True, help="An agent is named at run time: the file needs none."),
    click.option("--simulator", help="A simulator is named at run time: cases need none."),
    click.option("--assessor", help="An assessor is named at run time: the file needs none."),
    click.option("--role-connector", help="A model for the roles is named at run time: cases need none."),
    click.option("--strict", is_flag=True, help="Warnings are errors."),
]


@dataclass(frozen=True, slots=True)
class LoadedFiles:
    """The files that PATH… stands for."""

    files: list[Loaded]
    path_diagnostics: list[Diagnostic]
    """What is wrong with the paths themselves, and with the settings and the `.env` of their project."""
    environment_secrets: frozenset[str]
    """The secrets among the variables that a run of these files would have."""

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What is wrong with the paths, then with each file."""
        return [*self.path_diagnostics, *(one for file in self.files for one in file.diagnostics)]

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not has_errors(self.diagnostics)

    @property
    def secrets(self) -> frozenset[str]:
        """Values that no output may show."""
        return self.environment_secrets.union(*(file.secrets for file in self.files))


def takes_files(command: Command) -> Command:
    """Add PATH…, what the command line may name in place of the file, and --strict: the arguments of `load_files`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def load_files(paths: tuple[str, ...], strict: bool, *, check: bool = False, **flags: Any) -> LoadedFiles:
    """Find and load the files that the paths stand for, with the settings of their project. `strict` refuses warnings.

    With `check`, files that could be loaded are looked through for what `atp test` would refuse.
    """
    notes = Diagnostics()
    root, given = find_root(input_folder(paths)), {name: value for name, value in flags.items() if value}
    env: Mapping[str, str] = os.environ
    options = Options()
    try:
        env = with_file = environment(root, None)
        notes.extend(with_file.warnings)
    except LoadError as error:
        notes.extend(error.diagnostics)
    secrets = frozenset(environment_secrets(env))
    with masking(Secrets(secrets)):
        try:
            named = {"name": list(given["name"])} if "name" in given else {}
            options = resolve_options({**given, **named}, root, env)
        except LoadError as error:
            notes.extend(error.diagnostics)
        files = [load_path(path, load_context(options, env)) for path in find_files(paths, notes)]
        if not check and any(case.expectations for one in files if one.suite for case in one.suite.cases):
            from atp.engine.prepare.agents import Project, agent_tools
            from atp.engine.prepare.sources import in_memory

            project = Project(root, env)
            for suite in filter(None, (one.suite for one in files)):
                in_memory(suite, lambda _: False, lambda source: agent_tools(source, options, project))
        if check and (root / QUARANTINE).exists():  # most projects have none, and need not load what reads one
            from atp.history.quarantine import load_quarantine

            try:
                load_quarantine(root)
            except LoadError as error:
                notes.extend(error.diagnostics)
        if check and not has_errors(notes):
            from atp.engine.prepare.check_suite import check_suite
            from atp.engine.prepare.sources import relevant

            for one in files:
                if one.suite is not None and one.ok:
                    checked = check_suite(one.suite, options, root, env, input_folder(paths))
                    one.diagnostics[:] = [*relevant(one.diagnostics, one.suite), *checked]
    if strict or options.strict:
        files = [replace(one, diagnostics=[_as_error(note) for note in one.diagnostics]) for one in files]
        notes[:] = map(_as_error, notes)
    return LoadedFiles(files, list(notes), secrets)


def _as_error(note: Diagnostic) -> Diagnostic:
    return replace(note, severity="error")
