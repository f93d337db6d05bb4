"""Asks a judge, a simulator, a generator or a reporter: a model, an agent or a Python function, all in the same way.

Each role builds a `RoleCall` and gets a `RoleAnswer` from a `RoleClient`.
"""

import asyncio
import contextlib
import copy
import inspect
import itertools
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
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
from atp.base.json.comments import NotJson
from atp.base.json.found import MISSING
from atp.base.json.text import readable, whole_text
from atp.models.model import BadAnswer, CassetteError, Model, ModelError, ModelRequest
from atp.models.structured import only_json, schema_in_words, without_fence
from atp.roles.quotation import is_quotation
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
    conversation_texts: Sequence[str] = ()
    """What was said to and by the agent under test. Without a mark, an answer in text must not stand in it word for
    word: it may be a quotation."""
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

    usage: Usage | None = None
    """What was used all the same."""


class WrongAnswer(RoleError):
    """A role answered, but not with what was asked for."""

    asked_again = False
    """True if the role was already asked a second time."""


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
    may_be_cached: bool = False
    """True if `identity` holds all that decides the answers, so that they may be kept for later runs. Code imports
    modules, and servers change, without a change of their identity."""

    @abstractmethod
    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Answer a call. Raises `RoleError`."""

    async def close(self) -> None:  # noqa: B027  (some have nothing to close)
        """Release what the client has opened."""


class ModelClient(RoleClient):
    """Asks a bare model. The call's instructions are its system prompt. Does not close the model, which is shared."""

    may_be_cached = True

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
            {"role": "user", "content": whole_text(call.prompt if call.prompt is not None else readable(call.payload))},
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

    def __init__(self, agent: RunningAgent, identity: dict[str, Any], *, folder: Callable[[], Path]) -> None:
        """Each call has a workspace of its own in `folder()`, created when the agent asks for it."""
        self.name = agent.name
        self.identity = identity
        self.model = getattr(agent.adapter, "model", None)
        self.unfit_to_judge = getattr(agent.adapter, "unfit_to_judge", None)
        self.may_be_cached = getattr(agent.adapter, "is_only_prompts", False)
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
        text, schema = readable(call.payload), None
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
        request = turns.request([{"role": "user", "content": whole_text(text)}], turn=call.turn)
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
            output = plain(value)
        except NotPlain as error:
            raise WrongAnswer(f"{self.name} returned {error}, which JSON can't represent") from error
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # of the value's own methods
            raise WrongAnswer(f"{self.name} returned a value that raises {type(error).__name__}") from error
        return _read_output(self.name, output, call, lines, None)


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
        parts: dict[str, Any] = {
            PLAYER: self.identity,
            "role": call.role,
            "asked": call.payload,
            "options": call.options,
            "run": call.run,
        }
        if not self.has_own_prompt:
            parts["words"] = sha256(call.instructions.encode()).hexdigest()[:12]
        return await recorded_answer(self._cassette, "generator", parts, lambda: self._ask_in_time(call))

    async def _ask_in_time(self, call: RoleCall) -> RoleAnswer:
        limit = asyncio.timeout(self._limit)
        try:
            async with limit:
                return await self._client.ask(call)
        except TimeoutError:
            if not limit.expired():
                raise  # one of the generator's own
            raise RoleError(f"{self.name}: timeout after {duration(self._limit)}") from None


