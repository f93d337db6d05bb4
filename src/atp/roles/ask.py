"""Asks a judge, a simulator, a generator or a reporter: a model, an agent or a Python function, all in the same way.

Each role builds a `RoleCall` and gets a `RoleAnswer` from a `RoleClient`.
"""

import asyncio
import contextlib
import copy
import inspect
import itertools
import json
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from atp.agents.adapter import AgentError, TurnRequest
from atp.agents.running import RunningAgent
from atp.agents.turns import TurnBuilder
from atp.base.durations import duration
from atp.base.errors import Error
from atp.base.files import remove_folder
from atp.base.found_json import MISSING
from atp.base.jsonc import NotJson
from atp.models.model import BadAnswer, Model, ModelError, ModelRequest
from atp.models.structured import only_json, schema_in_words, without_fence
from atp.suite.result import Event, Usage
from atp.usercode.call import Raised
from atp.usercode.call import call as call_user_code
from atp.usercode.json_values import NotJson as NotPlain
from atp.usercode.json_values import plain

if TYPE_CHECKING:
    from atp.models.cassettes.cassette import Boundary, Cassette

Role = Literal["assessor", "validator", "simulator", "generator", "variator", "reporter"]
PLAYER = "player"
"""The key of a client's identity in cassettes and caches. Recorded answers are found by it, so it stays."""
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_NOT_THE_AGENTS = ("user", "system", "developer")
"""Roles of messages that the agent under test did not write."""
_ESCAPES = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf])")


class RoleCall(Struct, kw_only=True):
    """One question to a role."""

    role: Role
    """The role that is asked."""
    instructions: str
    """What the role does, for a model that has no prompt of its own."""
    payload: dict[str, Any]
    """What the question is about, as data. An agent of the user's gets the payload as a message in JSON."""
    prompt: str | None = None
    """The same for a model, as text in which what agents wrote is fenced. Without a prompt the payload is sent. An
    assessor gets the prompt, the instructions and the schema even if it is an agent of the user's: it must not take
    what it judges for instructions."""
    schema: dict[str, Any] | None = None
    """The JSON Schema of the answer; none if the answer is text."""
    optional: frozenset[str] = frozenset()
    """Keys that the schema requires and an answer may leave out all the same."""
    mark: str | None = None
    """A nonce that only this call contains. An answer in text must have it as `mark`, so that no text that an agent
    wrote can be an answer. None if the form of the answer is the user's or a document's."""
    agent_texts: Sequence[str] = ()
    """What the agent under test wrote. Without a mark, an answer in text must not stand in it word for word."""
    metadata: dict[str, Any] = {}
    """`options.metadata` of an agent, to which `test_mode` is added."""
    options: dict[str, Any] = {}
    """Further options of an agent, as a file gives them: `connector`, `mode` …"""
    session: str = ""
    """The id of the dialogue that the call belongs to."""
    turn: int = 1
    """The turn of the dialogue, from 1."""
    run: int = 1
    """Which repeat of a trial asks, from 1."""


class RoleAnswer(Struct, kw_only=True):
    """The answer to a `RoleCall`."""

    data: Any = None
    """The answer as data, if the call has a schema; the text itself if it is not JSON."""
    text: str = ""
    """The answer as text."""
    logs: list[str] = []
    """What the agent or the function printed."""
    is_value: bool = False
    """True if code returned the data itself, not text."""
    usage: Usage = field(default_factory=Usage)
    """What the answer used."""


class RoleError(Error):
    """A role gave no usable answer: it can't be reached, it broke, or its answer is not what was asked for."""


class WrongAnswer(RoleError):
    """A role answered, but not with what was asked for."""

    asked_again = False
    """True if the role was already asked a second time."""
    usage: Usage | None = None
    """What the answer used."""


