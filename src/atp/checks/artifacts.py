"""Whether the agent made a file or artifact, and whether its content is as wanted."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from atp.base.found_json import MISSING
from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.globs import is_glob, normal_path
from atp.checks.made import Made, NoFile, Unreadable, made_at
from atp.checks.output import has, has_match
from atp.checks.run_check import check, in_background
from atp.checks.verdicts import failed, passed, unjudged
from atp.suite.assertion import ArtifactExists
from atp.suite.result import Verdict

MOST_CANDIDATES = 1_000
"""Files that are looked into for one assertion."""
MOST_NAMED = 10
"""Files that a message lists."""


@check("artifact_exists")
async def artifact_exists(assertion: ArtifactExists, evidence: Evidence) -> Verdict:
    """The agent made a file or artifact. Files are looked at in a thread, as they may be many and large."""
    if evidence.workspace is not None and evidence.workspace.exists:
        return await in_background(_exists, assertion, evidence)
    return _exists(assertion, evidence)


def _exists(assertion: ArtifactExists, evidence: Evidence) -> Verdict:
    """Of several candidates one is enough."""
    unlike: Verdict | None = None
    open_question: Verdict | None = None
    for made in islice(made_at(assertion.path, evidence), MOST_CANDIDATES):
        verdict = _is_as_wanted(assertion, made)
        if verdict.passed:
            return verdict
        if verdict.outcome == "unjudged":
            open_question = open_question or verdict
        unlike = unlike or verdict
    return open_question or unlike or _not_made(assertion.path, evidence)


def _is_as_wanted(assertion: ArtifactExists, made: Made) -> Verdict:
    where = f"artifact {cut(made.name, 100)}"
    try:
        made.must_be_a_file()
        for rule in _rules(assertion, made, where):
            verdict = rule()
            if not verdict.passed:
                return verdict
    except NoFile as error:
        return failed(f"expected a file `{assertion.path}`, but {error}", expected=assertion.path, where=where)
    except Unreadable as error:
        return unjudged(f"`{made.name}` could not be looked into: {error}", where=where)
    return passed(f"`{cut(made.name, 100)}` was made", expected=assertion.path, found=made.name, where=where)


def _rules(assertion: ArtifactExists, made: Made, where: str) -> Iterator[Callable[[], Verdict]]:
    """The cheap ones first."""
    least, digest, schema = assertion.min_bytes, assertion.sha256, assertion.json_schema
    text, pattern = assertion.contains, assertion.matches
    if least is not None:
        yield lambda: _long_enough(least, made, where)
    if digest is not None:
        yield lambda: _has_digest(digest, made, where)
    if text is not None:
        yield lambda: has(text, made.subject())
    if pattern is not None:
        yield lambda: has_match(pattern, made.subject())
    if schema is not None:
        yield lambda: _fits(schema, made, where)


def _long_enough(least: int, made: Made, where: str) -> Verdict:
    size = made.size()
    if size >= least:
        return passed(where=where)
    return failed(f"expected at least {least} bytes, found {size}", expected=least, found=size, where=where)


def _has_digest(wanted: str, made: Made, where: str) -> Verdict:
    found = hashlib.sha256(made.content()).hexdigest()
    if found == wanted.lower():
        return passed(where=where)
    return failed(f"expected the sha256 {wanted.lower()}, found {found}", expected=wanted, found=found, where=where)


def _fits(schema: dict[str, Any], made: Made, where: str) -> Verdict:
    from atp.checks.schema import fits_schema

    data = made.data()
    if data is MISSING:
        text = made.subject().text
        return failed("expected JSON that fits the schema, but the content is not JSON", found=text, where=where)
    return fits_schema(schema, data, where)


def _not_made(path: str, evidence: Evidence) -> Verdict:
    names = [*evidence.made, *(artifact.name for artifact in evidence.transcript.artifacts)]
    shown = ", ".join(cut(name, 60) for name in list(dict.fromkeys(names))[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    found = f"{shown}{more}" if names else "nothing"
    wanted = normal_path(path)
    why = ""
    if any(normal_path(artifact.name) == wanted for artifact in evidence.transcript.artifacts):
        why = " (the agent speaks of it, but it is not in the workspace)"
    elif not is_glob(wanted) and _untouched(wanted, evidence):
        why = " (it is there, but the agent did not make or change it)"
    return failed(f"expected the artifact `{path}`{why}, found {found}", expected=path, found=names, where="artifacts")


def _untouched(path: str, evidence: Evidence) -> bool:
    workspace = evidence.workspace
    return workspace is not None and workspace.exists and ".." not in path and (workspace.path() / path).exists()
