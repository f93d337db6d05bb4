"""What people say of the answers and verdicts of a run: `labels.jsonl` in the run's folder, only ever appended to.

A label is all that one person says of one thing at one time: a thumb, a verdict, a comment. The thing is an answer (a
trial as a whole) or one of the trial's checks. The newest line of the same person on the same thing counts, and a label
that says nothing takes back what the person said before. Any number of processes may write at once.

    add_labels(run, [Label(trial=key, check=(0,), verdict="failed", by="ada", at=time.time())])
    read_labels(run)  # those that count
"""

import getpass
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from atp.base.diagnostics import Diagnostics, LoadError, Place, has_errors
from atp.base.git import user_name
from atp.base.json.text import UNREADABLE, encode
from atp.base.line_file import LineFile
from atp.base.near import near_miss
from atp.base.project import unreadable
from atp.base.secrets import current_secrets
from atp.journal.read import read_lines
from atp.journal.records import NAME as JOURNAL
from atp.journal.records import Trial
from atp.suite.result import Moment, TrialResult, Verdict

NAME = "labels.jsonl"
"""The file's name, in the folder of the run."""
LONGEST_COMMENT = 10_000
"""Characters of a comment."""
LONGEST_NAME = 200
"""Characters of a person's name."""
CheckPlace = tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
"""A check of a trial: its place among `verdicts` from 0, then, inside groups, its place among `parts`."""


