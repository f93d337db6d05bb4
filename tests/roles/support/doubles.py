"""Role clients that answer as they are told, and trials made up on the spot."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.waiting import WAIT_LIMIT

from atp.roles.ask import RoleAnswer, RoleCall, RoleClient
from atp.suite.result import ToolCall, Transcript, Turn, Usage

Result = TypeVar("Result")
Script = Callable[[RoleCall], Any]


class Scripted(RoleClient):
    """Gives one answer after the other, the last one for ever; or whatever a function makes of the call."""

    def __init__(self, *answers: Any, name: str = "judge", own: bool = False) -> None:
        self.name = name
        self.identity = {"connector": name}
        self.has_own_prompt = own
        self.calls: list[RoleCall] = []
        self._answers = answers

    async def ask(self, call: RoleCall) -> RoleAnswer:
        answer = self._answers[min(len(self.calls), len(self._answers) - 1)]
        self.calls.append(call)
        await asyncio.sleep(0)
        if callable(answer):
            answer = answer(call)
        if isinstance(answer, Exception):
            raise answer
        is_value = self.has_own_prompt and not isinstance(answer, str)
        usage = Usage(input_tokens=10, output_tokens=2)
        return RoleAnswer(data=answer, text=str(answer), is_value=is_value, usage=usage)

    @property
    def words(self) -> list[str]:
        """What it was told each time."""
        return [call.prompt or "" for call in self.calls]


def verdict(number: Any = 1, met: Any = True, *evidence: str, **more: Any) -> dict[str, Any]:
    """An entry of a judge's answer."""
    given = {"number": number, "reason": "so it is", "met": met, "absence": not evidence, "evidence": list(evidence)}
    return given | more


def verdicts(*entries: dict[str, Any]) -> dict[str, Any]:
    """A judge's answer."""
    return {"verdicts": list(entries)}


def scored(score: Any, *evidence: str, **more: Any) -> dict[str, Any]:
    """A judge's answer to a criterion."""
    entry = {"number": 1, "reason": "so it is", "score": score, "absence": not evidence, "evidence": list(evidence)}
    return {"verdicts": [entry | more]}


def talk(*exchanges: tuple[str, str], calls: list[ToolCall] | None = None, **more: Any) -> Transcript:
    """A transcript of these questions and answers."""
    messages = [
        {"role": role, "content": text}
        for exchange in exchanges
        for role, text in zip(("user", "assistant"), exchange, strict=True)
    ]
    turns = [Turn(turn=number, input=one[0], output=one[1]) for number, one in enumerate(exchanges, 1)]
    return Transcript(messages=messages, turns=turns, tool_calls=calls or [], **more)


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine gives back."""
    return asyncio.run(asyncio.wait_for(coroutine, WAIT_LIMIT))
