"""The assessor: judges a trial by expectations in words, or scores it by a criterion.

A judge that can't be asked, or whose answer can't be used even when asked again, leaves things unjudged; it never
passes or fails anybody.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from atp.models.cassettes.cassette import Cassette
from atp.models.cassettes.store import Cache
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.fence import Fence
from atp.roles.judge.answer import read_answer
from atp.roles.judge.judgement import Assessment, Judgement, outcome_of_votes
from atp.roles.judge.judges import check_fit
from atp.roles.judge.prompt import INSTRUCTIONS, VERSION, Question, payload, schema, texts, words
from atp.roles.judge.quotes import Shown
from atp.roles.judge.record import Record
from atp.roles.player import Call, RoleClient, RoleError, WrongAnswer
from atp.suite.result import Usage

_DATED = re.compile(r"(-\d{4}-?\d{2}-?\d{2}|-latest)$")


class Assessor:
    """Judges by asking a client."""

    def __init__(
        self,
        client: RoleClient,
        *,
        cache: Cache | None = None,
        cassette: Cassette | None = None,
        each: bool = False,
        votes: int = 1,
        allow_unfit: bool = False,
    ) -> None:
        """`each`: one call for each expectation. Raises `ConfigurationError` if the client must not judge."""
        check_fit(client, allow_unfit=allow_unfit)
        self.client = client
        self._cache = cache
        self._cassette = cassette
        self._each = each
        self._votes = votes

    async def assess(
        self, record: Record, expectations: Sequence[str], *, intent: str = "", run: int = 1
    ) -> Assessment:
        """Whether each expectation is met, in their order."""
        groups = [(one,) for one in expectations] if self._each else [tuple(expectations)] if expectations else []
        found = await asyncio.gather(
            *(self._answered(Question(asked=group, intent=intent), record, self._votes, run) for group in groups)
        )
        return _together(found, record)

    async def score(
        self, record: Record, criteria: str, *, intent: str = "", run: int = 1, votes: int | None = None
    ) -> Assessment:
        """How well a criterion is fulfilled: a single judgement."""
        question = Question(asked=(criteria,), wanted="score", intent=intent)
        return _together([await self._answered(question, record, votes or self._votes, run)], record)

    def same_model(self, models: Iterable[str]) -> str | None:
        """A warning if the agent under test, which used these models, is judged by the same one."""
        own = self.client.model
        if own is None or _family(own) not in {_family(name) for name in models}:
            return None
        return f"the judge runs on the agent's own model, {own}: models tend to favour their own answers"

    def fence(self, known: Iterable[str]) -> Fence:
        """The fence of one call."""
        return Fence.around(known)

    async def _answered(self, question: Question, record: Record, votes: int, run: int) -> Assessment:
        """The judgements on one question, of all votes together."""
        answers = await asyncio.gather(
            *(_Vote(self, question, record, vote, run).ask_judge() for vote in range(1, votes + 1))
        )
        usage = Usage()
        for one in answers:
            usage.add(one.usage)
        by_number = zip(*(one.judgements for one in answers), strict=True)
        return Assessment(judgements=[outcome_of_votes(one) for one in by_number], usage=usage)

    async def through(self, vote: "_Vote") -> Any:
        """A vote's answer: played back, kept from before, or asked for."""

        async def recorded() -> dict[str, Any]:
            try:
                cache = self._cache
                data = await (cache.through(vote.parts, vote.ask, vote.can_use) if cache is not None else vote.ask())
            except _Unusable as error:
                data = error.data
            except WrongAnswer as error:
                return {"wrong": str(error), "usage": msgspec.to_builtins(vote.usage)}
            return {"answer": data, "usage": msgspec.to_builtins(vote.usage)}

        if self._cassette is None:
            return await recorded()
        return await self._cassette.through("judge", {**vote.parts, "run": vote.run}, recorded)


class _Unusable(Exception):
    """The judge's last answer, which is not one to keep."""

    def __init__(self, data: Any) -> None:
        super().__init__()
        self.data = data


class _Vote:
    """One vote on a question."""

    def __init__(self, assessor: Assessor, question: Question, record: Record, number: int, run: int) -> None:
        self.run = run
        self.usage = Usage()
        self.parts = {
            "player": assessor.client.identity,
            "words": VERSION,
            "wanted": question.wanted,
            "asked": list(question.asked),
            "intent": question.intent,
            "record": [{"what": one.label, "text": one.text} for one in record.pieces],
            "vote": number,
        }
        self._assessor = assessor
        self._question = question
        self._record = record
        self._shown = Shown(text for one in record.pieces for text in one.quotable)

    async def ask_judge(self) -> Assessment:
        """The judgements, or why there are none."""
        try:
            found = await self._assessor.through(self)
        except (RoleError, CassetteError, CassetteMiss) as error:
            reason = f"the judge gave no answer: {error}"
            return Assessment(judgements=[Judgement(reason=reason) for _ in self._question.asked], usage=self.usage)
        usage = msgspec.convert(found["usage"], Usage)
        if "wrong" in found:
            reason = f"the judge's answer can't be used: {found['wrong']}"
            return Assessment(judgements=[Judgement(reason=reason) for _ in self._question.asked], usage=usage)
        return Assessment(judgements=read_answer(found["answer"], self._question, self._shown).judgements, usage=usage)

    def can_use(self, data: Any) -> bool:
        """Whether an answer that was kept is one: somebody may have edited it."""
        return not read_answer(data, self._question, self._shown).complaints

    async def ask(self) -> Any:
        """The judge's answer, asked for once more if it can't be used. Raises `_Unusable` if that can't either."""
        complaints: list[str] = []
        data: Any = None
        for _ in range(2):
            data = await self._asked(complaints)
            complaints = read_answer(data, self._question, self._shown).complaints
            if not complaints:
                return data
        raise _Unusable(data)

    async def _asked(self, complaints: list[str]) -> Any:
        question, record = self._question, self._record
        fence = self._assessor.fence(texts(question, record, complaints))
        call = Call(
            role="assessor",
            instructions=INSTRUCTIONS,
            payload=payload(question, record),
            words=words(question, record, fence, complaints),
            schema=schema(question.wanted),
            run=self.run,
        )
        said = await self._assessor.client.ask(call)
        self.usage.add(said.usage)
        return said.data


def _together(found: Iterable[Assessment], record: Record) -> Assessment:
    whole = Assessment(judgements=[], notes=list(record.notes))
    for one in found:
        whole.judgements += one.judgements
        whole.usage.add(one.usage)
    return whole


def _family(model: str) -> str:
    """A model's name without the provider before it and the date after it."""
    return _DATED.sub("", model.lower().rpartition("/")[2])