class RoleClient(ABC):
    """Asks the model, agent or function that has a role."""

    name: str
    """The agent's id, the connector's or the function's, for messages."""
    identity: dict[str, Any]
    """All that decides the answers beside the call: connector, model and settings; or the agent's configuration."""
    model: str | None = None
    """The name of the model that answers, if known."""
    has_own_prompt: bool = False
    """True for an agent or a function of the user's, which doesn't get the call's instructions."""
    unfit_to_judge: str | None = None
    """Why the model must not judge unless the user allows it."""

    @abstractmethod
    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Answer a call. Raises `RoleError`."""

    async def close(self) -> None:  # noqa: B027  (some have nothing to close)
        """Release what the client has opened."""


class ModelClient(RoleClient):
    """Asks a bare model. The call's instructions are its system prompt. Does not close the model, which is shared."""

    def __init__(self, model: Model) -> None:
        self.name = model.connector
        self.model = model.name
        self.identity = {"connector": model.connector, "model": model.name, "settings": model.settings}
        self.unfit_to_judge = model.unfit_to_judge
        self._model = model

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Ask the model. Raises `RoleError`."""
        messages = [
            {"role": "system", "content": call.instructions},
            {"role": "user", "content": _encodable(call.prompt if call.prompt is not None else _json(call.payload))},
        ]
        try:
            answer = await self._model.ask(
                ModelRequest(messages=messages, schema=call.schema, optional=call.optional, run=call.run)
            )
        except BadAnswer as error:
            wrong = WrongAnswer(self._with_name(error))
            wrong.asked_again, wrong.usage = True, error.usage
            raise wrong from error
        except ModelError as error:
            raise RoleError(self._with_name(error)) from error
        data = answer.data
        with _counting(answer.usage):
            if call.schema is not None:
                data = _data(answer.text, call, self.name) if data is None else _without_mark(data, call, self.name)
        return RoleAnswer(data=data, text=answer.text, usage=answer.usage)

    def _with_name(self, error: ModelError) -> str:
        return str(error) if str(error).startswith(self.name) else f"{self.name}: {error}"


class AgentClient(RoleClient):
    """Asks an agent of the user's, of any kind. Each call is a conversation of one turn."""

    has_own_prompt = True

    def __init__(
        self, agent: RunningAgent, identity: dict[str, Any], *, folder: Callable[[], Path], model: str | None = None
    ) -> None:
        """Each call has a workspace of its own in `folder()`, created when the agent asks for it."""
        self.name = agent.name
        self.identity = identity
        self.model = model or getattr(agent.adapter, "model", None)
        self.unfit_to_judge = getattr(agent.adapter, "unfit_to_judge", None)
        self._agent = agent
        self._folder = folder
        self._calls = itertools.count(1)

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Ask the agent. Raises `RoleError`."""
        made: list[Path] = []
        logs: list[str] = []
        request = self._request(call, made, logs)
        try:
            reply = await self._agent.ask_once(request)
        except AgentError as error:
            if isinstance(error.__cause__, BadAnswer):
                wrong = WrongAnswer(f"{self.name}: {error}")
                wrong.asked_again, wrong.usage = True, error.__cause__.usage
                raise wrong from error
            raise RoleError(f"{self.name}: {error}") from error
        finally:
            for workspace in made:
                remove_folder(workspace)
        with _counting(reply.usage):
            return _read_output(self.name, reply.output, call, logs, reply.usage)

    async def close(self) -> None:
        """Close the agent."""
        await self._agent.close()

    def _request(self, call: RoleCall, made: list[Path], logs: list[str]) -> TurnRequest:
        """The turn of a call. Its workspace is added to `made` once the agent has asked for it."""
        text, schema = _json(call.payload), None
        if call.role == "assessor" and call.prompt is not None:
            schema = call.schema
            in_words = []
            if schema is not None and not self._agent.adapter.takes_schema:
                in_words, schema = [schema_in_words(schema)], None
            text = "\n\n".join([call.instructions, call.prompt, *in_words])
        metadata = {**call.metadata, "test_mode": call.role}

        def folder() -> Path:
            if not made:
                made.append(self._folder() / f"{call.role}-{next(self._calls)}-{secrets.token_hex(4)}")
                made[0].mkdir(parents=True)
            return made[0]

        turns = TurnBuilder(
            agent=self._agent,
            task_id=f"{call.role}-{secrets.token_hex(8)}",
            context={
                "run": call.run,
                "iteration": 0,
                "session_id": call.session or secrets.token_hex(8),
                "metadata": metadata,
            },
            workspace=folder,
            emit=self._on_event,
            log=logs.append,
            options={**call.options, "metadata": metadata},
        )
        request = turns.request([{"role": "user", "content": _encodable(text)}], turn=call.turn)
        request.schema, request.optional = schema, call.optional
        return request

    def _on_event(self, event: Event) -> None:
        """Note the model that the agent uses, once an event names it."""
        model = event.payload.get("model") if event.type == "llm_request" else None
        if isinstance(model, str) and model:
            self.model = model


class FunctionClient(RoleClient):
    """Calls a Python function of the user's with the payload. A sync function runs in a thread."""

    has_own_prompt = True

    def __init__(self, function: Callable[[dict[str, Any]], Any], name: str) -> None:
        self.name = name
        self.identity = {"function": name, "source": _source_digest(function)}
        self._function = function

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Call the function. Raises `RoleError`."""
        lines: list[str] = []
        try:
            value = await call_user_code(self._function, (copy.deepcopy(call.payload),), log=lines.append)
        except Raised as raised:
            raise RoleError(f"{self.name} raised {raised}") from raised.error
        try:
            return _read_output(self.name, plain(value), call, lines, None)
        except NotPlain as error:
            raise WrongAnswer(f"{self.name} returned {error}, which JSON can't represent") from error


class GeneratorClient(RoleClient):
    """Another client, whose answers must come in time, and are recorded to a cassette or replayed from one.

    For generators, which no trial's deadline covers. Judges and simulators are recorded with more than the call: their
    prompts contain a nonce.
    """

    def __init__(self, client: RoleClient, limit: float, cassette: "Cassette | None" = None) -> None:
        """`limit` is how many seconds an answer may take."""
        self.name = client.name
        self.identity = client.identity
        self.model = client.model
        self.has_own_prompt = client.has_own_prompt
        self.unfit_to_judge = client.unfit_to_judge
        self._client = client
        self._limit = limit
        self._cassette = cassette

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Replay the answer, or ask and record it. Raises `CassetteMiss`, and as the client does."""

        async def ask() -> Any:
            answer = await self._ask_in_time(call)
            return {"data": answer.data, "text": answer.text, "usage": msgspec.to_builtins(answer.usage)}

        parts: dict[str, Any] = {
            PLAYER: self.identity,
            "role": call.role,
            "asked": call.payload,
            "options": call.options,
            "run": call.run,
        }
        if not self.has_own_prompt:
            parts["words"] = sha256(call.instructions.encode()).hexdigest()[:12]
        return msgspec.convert(await recorded(self._cassette, "generator", parts, ask), RoleAnswer)

    async def _ask_in_time(self, call: RoleCall) -> RoleAnswer:
        limit = asyncio.timeout(self._limit)
        try:
            async with limit:
                return await self._client.ask(call)
        except TimeoutError:
            if not limit.expired():
                raise  # one of the generator's own
            raise RoleError(f"{self.name}: timeout after {duration(self._limit)}") from None