async def recorded_answer(
    cassette: "Cassette | None", boundary: "Boundary", parts: dict[str, Any], ask: Callable[[], Awaitable[RoleAnswer]]
) -> RoleAnswer:
    """The answer of `ask()` with what it used, recorded or replayed if there is a cassette.

    `parts` has all that decides the answer. A judge's answer that is not what was asked for is recorded, too, as what
    is wrong with it. Raises `CassetteMiss`, `CassetteError`, and as `ask`.
    """
    if cassette is None:
        return await ask()

    async def call() -> dict[str, Any]:
        try:
            answer = await ask()
        except WrongAnswer as error:
            if boundary != "judge":
                raise
            return {"wrong": str(error), "usage": msgspec.to_builtins(error.usage or Usage())}
        kept = {"data": answer.data, "text": answer.text} if boundary == "generator" else {"answer": answer.data}
        return {**kept, "usage": msgspec.to_builtins(answer.usage)}

    found = await cassette.through(boundary, parts, call)
    try:
        usage = msgspec.convert(found["usage"], Usage)
        if "wrong" in found:
            wrong = WrongAnswer(msgspec.convert(found["wrong"], str))
            wrong.usage = usage
            raise wrong
        if boundary == "generator":
            return RoleAnswer(data=found["data"], text=msgspec.convert(found["text"], str), usage=usage)
        return RoleAnswer(data=found["answer"], usage=usage)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise CassetteError(
            f"an answer that is recorded in {cassette.folder} at the boundary `{boundary}` is incomplete",
            "take the file from version control, or delete it and record again",
        ) from error


async def ask_twice(
    client: RoleClient,
    call: Callable[[str | None], RoleCall],
    wrong: Callable[[Any], str | None],
    *,
    values_too: bool = False,
) -> RoleAnswer:
    """The client's answer to `call(None)`. If it can't be used, the answer to `call(complaint)`, whatever that is.

    `wrong` says what is wrong with the data of an answer; None if it can be used. A value that code returned is asked
    for again only with `values_too`: code that isn't shown the complaint returns the same. The usage of both answers is
    in the second, or in the error. Raises `RoleError`.
    """
    try:
        first = await client.ask(call(None))
        complaint, usage = wrong(first.data), first.usage
        if complaint is None or (first.is_value and not values_too):
            return first
    except WrongAnswer as error:
        if error.asked_again:
            raise
        complaint, usage = str(error), error.usage or Usage()
    try:
        second = await client.ask(call(complaint))
    except RoleError as error:
        error.usage = error.usage or Usage()
        error.usage.add(usage)
        raise
    second.usage.add(usage)
    return second


def call_maker(
    client: RoleClient, call: RoleCall, prompt: Callable[[str | None], tuple[str, str]]
) -> Callable[[str | None], RoleCall]:
    """Makes the calls for `ask_twice`: a bare model gets the text and the mark that `prompt` makes of a complaint.

    An agent or a function of the user's gets the payload, with the complaint in it.
    """

    def with_complaint(complaint: str | None) -> RoleCall:
        text, mark = (None, None) if client.has_own_prompt else prompt(complaint)
        payload = call.payload if complaint is None else {**call.payload, "complaint": complaint}
        return replace(call, payload=payload, prompt=text, mark=mark)

    return with_complaint


@contextlib.contextmanager
def _counting(usage: Usage | None) -> Iterator[None]:
    """Add what an answer used to the error that says that it is wrong."""
    try:
        yield
    except WrongAnswer as error:
        error.usage = usage
        raise


def _read_output(name: str, output: Any, call: RoleCall, logs: list[str], usage: Usage | None) -> RoleAnswer:
    """The answer in an output of the user's code: text, a JSON value, or text that is JSON."""
    text = output if isinstance(output, str) else "" if output is None else readable(output)
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
    if is_quotation(without_fence(text), found, call.conversation_texts):
        raise WrongAnswer(
            f"{name}: the answer stands word for word in the conversation with the agent under test, so it may be a "
            "quotation; an answer with a reason of its own is not"
        )
    return found


def _without_mark(data: Any, call: RoleCall, name: str) -> Any:
    """The answer without its mark. Raises `WrongAnswer` if the mark is not the call's."""
    if call.mark is None:
        return data
    if not isinstance(data, dict) or data.get("mark") != call.mark:
        raise WrongAnswer(f"{name}: the answer does not have the `mark` that only this call was told")
    return {key: value for key, value in data.items() if key != "mark"}


def _source_digest(function: Callable[..., Any]) -> str | None:
    """The digest of the file that contains the function, if there is one."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        return sha256(Path(file).read_bytes()).hexdigest() if file else None
    except (OSError, TypeError):
        return None
