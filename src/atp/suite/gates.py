"""Gates: what a case asks of its pass rate, and what a suite, a tag or an agent must reach.

A gate of a case is its `pass_rate`, `confidence` and `margin`. Other gates are text (`pass^3 >= 0.8`) or a mapping:

gate      = [ "[" selection "]" ] figure ( ">=" | "<=" ) number [ "confidence" number ] [ "margin" number ]
selection = tag | "agent:" name | tag "," "agent:" name
figure    = "pass_rate" | "pass@" k | "pass^" k | metric [ "mean" | "median" | "p" percent ]
"""

import re
from typing import Any, NamedTuple

from msgspec import Struct
from pydantic import model_serializer, model_validator
from pydantic_core import PydanticCustomError

from atp.base.near import near_miss
from atp.base.text import cut
from atp.suite.record import METRIC_NAME, Confidence, Margin, Number, Record, Text

PASS_RATE = "pass_rate"  # noqa: S105  (no password)
"""The mean of the cases' pass rates."""
_K = re.compile(r"pass([@^])([1-9]\d{0,3})")
_STATISTIC = re.compile(r"mean|median|p([1-9]\d?(?:\.\d{1,3})?)")
_TOKEN = re.compile(r"[<>=!~≥≤]+|[^\s<>=!~≥≤]+")
_SELECTION = re.compile(r"\s*\[([^\]]*)\]")
_AGENT = "agent:"
_EXAMPLE = 'write it like "pass_rate >= 0.9", "pass^3 >= 0.8" or "cost_usd p95 <= 0.05"'
_OPTIONS = ("confidence", "margin")


class Gate(NamedTuple):
    """What a case asks of its pass rate. Without a `confidence`, the observed share has to reach the rate."""

    rate: float | None = None
    """The share of trials that must pass; None means all of them."""
    confidence: float | None = None
    """How sure each decision has to be, from 0 to 1."""
    margin: float = 0.0
    """How far below the rate the long-run rate may lie and still pass."""

    @property
    def alpha(self) -> float:
        """The probability of either wrong decision, at most."""
        return round(1 - (self.confidence or 0.0), 12)

    @property
    def is_tested(self) -> bool:
        """True if the gate is decided by a test, and may be inconclusive."""
        return self.rate is not None and self.confidence is not None


class GateMistake(NamedTuple):
    """Why a gate can't be decided."""

    code: str
    key: str
    """The key that is wrong."""
    message: str
    hint: str


def no_rate(key: str) -> GateMistake:
    """The mistake of a `confidence` or a `margin` where no pass rate is asked for."""
    message = f"`{key}` means nothing without a `pass_rate`"
    return GateMistake("gate-without-rate", key, message, "add `pass_rate`, or give --pass-rate")


def no_confidence(gate: Gate) -> GateMistake | None:
    """The mistake of a `margin` that no decision uses: without a `confidence`, the observed share is compared.

    Flags and settings may give the confidence, so only the gate that a run decides can have this mistake.
    """
    if gate.rate is None or gate.confidence is not None or not gate.margin:
        return None
    message = f"`margin` {gate.margin:g} means nothing without a `confidence`: the share of passed runs is compared"
    hint = "add `confidence`, for example 0.95, or give --confidence; or leave `margin` out"
    return GateMistake("margin-without-confidence", "margin", message, hint)


def gate_mistake(gate: Gate) -> GateMistake | None:
    """What is wrong with the rate and the margin of a gate; whether there is a rate at all is for the caller to ask."""
    rate, margin = gate.rate, gate.margin
    if rate is None:
        return None
    if margin >= rate:
        message = f"`margin` {margin:g} leaves nothing of `pass_rate` {rate:g}: every agent would pass"
        return GateMistake("impossible-gate", "margin", message, "give a margin below the pass rate")
    if gate.confidence is not None and rate - margin >= 1:
        message = "no number of runs can show with a confidence that every run will pass: `pass_rate` is 1"
        return GateMistake("impossible-gate", "pass_rate", message, "add a `margin`, like 0.05, or ask for less than 1")
    return None


