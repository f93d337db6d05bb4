"""What a case that an agent generated may not have.

Such a case is not trusted like a file of the user's. It says what is said to the agent and what must hold afterwards;
how it is run, as whom, with which model and at which cost stays with the user. Keys are allowed, not forbidden, so that
a new key of cases is refused until somebody allows it here.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from atp.base.project import is_below
from atp.base.secrets import current_secrets
from atp.checks.before_run import deciders
from atp.checks.judged import AgentAssertion, LlmEval
from atp.checks.script import ScriptAssertion
from atp.checks.snapshot import SnapshotAssertion
from atp.models.connectors.sources import SUFFIXES
from atp.suite.assertion import ASSERTIONS, Assertion, each_assertion
from atp.suite.case import MOST_TURNS, Case
from atp.suite.message import attached_file
from atp.suite.options import Options
from atp.usercode.code_path import is_script

MOST_VOTES = 5
"""How often a generated case may have its judge asked."""
ALLOWED = {
    *("index", "id", "name", "description", "tags", "place", "messages", "task", "simulator", "checkpoints"),
    *("max_turns", "assertions", "expectations", "expected", "limits", "locale", "metadata"),
    "chains",  # no key of a JSONL record: the loader makes them of a task
}
"""The fields of a case that an agent may fill."""
_ALLOWED_LIMITS = {"max_steps", "max_tokens", "allowed_tools"}
"""Limits that can only be checks: nothing that the user sets gives way to them."""
_AGENT_ID = re.compile(r"(agents:)?[\w-]+(\.[\w-]+)*(?<!\.md)(?<!\.py)")
"""The id of an agent or a connector: no path, no address and no function."""
_DATA = re.compile(r"data:", re.IGNORECASE)
"""What the address of an attachment begins with that the generator wrote itself."""
_SETTINGS = ("atp.toml", "pyproject.toml")
_SETTINGS_ENDINGS = (".env", *SUFFIXES)
_LARGEST = 64 * 1024 * 1024
"""Bytes; a larger file is not searched for secrets, so it is refused."""
_WHY = "a case that an agent generated may"


def refusals(case: Case, *, root: Path, folders: Sequence[Path]) -> Iterator[str]:
    """What a case may not have, in words. Agents look for attachments in `folders`."""
    for name, field in type(case).model_fields.items():
        if name not in ALLOWED and getattr(case, name) != field.get_default(call_default_factory=True):
            yield f"`{name}`: {_WHY} {_reason(name)}"
    for name in sorted(case.limits.given().keys() - _ALLOWED_LIMITS):
        yield f"`{name}`: {_WHY} not change how cases are run"
    if case.max_turns is not None and case.max_turns > MOST_TURNS:
        yield f"`max_turns`: {_WHY} have {MOST_TURNS} turns at most"
    roles = [one.name for one in deciders(case)]
    if case.simulator is not None:
        roles.append(case.simulator.use)
        yield from _in_options(case.simulator.options, "simulator")
    for role in filter(None, roles):
        if is_script(role) or not _AGENT_ID.fullmatch(role):
            yield f"`{role}`: {_WHY} only name agents by their id"
    for assertion in each_assertion(case.asserted):
        yield from _in_assertion(assertion)
    for address in (address for message in case.messages for address in message.addresses):
        if not _DATA.match(address) and (rule := _broken_rule(address, root, folders)) is not None:
            yield f"the attachment {address}: {_WHY} {rule}"


def _reason(name: str) -> str:
    if name in ("before_hook", "after_hook"):
        return "not run code"
    return "not copy a folder" if name == "workspace" else "not change how cases are run"


def _in_assertion(assertion: Assertion) -> Iterator[str]:
    if isinstance(assertion, ScriptAssertion):
        yield f"`script` {assertion.script}: {_WHY} not run code"
    elif not ASSERTIONS.is_built_in(assertion.type, type(assertion)):
        yield f"`{assertion.type}`: {_WHY} only use the checks of atp itself"
    elif isinstance(assertion, SnapshotAssertion):
        yield f"`snapshot`: {_WHY} not keep golden files"
    elif isinstance(assertion, LlmEval) and assertion.votes > MOST_VOTES:
        yield f"`votes`: {_WHY} ask a judge {MOST_VOTES} times at most"
    elif isinstance(assertion, AgentAssertion):
        yield from _in_options(assertion.options, assertion.use)


def _in_options(options: Options | None, of: str) -> Iterator[str]:
    if options is not None and (keys := options.model_dump(exclude_defaults=True).keys() - {"metadata"}):
        given = ", ".join(f"`{key}`" for key in sorted(keys))
        yield f"the options {given} of `{of}`: {_WHY} only hand `metadata` to an agent"


def _broken_rule(address: str, root: Path, folders: Sequence[Path]) -> str | None:
    """The rule that an attachment breaks, wherever agents look for it; None if it may be sent.

    A file that is not there is refused, too: another program may read `file://localhost/etc` or `file://~` as it likes.
    """
    outside = "only read files of the project, as `file://path`"
    name = attached_file(address)
    if name is None or not name.isprintable() or ".." in Path(name).parts:
        return outside
    try:
        there = [path for folder in folders if (path := folder / name).is_file()]
        real = [path.resolve() for path in there]
    except (OSError, RuntimeError, ValueError):  # a name that is too long, or a link to itself
        return outside
    if not there or not all(is_below(path, [root]) for path in real):
        return outside
    if any(_is_private(path, root) for path in (*there, *real) if is_below(path, [root])):
        return "not send hidden files or settings"
    return "not send a file with a secret in it" if any(map(_may_hold_secret, real)) else None


def _is_private(path: Path, root: Path) -> bool:
    """True if a file of the project is hidden, in a hidden folder, or a file of settings."""
    steps = [step.casefold() for step in path.relative_to(root).parts]
    is_settings = steps[-1] in _SETTINGS or steps[-1].endswith(_SETTINGS_ENDINGS) or steps[0] == "connectors"
    return is_settings or any(step.startswith(".") for step in steps)


def _may_hold_secret(path: Path) -> bool:
    """True if a secret of the run is in a file, or if nobody can tell."""
    secrets = current_secrets()
    if not len(secrets):
        return False
    try:
        content = path.read_bytes() if path.stat().st_size <= _LARGEST else None
    except OSError:
        return True
    if content is None:
        return True
    text = content.decode(errors="replace").replace("\0", "")  # without them, UTF-16 is searched, too
    return secrets.may_be_in(text) and bool(secrets.spans(text))
