"""What a judge is asked of every answer alike: the criterion and the number of votes. A calibration is bound to it."""

from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from atp.base.json.canonical import canonical
from atp.base.secrets import current_secrets
from atp.suite.result import JudgedBy


class Rubric(NamedTuple):
    """What a judge is asked."""

    text: str
    """The criterion, as the judge reads it."""
    digest: str
    """A hash of the criterion and of what decides when it is fulfilled."""
    votes: int = 1
    """How many times the judge is asked."""
    name: str | None = None
    """What the check is called in its verdict."""

    def judged_by(self, name: str, model: str | None, *identity: Any) -> JudgedBy:
        """The record of a judge with this name, whose answers `identity` decides."""
        return JudgedBy(
            name=name,
            model=model,
            digest=_digest("judge", self.votes, *identity),
            criterion=self.digest,
            asked=self.text if self.text != self.name else None,
            votes=self.votes,
        )


def make_rubric(text: str, *decided_by: Any, votes: int = 1, negated: bool = False, name: str | None = None) -> Rubric:
    """The rubric of a criterion; `decided_by` is what else decides whether an answer fulfils it.

    `name` is what the check is called.
    """
    text = current_secrets().mask_text(text)
    digest = _digest("criterion", text, negated, *decided_by)
    return Rubric(f"It must not hold: {text}" if negated else text, digest, votes, name)


def _digest(*parts: Any) -> str:
    return _hash(canonical(list(parts)))


@lru_cache(1024)  # the same few judges and criteria are asked about thousands of answers
def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()
