"""Test files as pytest's own: a file is a collector, a case against an agent is an item."""

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from atp.base.diagnostics import Diagnostic, LoadError
from atp.base.diagnostics_text import printable, render
from atp.base.secrets import every_secret, hider
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.prepare.plan import Unit
from atp.loader.inputs import is_test_file
from atp.pytest_plugin.plugin import shared_session
from atp.pytest_plugin.session import NAME_FLAG, NotRun, SuiteRun
from atp.report.console.case_text import case_lines
from atp.report.facts import is_failure, quarantine_text, reason, shown_trial
from atp.suite.case import Case
from atp.suite.result import Blame, CaseResult

_PYTESTS_OWN = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"})
"""Marks that tell pytest what to do. A tag of such a name does not become a mark."""


class AtpWarning(pytest.PytestWarning):
    """Something in a test file is worth a look."""


class CaseFailed(Exception):
    """A case did not pass because of the agent."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(result.error or result.status)
        self.result = result
        """Everything about the case."""


class CaseInconclusive(CaseFailed):
    """The gate of a case could be shown neither reached nor missed."""


class CaseBroke(CaseFailed):
    """A case could not be completed or judged."""

    @property
    def blame(self) -> Blame:
        """Who is to blame for the error."""
        return shown_trial(self.result).blame or "environment"


def is_suite(path: Path, *, named: bool) -> bool:
    """True for a test file. A `.json` file is one only if it is named."""
    return named or (not path.name.lower().endswith(".json") and is_test_file(path))


class Planned(NamedTuple):
    """What an item runs."""

    run: SuiteRun
    unit: Unit
    tested: AgentUnderTest
    case: Case


class SuiteFile(pytest.File):
    """A test file."""

    def collect(self) -> "Iterable[CaseItem]":
        """An item for each case and agent."""
        shared = shared_session(self.config)
        try:
            run = shared.prepare(self.path)
        except LoadError as error:
            raise self.CollectError(_text([_for_pytest(one) for one in error.diagnostics])) from None
        self._warn(run.warnings)
        names: Counter[str] = Counter()
        for unit in run.plan.units:
            for case in unit.source.cases():
                if case.only_before:
                    continue
                agents = [tested for tested in unit.agents if tested.is_among(case.agents)]
                for tested in agents:
                    name = run.secrets.mask_text(_name(case, tested if len(agents) > 1 else None))
                    names[name] += 1
                    run.collected.add((tested.name, case.id))
                    unique = name if names[name] == 1 else f"{name}-{names[name]}"
                    yield CaseItem.of(self, unique, Planned(run, unit, tested, case))

    def _warn(self, found: Iterable[Diagnostic]) -> None:
        """Warn of what the loader found; where warnings are errors, raise a collection error."""
        said = []
        for one in found:
            try:
                where = one.file or str(self.path)
                warnings.warn_explicit(AtpWarning(_line(one)), None, where, one.line, module="atp")
            except AtpWarning:
                said.append(one)
        if said:
            raise self.CollectError(_text(said))


class CaseItem(pytest.Item):
    """A case against an agent."""

    planned: Planned
    """What the item runs."""

    @classmethod
    def of(cls, parent: SuiteFile, name: str, planned: Planned) -> "CaseItem":
        """An item, with the case's tags as its marks."""
        item: CaseItem = cls.from_parent(parent, name=name)
        item.planned, case, tested = planned, planned.case, planned.tested
        item.extra_keyword_matches.update({case.name, tested.name, *case.tags})
        for tag in map(planned.run.secrets.mask_text, case.tags):
            if tag not in _PYTESTS_OWN and not tag.startswith("_"):
                _register_mark(tag, item.config)
                item.add_marker(tag)
        return item

    def setup(self) -> None:
        """Skip a case that its file leaves out; the journal of the run has it, too."""
        planned = self.planned
        if planned.case.skip:
            shared_session(self.config).wait(planned.run.skip(planned.unit, planned.case))
            raise pytest.skip.Exception("its file leaves it out", _use_item_location=True)

    def runtest(self) -> None:
        """Run the trials of the case."""
        __tracebackhide__ = True
        planned = self.planned
        result = shared_session(self.config).wait(planned.run.run_case(planned.unit, planned.tested, planned.case))
        self.user_properties.append(("agent", planned.run.secrets.mask_text(result.agent)))
        score = shown_trial(result).score
        if score is not None:
            self.user_properties.append(("score", score))
        if result.status == "skipped":
            pytest.skip(hider(planned.run.secrets)(reason(result)))
        if result.excused:
            pytest.xfail(hider(planned.run.secrets)(f"{quarantine_text(result)}: {reason(result)}"))
        if is_failure(result):
            raise CaseFailed(result)
        if result.status == "inconclusive":
            raise CaseInconclusive(result)
        if result.status != "passed":
            raise CaseBroke(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **more: Any) -> Any:
        """What was expected, what was found, and the conversation; no traceback of ATP."""
        if isinstance(excinfo.value, NotRun):
            return str(excinfo.value)
        if not isinstance(excinfo.value, CaseFailed):
            return super().repr_failure(excinfo, *args, **more)
        result = excinfo.value.result
        hide, several = hider(self.planned.run.secrets), len(self.planned.unit.agents) > 1
        _, *lines = case_lines(result, hide, name_agent=several, detail=2)  # pytest has printed the name
        return "\n".join([hide(reason(result)), *(text for text, _ in lines)])

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the case is written."""
        return self.path, max(self.planned.case.place.line - 1, 0), self.name


def _register_mark(tag: str, config: pytest.Config) -> None:
    """Register a tag as a mark, which `--strict-markers` demands."""
    known = shared_session(config).marks
    if tag not in known:
        known.add(tag)
        config.addinivalue_line("markers", f"{tag}: a tag of agent tests")


def _name(case: Case, tested: AgentUnderTest | None) -> str:
    """The case's id, and the agent's name where there are several."""
    name = printable(case.id).replace("::", ":")
    return name if tested is None else f"{name}[{printable(tested.name).replace('::', ':')}]"


def _for_pytest(one: Diagnostic) -> Diagnostic:
    """A diagnostic with a hint for pytest, where `-n` is a flag of another plugin."""
    return replace(one, hint=f"name one with {NAME_FLAG}, or as `name` in atp.toml") if one.code == "no-agent" else one


def _text(diagnostics: list[Diagnostic]) -> str:
    return render(diagnostics, False, every_secret())


def _line(one: Diagnostic) -> str:
    return f"{one.code}: {printable(one.with_hint)}"
