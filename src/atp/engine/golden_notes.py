"""What becomes of golden files at the end of a run: those that were written are counted, obsolete ones found."""

from collections.abc import Iterator
from functools import partial

from atp.base.numbers import counted
from atp.checks.golden_files import GoldenError, GoldenFile, golden_names_of, obsolete_files, remove_golden_file
from atp.checks.snapshot import FLAG
from atp.engine.case_source import CaseSource, how_many
from atp.engine.prepare.plan import Plan
from atp.engine.run_context import RunContext

MOST_NAMED = 5
"""Golden files that a note names."""


def golden_notes(plan: Plan, context: RunContext, *, whole: bool) -> Iterator[str]:
    """What a person should know of the golden files when a run has ended; removes obsolete ones if that is asked for.

    Which files are obsolete is known only when the `whole` input was run.
    """
    updates = context.golden_updates
    if updates.written:
        names = [one.name for one in updates.written]
        yield f"{counted(len(names), 'golden file')} written: {_listed(names)}"
    found: dict[str, GoldenFile] = {}
    for unit in plan.units if whole else ():
        if unit.source.golden_folder is not None:
            obsolete = obsolete_files(unit.source.golden_folder, partial(_used, unit.source))
            found |= {str(file.path): file for file in obsolete}
    if not found:
        return
    names = [file.name for file in found.values()]
    if not updates.wanted:
        yield f"{counted(len(names), 'golden file')} no check uses: {_listed(names)}; {FLAG} removes such files"
        return
    try:
        for file in found.values():
            remove_golden_file(file)
        yield f"{counted(len(names), 'golden file')} removed that no check uses: {_listed(names)}"
    except GoldenError as error:
        yield str(error)


def _used(source: CaseSource) -> Iterator[str]:
    """The names of the golden files that the cases of a suite use, those included that are skipped."""
    for case in source.cases():
        yield from golden_names_of(source.suite, case, how_many(case))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "")