class SuiteGate(Record):
    """What the cases of a run, of a suite, of a tag or of an agent must reach together."""

    metric: Text = PASS_RATE
    """What is compared: `pass_rate`, `pass@3`, `pass^3`, or the name of a metric."""
    statistic: Text | None = None
    """Of a metric: its `mean` (the default), its `median`, or a percentile such as `p95`."""
    at_least: Number | None = None
    """The least that passes."""
    at_most: Number | None = None
    """The most that passes; only of a metric."""
    confidence: Confidence | None = None
    """How sure a decision must be; without, the observed value is compared. For `pass_rate` and percentiles."""
    margin: Margin | None = None
    """How far below `at_least` the long-run pass rate may be and still pass; only with `confidence`."""
    tag: Text | None = None
    """Only cases with this tag."""
    agent: Text | None = None
    """Only cases of this agent. Without, each agent must pass the gate."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, raw: Any) -> Any:
        return _read(raw) if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _check(self) -> "SuiteGate":
        if (self.at_least is None) == (self.at_most is None):
            raise _bad("a gate has either `at_least` or `at_most`", "give one of the two")
        if _is_pass_figure(self.metric):
            self._check_pass_figure()
        elif METRIC_NAME.fullmatch(self.metric) is None:
            raise _bad("`{found}` is not the name of a metric", _EXAMPLE, found=cut(self.metric, 80))
        elif self.statistic is not None and _STATISTIC.fullmatch(self.statistic) is None:
            meant = near_miss(self.statistic, ("mean", "median", "p50", "p90", "p95", "p99"))
            hint = f"did you mean `{meant}`?" if meant else "write `mean`, `median` or a percentile such as `p95`"
            raise _bad("`{found}` is not a statistic", hint, found=cut(self.statistic, 80))
        if self.confidence is not None and self.metric != PASS_RATE and self.share is None:
            hint = "leave `confidence` out: the observed value is compared; or take a percentile such as `p95`"
            raise _bad("`confidence` needs `pass_rate` or a percentile", hint)
        if self.margin is not None and (self.confidence is None or self.metric != PASS_RATE):
            raise _bad("`margin` needs `pass_rate` and a `confidence`", "add `confidence`, for example 0.95")
        for name, value in (("tag", self.tag), ("agent", self.agent)):
            if value is not None and (re.search(r"[],]", value) or value != value.strip()):
                raise _bad("the {name} of a gate has no `,`, no `]` and no blank at an end", "rename it", name=name)
        if self.tag is not None and self.tag.startswith(_AGENT):
            raise _bad("the tag of a gate does not begin with `agent:`", "use the key `agent`, or rename the tag")
        return self

    def _check_pass_figure(self) -> None:
        if self.metric != PASS_RATE and _K.fullmatch(self.metric) is None:
            meant = near_miss(self.metric, (PASS_RATE,))
            hint = f"did you mean `{meant}`?" if meant else "write `pass_rate`, `pass@3` or `pass^3`"
            raise _bad("`{found}` is no figure of passed runs", hint, found=cut(self.metric, 80))
        if self.statistic is not None:
            hint = f"leave `{self.statistic}` out"
            raise _bad("`{found}` is a mean over cases already, and takes no statistic", hint, found=self.metric)
        if self.at_least is None:
            raise _bad("`{found}` takes only a least value that passes", "write >=, or `at_least`", found=self.metric)
        if not 0 < self.at_least <= 1:
            percent = (
                f": `{self.at_least / 100:g}`, if {self.at_least:g} % is meant" if 1 < self.at_least <= 100 else ""
            )
            hint = f"give a number above 0, up to 1{percent}"
            raise _bad("`{found}` is a share from 0 to 1, found {value}", hint, found=self.metric, value=self.at_least)
        if self.margin is not None and self.margin >= self.at_least:
            raise _bad("`margin` must be smaller than the pass rate", "give a smaller one, for example 0.05")
        if self.confidence is not None and self.at_least == 1 and not self.margin:
            hint = "ask for less than 1, add a `margin`, or leave `confidence` out"
            raise _bad("no number of runs can show a pass rate of 1", hint)

    @property
    def k(self) -> int | None:
        """The number of runs in `pass@k` and `pass^k`."""
        found = _K.fullmatch(self.metric)
        return int(found[2]) if found else None

    @property
    def share(self) -> float | None:
        """The share of a percentile: 0.95 of `p95`, 0.5 of `median`; None for other statistics."""
        if self.statistic in (None, "mean"):
            return None
        return 0.5 if self.statistic == "median" else float((self.statistic or "p0")[1:]) / 100

    @property
    def limit(self) -> float:
        """The number that is compared with."""
        return (self.at_least if self.at_least is not None else self.at_most) or 0.0

    @property
    def text(self) -> str:
        """The gate as text, which reads as the same gate."""
        chosen = ", ".join([*filter(None, (self.tag,)), *(f"{_AGENT}{one}" for one in (self.agent,) if one)])
        words = [f"[{chosen}]"] if chosen else []
        words += [self.metric, *([self.statistic] if self.statistic is not None else [])]
        words += ["<=" if self.at_least is None else ">=", _number_text(self.limit)]
        for name in _OPTIONS:
            if (value := getattr(self, name)) is not None:
                words += [name, _number_text(value)]
        return " ".join(words)

    @model_serializer
    def _plain(self) -> str:
        return self.text


class RunGate(Struct, omit_defaults=True, kw_only=True):
    """A gate of a run, and the cases that it is about."""

    gate: str
    """The gate as text."""
    of_suite: bool = False
    """True for a gate of a suite, which is about the cases of its file only."""
    file: str | None = None
    """The suite's file."""