async def recorded(
    cassette: "Cassette | None", boundary: "Boundary", parts: dict[str, Any], call: Callable[[], Awaitable[Any]]
) -> Any:
    """The answer of `call()`, recorded or replayed if there is a cassette. `parts` has all that decides the answer."""
    return await (call() if cassette is None else cassette.through(boundary, parts, call))


async def ask_twice(
    client: RoleClient,
    call: RoleCall,
    prompt: Callable[[str | None], tuple[str, str]],
    wrong: Callable[[Any], str | None],
) -> RoleAnswer:
    """The client's answer. If it is text that can't be used, it is asked for once more, with what was `wrong` with it.

    A bare model gets the text and the mark that `prompt` makes of the complaint about its last answer; an agent or a
    function gets the payload of the call. A value that code returned is not asked for again: it would be the same.
    Raises `RoleError`.
    """

    def asked(complaint: str | None) -> RoleCall:
        text, mark = (None, None) if client.has_own_prompt else prompt(complaint)
        payload = call.payload if complaint is None else {**call.payload, "complaint": complaint}
        return replace(call, payload=payload, prompt=text, mark=mark)

    usage = Usage()
    try:
        answer = await client.ask(asked(None))
        complaint = wrong(answer.data)
        if complaint is None or answer.is_value:
            return answer
        usage = answer.usage
    except WrongAnswer as error:
        if error.asked_again:
            raise
        complaint, usage = str(error), error.usage or usage
    second = await client.ask(asked(complaint))
    second.usage.add(usage)
    return second


