"""The gate of a case: the pass rate that it asks for, how sure that has to be, and what is wrong with such a wish."""

from typing import NamedTuple


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
