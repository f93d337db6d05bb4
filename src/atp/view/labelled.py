"""Labels that people give on the page: on the answer of a trial, or on one of its checks."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from atp.base.json.text import UNREADABLE
from atp.base.secrets import Hide
from atp.journal.labels import (
    LONGEST_COMMENT,
    LONGEST_NAME,
    Label,
    add_labels,
    default_person,
    read_labels,
    wrong_place,
)
from atp.suite.result import TrialResult


class Given(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a page sends: all that its reader says of one thing. Nothing but `check` takes back what was said."""

    check: list[Annotated[int, msgspec.Meta(ge=0)]] = []
    """The place of the check; empty for the answer."""
    thumb: Literal["up", "down"] | None = None
    verdict: Literal["passed", "failed"] | None = None
    comment: Annotated[str, msgspec.Meta(max_length=LONGEST_COMMENT)] | None = None
    by: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)] | None = None
    """Who says it; the user of this machine if nobody is named."""


def labels_of(run: Path, trial: TrialResult, hide: Hide) -> dict[str, Any]:
    """The labels of a trial that count, and whose labels the page gives."""
    found = [msgspec.to_builtins(label) for label in read_labels(run) if label.trial == trial.key]
    return {"labels": hide(found), "by": default_person(run)}


def give(run: Path, trial: TrialResult, body: bytes) -> str | None:
    """Add a label to those of a run. Returns why that can't be done, if so. Raises `LoadError` for a full disk."""
    try:
        given = msgspec.json.decode(body, type=Given)
    except UNREADABLE as error:
        return str(error)
    label = Label(
        trial=trial.key,
        check=tuple(given.check),
        thumb=given.thumb,
        verdict=given.verdict,
        comment=given.comment or None,
        by=given.by or default_person(run),
        at=time.time(),
    )
    if (wrong := wrong_place(label, trial)) is None:
        add_labels(run, [label])
    return wrong
