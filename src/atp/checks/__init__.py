"""Checks: a transcript and a workspace in, verdicts out. How the transcript came about is none of their business.

A plugin's check is a function, and its module an entry point in the group `atp.checks`:

    @check("polite")
    def polite(assertion: Polite, evidence: Evidence) -> Verdict:
        found = any(word in evidence.answer.text for word in assertion.words)
        return passed("a polite word") if found else failed("no polite word", found=evidence.output)
"""

from atp.checks.case_checks import assertions_of, check_case
from atp.checks.evidence import Evidence, Workspace
from atp.checks.run_check import check, run_check, unsupported
from atp.checks.verdicts import failed, passed, unjudged

__all__ = [
    "Evidence",
    "Workspace",
    "assertions_of",
    "check",
    "check_case",
    "failed",
    "passed",
    "run_check",
    "unjudged",
    "unsupported",
]