def _is_pass_figure(metric: str) -> bool:
    """True for a figure of passed runs, also for a misspelled one."""
    return "@" in metric or "^" in metric or near_miss(metric, (PASS_RATE,)) is not None


def _read(text: str) -> dict[str, Any]:
    """The keys of a gate that is given as text. Raises `PydanticCustomError`."""
    found: dict[str, Any] = {}
    if selection := _SELECTION.match(text):
        found |= _read_selection(selection[1])
        text = text[selection.end() :]
    words = iter(_TOKEN.findall(text))
    word = next(words, "")
    if not word:
        raise _bad("a gate is empty", _EXAMPLE)
    found["metric"] = word
    word = next(words, "")
    if word and word[0] not in "<>=!~≥≤":
        found["statistic"], word = word, next(words, "")
    key = {">=": "at_least", "≥": "at_least", "<=": "at_most", "≤": "at_most"}.get(word)
    if key is None:
        hint = {">": "write >=", "<": "write <=", "=>": "write >=", "=<": "write <="}.get(word, _EXAMPLE)
        what = "there is no `>=` or `<=` in it" if not word else "`{found}` stands where `>=` or `<=` belongs"
        raise _bad(f"the gate can't be read: {what}", hint, found=cut(word, 80))
    found[key] = _number(next(words, ""), _is_pass_figure(found["metric"]), word)
    for word in words:
        if word not in _OPTIONS or word in found:
            meant = near_miss(word, {*_OPTIONS} - found.keys())
            hint = f"did you mean `{meant}`?" if meant else "write `confidence 0.95` or `margin 0.05` there, each once"
            raise _bad("`{found}` is not understood in a gate", hint, found=cut(word, 80))
        found[word] = _number(next(words, ""), True, word)
    return found


def _read_selection(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in (one.strip() for one in text.split(",")):
        key, value = ("agent", part.removeprefix(_AGENT).strip()) if part.startswith(_AGENT) else ("tag", part)
        if not value or key in found:
            raise _bad("the selection of a gate names one tag, one agent, or both", "write [refund], or [agent:bot]")
        found[key] = value
    return found


def _number(word: str, is_share: bool, after: str) -> float:
    percent = word.endswith("%") and is_share
    try:
        number = float(word.removesuffix("%")) if percent else float(word)
    except ValueError:
        what = "`{found}` is not a number" if word else "there is no number after `{after}`"
        hint = "a metric has a unit of its own: write the number without %" if word.endswith("%") else _EXAMPLE
        raise _bad(what, hint, found=cut(word, 80), after=after) from None
    if not abs(number) < float("inf"):
        raise _bad("`{found}` is not a finite number", _EXAMPLE, found=cut(word, 80))
    return number / 100 if percent else number


def _number_text(value: float) -> str:
    return repr(value).removesuffix(".0")


def _bad(message: str, hint: str, **values: Any) -> PydanticCustomError:
    return PydanticCustomError("bad_gate", message, {**values, "hint": hint})
