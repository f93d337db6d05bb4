"""The clients there are: a model that follows our instructions, an agent of the user's, a Python function."""

import contextvars
import copy
import inspect
import itertools
import json
import secrets
import shutil
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from atp.agents.adapter import AgentError, TurnRequest
from atp.agents.python.plain import NotJson as NotPlain
from atp.agents.python.plain import plain
from atp.agents.running import RunningAgent
from atp.agents.turns import TurnBuilder
from atp.base.found_json import MISSING
from atp.base.jsonc import NotJson
from atp.models.model import BadAnswer, Model, ModelError, ModelRequest
from atp.models.structured import only_json
from atp.roles.player import Call, RoleClient, RoleError, Said, WrongAnswer
from atp.suite.result import Event, Usage
from atp.usercode.contain import contained
from atp.usercode.printed import CAPTURE, Printed
from atp.usercode.threads import Raised, Thread

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class ModelClient(RoleClient):
    """A bare model. Our instructions are its system prompt."""

    def __init__(self, model: Model) -> None:
        self.name = model.connector
        self.model = model.name
        self.identity = {"connector": model.connector, "model": model.name, "settings": model.settings}
        self.unfit_to_judge = model.unfit_to_judge
        self._model = model

    async def ask(self, call: Call) -> Said:
        """Play. The model belongs to all who ask it, so it is not ours to close."""
        messages = [
            {"role": "system", "content": call.instructions},
            {"role": "user", "content": _writable(call.words if call.words is not None else _json(call.payload))},
        ]
        try:
            answer = await self._model.ask(ModelRequest(messages=messages, schema=call.schema, run=call.run))
        except BadAnswer as error:
            raise WrongAnswer(self._of_it(error)) from error
        except ModelError as error:
            raise RoleError(self._of_it(error)) from error
        data = answer.data
        if data is None and call.schema is not None:
            data = _data(answer.text, self.name)
        return Said(data=data, text=answer.text, usage=answer.usage)

    def _of_it(self, error: ModelError) -> str:
        """What went wrong, with the model's name before it; most errors have it there already."""
        return str(error) if str(error).startswith(self.name) else f"{self.name}: {error}"


class AgentClient(RoleClient):
    """An agent of the user's, of any kind. Each call is a conversation of its own, of one turn."""

    own = True

    def __init__(
        self, agent: RunningAgent, identity: dict[str, Any], *, folder: Path, model: str | None = None
    ) -> None:
        """Each call has a workspace of its own in `folder`, made when the agent asks for it."""
        self.name = agent.name
        self.identity = identity
        self.model = model or getattr(agent.adapter, "model", None)
        self.unfit_to_judge = getattr(agent.adapter, "unfit_to_judge", None)
        self._agent = agent
        self._folder = folder
        self._calls = itertools.count(1)

    async def ask(self, call: Call) -> Said:
        """Ask the agent. Raises `RoleError`."""
        workspace = self._folder / f"{call.role}-{next(self._calls)}-{secrets.token_hex(4)}"
        logs: list[str] = []
        request = self._request(call, workspace, logs)
        try:
            reply = await self._agent.ask_once(request)
        except AgentError as error:
            raise RoleError(f"{self.name}: {error}") from error
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
        return _said(self.name, reply.output, call, logs, reply.usage)

    async def close(self) -> None:
        """Close the agent."""
        await self._agent.close()

    def _request(self, call: Call, workspace: Path, logs: list[str]) -> TurnRequest:
        words = call.words if call.role == "assessor" and call.words is not None else _json(call.payload)
        metadata = {**call.metadata, "test_mode": call.role}

        def folder() -> Path:
            workspace.mkdir(parents=True, exist_ok=True)
            return workspace

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
            emit=self._noticed,
            log=logs.append,
            options={**call.options, "metadata": metadata},
        )
        return turns.request([{"role": "user", "content": _writable(words)}], turn=call.turn)

    def _noticed(self, event: Event) -> None:
        """The model that it runs on is known once it tells of it."""
        model = event.payload.get("model") if event.type == "llm_request" else None
        if isinstance(model, str) and model:
            self.model = model


class FunctionClient(RoleClient):
    """A Python function of the user's, called with the payload. A sync one runs in a thread."""

    own = True

    def __init__(self, function: Callable[[dict[str, Any]], Any], name: str) -> None:
        self.name = name
        self.identity = {"function": name, "source": _source_digest(function)}
        self._function = function

    async def ask(self, call: Call) -> Said:
        """Play."""
        printed = Printed()
        context = contextvars.copy_context()
        context.run(printed.catch)
        CAPTURE.begin()
        try:
            made = await self._called(copy.deepcopy(call.payload), context)
        finally:
            CAPTURE.end()
            lines = printed.finish()
        if isinstance(made, Raised):
            raise RoleError(f"{self.name} raised {type(made.error).__name__}: {made.error}") from made.error
        try:
            return _said(self.name, plain(made), call, lines, None)
        except NotPlain as error:
            raise WrongAnswer(f"{self.name} gave back {error}, which JSON can't say") from error

    async def _called(self, payload: dict[str, Any], context: contextvars.Context) -> Any:
        made = await Thread(context).call(lambda: self._function(payload), last=True)
        return await contained(_awaited(made), context) if inspect.isawaitable(made) else made


async def _awaited(made: Awaitable[Any]) -> Any:
    return await made


def _said(name: str, output: Any, call: Call, logs: list[str], usage: Usage | None) -> Said:
    """An answer of the user's own code: text, or JSON, or JSON somewhere in text."""
    text = output if isinstance(output, str) else "" if output is None else _json(output)
    data = None
    if call.schema is not None:
        data = _data(output, name) if isinstance(output, str) else output
    return Said(data=data, text=text, logs=logs, usage=usage or Usage())


def _data(text: str, name: str) -> Any:
    """The JSON in an answer, else the text as it came. Raises `WrongAnswer` for JSON that contradicts itself."""
    try:
        found = only_json(text)
    except NotJson as error:
        raise WrongAnswer(f"{name}: {error}") from error
    return text if found is MISSING else found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _writable(text: str) -> str:
    """Text that can be sent: what an agent printed may have half a surrogate pair in it."""
    return text if text.isascii() else text.translate(_SURROGATES)


def _source_digest(function: Callable[..., Any]) -> str | None:
    """The digest of the file that the function stands in, if it stands in one."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        return sha256(Path(file).read_bytes()).hexdigest() if file else None
    except (OSError, TypeError):
        return None
