"""Random samples of a run's judged checks, for people to label: a file of JSON lines that is filled in.

The first line says which run the sample is of. Each further line is a verdict of a judge on an answer, without what the
judge said: whoever labels is not to be led by it. Its `weight` is how many verdicts of the run it stands for.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from atp.base.diagnostics import Diagnostics, LoadError, Place, has_errors, load_error
from atp.base.files import write_file
from atp.base.json.text import UNREADABLE, encode
from atp.base.project import unreadable
from atp.base.secrets import current_secrets
from atp.base.text import cut
from atp.journal.labels import CheckPlace
from atp.journal.listeners import Listener
from atp.journal.recorded_run import RecordedRun
from atp.stats.calibration import draw
from atp.stats.judges import criterion_text, judged_verdicts, trials_to_count
from atp.suite.result import CaseResult, TrialResult, Verdict

NAME = "sample.jsonl"
"""The file's name, in the folder of the run."""
FORMAT = 1
"""The format of samples that this version writes. A higher one is refused."""
_LONGEST_TEXT = 20_000
"""Characters of a text that people read."""


class SampleHead(msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of a sample."""

    type: Literal["atp sample"]
    """Tells a sample from other JSON lines."""
    format: Annotated[int, msgspec.Meta(ge=1)]
    """The format's number."""
    run: str
    """The id of the run."""
    seed: str = "0"
    """What the dice were thrown with: the same seed draws the same sample."""
    criterion: str | None = None
    """The text that the criteria had to contain, if only some were drawn from."""


class SampleItem(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A check to be labelled."""

    label: Literal["passed", "failed"] | None = None
    """To be filled in: whether the answer fulfils the criterion, in a person's judgement."""
    comment: str | None = None
    """To be filled in, if there is something to say."""
    criterion: str
    """What the judge was asked."""
    case: str
    """The case's id."""
    agent: str
    """The agent's name."""
    run: int
    """Which repeat."""
    conversation: list[str]
    """What was said."""
    tool_calls: list[str]
    """The tools that the agent called, each with its arguments and its result."""
    answer: str
    """The agent's last answer."""
    trial: str
    """The key of the trial."""
    check: CheckPlace
    """The place of the check."""
    stratum: str
    """The part of the run that the check was drawn from. Whoever labels need not know what it stands for."""
    weight: Annotated[float, msgspec.Meta(ge=1)]
    """How many checks of the run this one stands for."""

    @property
    def identity(self) -> tuple[str, CheckPlace]:
        """The check."""
        return self.trial, self.check


class Sample(NamedTuple):
    """A sample that was read."""

    head: SampleHead
    """Its first line."""
    items: list[SampleItem]
    """The checks that were drawn."""


class _Candidate(NamedTuple):
    """A check that may be drawn."""

    trial: TrialResult
    place: CheckPlace
    verdict: Verdict


class _Candidates(Listener):
    """Collects the checks that a judge decided, by judge and outcome."""

    def __init__(self, criterion: str | None) -> None:
        self._criterion = criterion
        self.strata: dict[tuple[str, str], list[tuple[str, CheckPlace]]] = {}
        self.judged = 0
        """Checks that were judged, whoever judged."""

    def case(self, result: CaseResult) -> None:
        """Collect the checks of a case."""
        for trial in trials_to_count(result):
            self.judged += any(verdict.judged for verdict in trial.verdicts)
            for place, verdict in judged_verdicts(trial.verdicts):
                if verdict.outcome != "unjudged" and fits(self._criterion, criterion_text(verdict)):
                    assert verdict.judge is not None
                    stratum = (verdict.judge.digest, verdict.outcome)
                    self.strata.setdefault(stratum, []).append((trial.key, place))


class _Drawn(Listener):
    """Collects the checks that were drawn."""

    def __init__(self, wanted: Mapping[str, Sequence[CheckPlace]]) -> None:
        self._wanted = wanted
        self.found: dict[tuple[str, CheckPlace], _Candidate] = {}

    def case(self, result: CaseResult) -> None:
        """Collect the drawn checks of a case."""
        for trial in result.trials:
            if places := self._wanted.get(trial.key):
                verdicts = dict(judged_verdicts(trial.verdicts))
                self.found |= {(trial.key, place): _Candidate(trial, place, verdicts[place]) for place in places}


def fits(wanted: str | None, criterion: str) -> bool:
    """True if a criterion contains the text that was asked for."""
    return wanted is None or wanted.casefold() in criterion.casefold()


def draw_sample(run: Path, number: int, *, seed: str = "0", criterion: str | None = None) -> Sample:
    """Draw a sample of the checks that judges decided in a run. Raises `LoadError` if there are none.

    The verdicts of each judge are drawn by outcome, so that good and bad answers are in the sample.
    """
    recorded = RecordedRun(run, relocate=False)
    candidates = _Candidates(criterion)
    recorded.repeat(candidates)
    if not candidates.strata:
        raise _nothing_to_label(run, criterion, candidates.judged)
    drawn = draw(candidates.strata, number, Random(f"{recorded.info.id} {seed}"))  # noqa: S311
    wanted: dict[str, list[CheckPlace]] = {}
    for _, _, (key, place) in drawn:
        wanted.setdefault(key, []).append(place)
    found = _Drawn(wanted)
    recorded.repeat(found)
    # Numbered in the order of the draw: the first stratum is not always the one of passed verdicts.
    numbers = {stratum: str(at) for at, stratum in enumerate(dict.fromkeys(one for one, _, _ in drawn), 1)}
    items = [_item(found.found[identity], numbers[stratum], weight) for stratum, weight, identity in drawn]
    return Sample(
        SampleHead(type="atp sample", format=FORMAT, run=recorded.info.id, seed=seed, criterion=criterion),
        items,
    )


def _nothing_to_label(run: Path, criterion: str | None, judged: int) -> LoadError:
    if criterion is not None:
        return load_error("nothing-to-label", f"no criterion in the run {run.name} contains `{criterion}`")
    if judged:
        message = f"the run {run.name} was written by an earlier version, and does not say who judged"
        return load_error(
            "nothing-to-label", message, f"judge it again, then draw from that run: atp recheck {run.name}"
        )
    hint = "checks that judges decide are `llm_eval`, `agent`, and expectations in words"
    return load_error("nothing-to-label", f"no judge decided anything in the run {run.name}", hint)


def _item(one: _Candidate, stratum: str, weight: float) -> SampleItem:
    seen = one.trial.transcript
    said = [f"{message.get('role', '?')}: {_text(message.get('content'))}" for message in seen.messages]
    calls = [f"{call.name}({_text(call.arguments)}) → {call.error or _text(call.result)}" for call in seen.tool_calls]
    return SampleItem(
        criterion=criterion_text(one.verdict),
        case=one.trial.case,
        agent=one.trial.agent,
        run=one.trial.run,
        conversation=said,
        tool_calls=calls,
        answer=_text(seen.output),
        trial=one.trial.key,
        check=one.place,
        stratum=stratum,
        weight=weight,
    )


def _text(value: Any) -> str:
    return cut(value if isinstance(value, str) else "" if value is None else encode(value).decode(), _LONGEST_TEXT)


def write_sample(path: Path, sample: Sample) -> None:
    """Write a sample. Raises `OSError`."""
    hide = current_secrets().mask
    lines = (encode(hide(line, numbers=False)) for line in (sample.head, *sample.items))
    write_file(path, b"".join(line + b"\n" for line in lines).decode())


def read_sample(path: Path) -> Sample:
    """Read a sample. Raises `LoadError` with every line that is wrong."""
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except FileNotFoundError as error:
        raise load_error("no-sample", f"there is no file {path}", "draw one: atp calibrate sample RUN") from error
    except OSError as error:
        raise unreadable(path, error) from error
    notes = Diagnostics(str(path))
    head = _head(lines[0], notes)
    items = list(_items(lines, notes)) if head is not None else []
    if head is None or has_errors(notes):
        raise LoadError(notes.in_order())
    return Sample(head, items)


def _head(line: bytes, notes: Diagnostics) -> SampleHead | None:
    try:
        head = msgspec.json.decode(line, type=SampleHead)
    except UNREADABLE as error:
        hint = "the first line of a sample says which run it is of: keep it as atp calibrate sample wrote it"
        notes.error("bad-sample", f"not the first line of a sample: {error}", hint=hint)
        return None
    if head.format > FORMAT:
        message = f"a sample of format {head.format}, and this version reads samples up to format {FORMAT}"
        notes.error("newer-format", message, hint="update ATP")
        return None
    return head


def _items(lines: Sequence[bytes], notes: Diagnostics) -> Iterator[SampleItem]:
    decoder = msgspec.json.Decoder(SampleItem)
    seen: dict[tuple[str, CheckPlace], int] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            item = decoder.decode(line)
        except UNREADABLE as error:
            hint = 'fill in `label` with "passed" or "failed", or leave it null; change nothing else'
            notes.error("bad-sample", f"not an item of a sample: {error}", Place(number, 1), hint)
            continue
        first = seen.setdefault(item.identity, number)
        if first != number:
            notes.error("bad-sample", f"the same check as on line {first}", Place(number, 1), "remove one of them")
        yield item
