"""The assessor: judges a trial by expectations in words, or scores it by a criterion.

A judge that can't be asked, or whose answer can't be used even when asked again, leaves the expectations unjudged. A
judge's failure never passes or fails a trial.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from atp.base.secrets import current_secrets
from atp.models.cassettes.cassette import Cassette
from atp.models.cassettes.store import Cache
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.ask import PLAYER, RoleAnswer, RoleCall, RoleClient, RoleError, WrongAnswer, ask_twice, recorded_answer
from atp.roles.fence import Fence
from atp.roles.judge.answer import Shown, read_answer
from atp.roles.judge.judges import Assessment, Judgement, check_fit, outcome_of_votes
from atp.roles.judge.prompt import INSTRUCTIONS, OPTIONAL, VERSION, Question, Wanted, payload, prompt, schema, texts
from atp.roles.judge.rubric import Rubric
from atp.roles.record import Record
from atp.suite.result import JudgedBy, Usage

_DATED = re.compile(r"(-\d{4}-?\d{2}-?\d{2}|-latest)$")


class _Unusable(Exception):
    """The judge's last answer, which can't be used and must not be cached."""

    def __init__(self, data: Any) -> None:
        super().__init__()
        self.data = data


class Assessor:
    """Judges by asking a client."""

    def __init__(
        self,
        client: RoleClient,
        *,
        cache: Cache | None = None,
        cassette: Cassette | None = None,
        each: bool = False,
        allow_unfit: bool = False,
    ) -> None:
        """`each`: one call for each expectation. Raises `ConfigurationError` if the client must not judge."""
        check_fit(client, allow_unfit=allow_unfit)
        self.client = client
        self._cache = cache
        self._cassette = cassette
        self._each = each

    async def assess(
        self, record: Record, expectations: Sequence[str], *, intent: str = "", run: int = 1
    ) -> Assessment:
        """Judge whether each expectation is met. The judgements are in the order of the expectations."""
        groups = [(one,) for one in expectations] if self._each else [tuple(expectations)] if expectations else []
        found = await asyncio.gather(*(self._vote(_question(group, intent), record, 1, run) for group in groups))
        return _joined(found, record)

    async def score(
        self,
        record: Record,
        criteria: str,
        *,
        threshold: float = 1.0,
        intent: str = "",
        run: int = 1,
        votes: int = 1,
        negated: bool = False,
    ) -> Assessment:
        """Score how well a criterion is fulfilled: a single judgement.

        `threshold` is the least score that passes. `negated`: it is the least score that does not pass.
        """
        question = replace(_question((criteria,), intent), wanted="score", threshold=threshold, negated=negated)
        return _joined([await self._score(question, record, votes, run)], record)

    def judged_by(self, rubric: Rubric, wanted: Wanted) -> JudgedBy:
        """Who decides by a rubric. Expectations may be asked about one by one or together, which is another prompt."""
        each = self._each and wanted == "met"
        return rubric.judged_by(self.client.name, self.client.model, self.client.identity, VERSION, each)

    def same_model(self, models: Iterable[str]) -> str | None:
        """A warning if the judge's model is among `models`, those of the agent under test."""
        own = self.client.model
        if own is None or _family(own) not in {_family(name) for name in models}:
            return None
        return f"the judge runs on the agent's own model, {own}: models tend to favour their own answers"

    async def _score(self, question: Question, record: Record, votes: int, run: int) -> Assessment:
        """Collect the votes on a criterion, and decide by their median."""
        answers = await asyncio.gather(*(self._vote(question, record, vote, run) for vote in range(1, votes + 1)))
        usage = Usage()
        for one in answers:
            usage.add(one.usage)
        by_number = zip(*(one.judgements for one in answers), strict=True)
        judgements = [outcome_of_votes(one, question.threshold) for one in by_number]
        return Assessment(judgements=judgements, usage=usage)

    async def _vote(self, question: Question, record: Record, number: int, run: int) -> Assessment:
        """One vote: replayed, cached or asked for, then read."""
        shown = Shown(record)
        usage = Usage()
        parts: dict[str, Any] = {
            PLAYER: self.client.identity,
            "words": VERSION,
            "wanted": question.wanted,
            "asked": list(question.asked),
            "intent": question.intent,
            "record": [{"what": one.label, "text": one.text} for one in record.pieces],
            "vote": number,
        }
        if question.wanted == "score":  # the same record may be asked about for each of its texts
            parts["about"] = [place for place, one in enumerate(record.pieces, 1) if one.judged]

        async def ask() -> Any:
            answer = await self._ask(question, record, run, shown)
            usage.add(answer.usage)
            if read_answer(answer.data, question, shown).complaints:
                raise _Unusable(answer.data)
            return answer.data

        def is_usable(data: Any) -> bool:  # a cached answer may have been edited
            return not read_answer(data, question, shown).complaints

        async def ask_or_cached() -> RoleAnswer:
            try:
                data = await (ask() if self._cache is None else self._cache.through(parts, ask, is_usable))
            except _Unusable as error:
                data = error.data
            return RoleAnswer(data=data, usage=usage)

        try:
            answer = await recorded_answer(self._cassette, "judge", {**parts, "run": run}, ask_or_cached)
        except WrongAnswer as error:
            return _unjudged(question, f"the judge's answer can't be used: {error}", error.usage)
        except RoleError as error:
            return _unjudged(question, f"the judge gave no answer: {error}", error.usage)
        except (CassetteError, CassetteMiss) as error:
            return _unjudged(question, f"the judge gave no answer: {error}", usage)
        return Assessment(judgements=read_answer(answer.data, question, shown).judgements, usage=answer.usage)

    async def _ask(self, question: Question, record: Record, run: int, shown: Shown) -> RoleAnswer:
        """The client's answer, without its mark; if it can't be used, the second one. Raises `RoleError`."""

        def call(complaint: str | None) -> RoleCall:
            fence = Fence.around(texts(question, record, complaint))
            return RoleCall(
                role="assessor",
                instructions=INSTRUCTIONS,
                payload=payload(question, record, fence.nonce),
                prompt=prompt(question, record, fence, complaint),
                schema=schema(question.wanted),
                optional=OPTIONAL,
                mark=fence.nonce,
                run=run,
            )

        def wrong(data: Any) -> str | None:
            complaints = read_answer(data, question, shown).complaints
            return "\n".join(complaints) if complaints else None

        return await ask_twice(self.client, call, wrong, values_too=True)


def _unjudged(question: Question, reason: str, usage: Usage | None) -> Assessment:
    return Assessment(judgements=[Judgement(reason=reason) for _ in question.asked], usage=usage or Usage())


def _question(asked: Sequence[str], intent: str) -> Question:
    """The question without the secrets of the run: an expectation may be filled in from a variable."""
    hide = current_secrets().mask_text
    return Question(asked=tuple(map(hide, asked)), intent=hide(intent))


def _joined(found: Iterable[Assessment], record: Record) -> Assessment:
    whole = Assessment(judgements=[], notes=list(record.notes))
    for one in found:
        whole.judgements += one.judgements
        whole.usage.add(one.usage)
    return whole


def _family(model: str) -> str:
    """A model's name without the provider before it and the date after it."""
    return _DATED.sub("", model.lower().rpartition("/")[2])