class Label(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """What one person says of one answer or check."""

    trial: str
    """The key of the trial."""
    check: CheckPlace = ()
    """The check; empty for the answer as a whole."""
    thumb: Literal["up", "down"] | None = None
    """Whether the person likes it."""
    verdict: Literal["passed", "failed"] | None = None
    """Whether the check holds, in the person's judgement; of an answer, whether it is good."""
    comment: Annotated[str, msgspec.Meta(max_length=LONGEST_COMMENT)] | None = None
    """What else the person has to say."""
    by: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    """Who says it."""
    at: Moment
    """When, in seconds since 1970."""

    @property
    def is_empty(self) -> bool:
        """True if the label only takes back an earlier one."""
        return self.thumb is None and self.verdict is None and not self.comment

    @property
    def identity(self) -> tuple[str, CheckPlace, str]:
        """Who labels what: a newer label of the same identity replaces an older one."""
        return self.trial, self.check, self.by


class LabelledTrial(NamedTuple):
    """What has to be known of a trial to know whether a label fits it."""

    case: str
    """The case's id."""
    agent: str
    """The agent's name."""
    run: int
    """Which repeat."""
    verdicts: list[Verdict]
    """The verdicts of its checks."""


class ExportedLabel(Label, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A line of an exported file: a label, and in words what it is about. Importing compares these with the run."""

    case: str | None = None
    """The case's id."""
    agent: str | None = None
    """The agent's name."""
    run: int | None = None
    """Which repeat."""
    criterion: str | None = None
    """What the check looks for."""

    @property
    def label(self) -> Label:
        """The label alone."""
        return Label(**_fields(self))


_DECODER = msgspec.json.Decoder(Label)
_EXPORTED = msgspec.json.Decoder(ExportedLabel)


def _fields(label: Label) -> dict[str, Any]:
    return {name: getattr(label, name) for name in Label.__struct_fields__}


def default_person(folder: Path) -> str:
    """Who labels, if nobody says: the name that git has for commits in a folder, else the name of the login."""
    with suppress(OSError, KeyError):  # a container may have a user without a name
        return (user_name(folder) or getpass.getuser())[:LONGEST_NAME]
    return "unknown"


def read_labels(run: Path, damaged: list[int] | None = None) -> list[Label]:
    """The labels of a run that count, in the order in which the persons first said something of each thing.

    A torn or damaged line is passed over, and the number of the line is noted in `damaged`.
    """
    return [label for label in _newest(run, damaged).values() if not label.is_empty]


def add_labels(run: Path, labels: Iterable[Label]) -> None:
    """Append labels to those of a run. They survive the end of this process. Raises `LoadError` if that fails.

    Whether the trial and the check exist is the caller's business: `wrong_place` says.
    """
    lines = b"".join(map(_line, labels))
    _append(run, lambda: lines)


def _newest(run: Path, damaged: list[int] | None) -> dict[tuple[str, CheckPlace, str], Label]:
    """The last label of each person on each thing, empty ones included."""
    found: dict[tuple[str, CheckPlace, str], Label] = {}
    path = run / NAME
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    label = _DECODER.decode(line)
                except UNREADABLE:  # a last line without its line break is being written, or was torn
                    if damaged is not None:
                        damaged.append(number)
                else:
                    found[label.identity] = label
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unreadable(path, error) from error
    return found


def _line(label: Label) -> bytes:
    return encode(current_secrets().mask(label, numbers=False)) + b"\n"


def _append(run: Path, lines: Callable[[], bytes]) -> None:
    try:
        with closing(LineFile(run / NAME)) as file:
            file.append(lines)
    except OSError as error:
        notes = Diagnostics(str(run / NAME))
        message = f"the labels can't be written: {error.strerror or error}"
        notes.error("unwritable-labels", message, hint="check its permissions, and the space on the disk")
        raise LoadError(notes) from error


def check_at(verdicts: list[Verdict], place: CheckPlace) -> Verdict | None:
    """The verdict at a place; None if there is none."""
    found: Verdict | None = None
    for number in place:
        if number >= len(verdicts):
            return None
        found = verdicts[number]
        verdicts = found.parts
    return found


def criterion_of(verdict: Verdict) -> str:
    """What a check is called in an exported file: its name, else its kind."""
    return verdict.name or verdict.type


def wrong_place(label: Label, trial: TrialResult | LabelledTrial | None) -> str | None:
    """Why a label can't be about this trial; None if it can."""
    if trial is None:
        return f"the run has no trial `{label.trial}`"
    if label.check and check_at(trial.verdicts, label.check) is None:
        place = ".".join(map(str, label.check))
        return f"the trial `{label.trial}` has no check {place}: places are counted from 0"
    return None


def labelled_trials(run: Path, keys: Iterable[str] | None = None) -> dict[str, LabelledTrial]:
    """The trials of a run by key, or those that `keys` names."""
    wanted = set(keys) if keys is not None else None
    found: dict[str, LabelledTrial] = {}
    try:
        for _, line in read_lines(run / JOURNAL):
            if isinstance(line, Trial) and (wanted is None or line.result.key in wanted):
                one = line.result
                found[one.key] = LabelledTrial(one.case, one.agent, one.run, one.verdicts)
    except OSError as error:
        raise unreadable(run / JOURNAL, error) from error
    return found


def export_labels(run: Path, damaged: list[int] | None = None) -> bytes:
    """The labels of a run that count as JSON lines, each with its case, agent and criterion for people to read."""
    labels = read_labels(run, damaged)
    trials = labelled_trials(run, {label.trial for label in labels})
    lines = []
    for label in labels:
        about = _fields(label)
        if (trial := trials.get(label.trial)) is not None:
            about |= {"case": trial.case, "agent": trial.agent, "run": trial.run}
            if (verdict := check_at(trial.verdicts, label.check)) is not None:
                about["criterion"] = criterion_of(verdict)
        lines.append(_line(ExportedLabel(**about)))
    return b"".join(lines)


class Imported(NamedTuple):
    """What became of the labels of a file."""

    added: int
    """Labels that are new."""
    kept: int
    """Labels that the run had already, or of which it has a newer one by the same person."""


def import_labels(run: Path, data: bytes, file: str) -> Imported:
    """Add exported labels to those of a run. Importing a file twice changes nothing.

    Raises `LoadError` with every line that is wrong, and then adds nothing.
    """
    notes = Diagnostics(file)
    read = dict(_exported(data, notes))
    trials = labelled_trials(run, {one.trial for one in read.values()})
    for number, exported in read.items():
        _check_fits(exported, trials, Place(number, 1), notes)
    if has_errors(notes):
        raise LoadError(notes.in_order())
    counts = [0, 0]

    def new_lines() -> bytes:
        known = _newest(run, None)
        lines = []
        for label in (one.label for one in read.values()):
            there = known.get(label.identity)
            is_new = there is None or there.at < label.at
            counts[not is_new] += 1
            if is_new:
                known[label.identity] = label
                lines.append(_line(label))
        return b"".join(lines)

    _append(run, new_lines)
    return Imported(*counts)


def _exported(data: bytes, notes: Diagnostics) -> Iterable[tuple[int, ExportedLabel]]:
    """The labels of a file with the numbers of their lines. A byte order mark and empty lines are passed over."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                yield number, _EXPORTED.decode(line)
            except UNREADABLE as error:
                notes.error("bad-label", f"not a label: {error}", Place(number, 1), _hint(line))


def _hint(line: bytes) -> str:
    """How to fix a line that is no label."""
    try:
        given = msgspec.json.decode(line)
    except UNREADABLE:
        return "each line is one JSON object, as `atp labels export` writes it"
    known = ExportedLabel.__struct_fields__
    unknown = [name for name in given if name not in known] if isinstance(given, dict) else []
    if unknown and (meant := near_miss(unknown[0], known)):
        return f"did you mean `{meant}`?"
    return 'a label needs `trial`, `by` and `at`, and says something with `verdict` ("passed" or "failed"), `thumb` \
("up" or "down") or `comment`'


def _check_fits(exported: ExportedLabel, trials: Mapping[str, LabelledTrial], at: Place, notes: Diagnostics) -> None:
    trial = trials.get(exported.trial)
    if (wrong := wrong_place(exported.label, trial)) is not None or trial is None:
        hint = "labels belong to the run that they were given in: import them there, or remove the line"
        notes.error("label-unknown", wrong or "", at, hint)
        return
    said = {"case": trial.case, "agent": trial.agent, "run": trial.run}
    verdict = check_at(trial.verdicts, exported.check)
    said |= {"criterion": criterion_of(verdict)} if verdict is not None else {}
    for name, really in said.items():
        if (given := getattr(exported, name)) not in (None, really):
            message = f"`{name}` is `{given}` here, and `{really}` in the run"
            notes.error("label-unknown", message, at, "the label is about another run or check: correct or remove it")