def said_by_agent(conversation: Iterable[dict[str, Any]]) -> list[str]:
    """The messages that the agent under test wrote, with all that is in them, as texts."""
    return [_json(one) for one in conversation if one.get("role") not in _NOT_THE_AGENTS]


@contextlib.contextmanager
def _counting(usage: Usage | None) -> Iterator[None]:
    """Tell whoever learns that an answer is wrong what it used."""
    try:
        yield
    except WrongAnswer as error:
        error.usage = usage
        raise


def _read_output(name: str, output: Any, call: RoleCall, logs: list[str], usage: Usage | None) -> RoleAnswer:
    """The answer in an output of the user's code: text, a JSON value, or text that is JSON."""
    text = output if isinstance(output, str) else "" if output is None else _json(output)
    data = None
    if call.schema is not None and isinstance(output, str):
        data = _data(output, call, name)
    elif call.schema is not None:
        # A value that code returns was not read out of text, so it can't be a quotation and needs no mark.
        data = _without_mark(output, call, name) if isinstance(output, dict) and "mark" in output else output
    is_value = not isinstance(output, str)
    return RoleAnswer(data=data, text=text, logs=logs, is_value=is_value, usage=usage or Usage())


def _data(text: str, call: RoleCall, name: str) -> Any:
    """The JSON that an answer is, else its text. Raises `WrongAnswer` if the JSON may be another's."""
    try:
        found = only_json(text)
    except NotJson as error:
        raise WrongAnswer(f"{name}: {error}") from error
    if found is MISSING:
        return text
    if call.mark is not None:
        return _without_mark(found, call, name)
    if _is_quotation(without_fence(text), found, call.agent_texts):
        raise WrongAnswer(
            f"{name}: the answer stands word for word in what the agent under test wrote, so it may be a quotation; "
            "an answer with a reason of its own is not"
        )
    return found


def _without_mark(data: Any, call: RoleCall, name: str) -> Any:
    """The answer without its mark. Raises `WrongAnswer` if the mark is not the call's."""
    if call.mark is None:
        return data
    if not isinstance(data, dict) or data.get("mark") != call.mark:
        raise WrongAnswer(f"{name}: the answer does not have the `mark` that only this call was told")
    return {key: value for key, value in data.items() if key != "mark"}


def _is_quotation(text: str, data: Any, agent_texts: Iterable[str]) -> bool:
    """True if one of the agent's texts has the answer in it: as it stands, or all its members in another order."""
    parts = [text]
    if isinstance(data, dict) and data:
        parts = [_json({key: value})[1:-1] for key, value in data.items()]
    whole, squeezed = _squeezed(text), [_squeezed(one) for one in parts]
    return any(whole in one or all(part in one for part in squeezed) for one in map(_squeezed, agent_texts))


def _squeezed(text: str) -> str:
    """The text without blanks, and without escapes: JSON may be spaced differently, or stand escaped in other JSON."""
    text = _ESCAPES.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else "", text)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # a pair of escapes is one character
    return "".join(text.replace("\\", "").split())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _encodable(text: str) -> str:
    """The text without lone surrogates, which what an agent printed may contain and UTF-8 can't encode."""
    return text if text.isascii() else text.translate(_SURROGATES)


def _source_digest(function: Callable[..., Any]) -> str | None:
    """The digest of the file that contains the function, if there is one."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        return sha256(Path(file).read_bytes()).hexdigest() if file else None
    except (OSError, TypeError):
        return None
