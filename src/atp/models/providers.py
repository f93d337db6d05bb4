"""All other providers, through pydantic-ai: a connector's model is `provider:model`, as pydantic-ai spells it."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from atp.base.secrets import mask
from atp.models.attempts import PASSING, Passing, attempts, retry_after
from atp.models.connections import Shared
from atp.models.connectors.connector import Connector
from atp.models.model import Answer, Ask, Model, ModelError, NoModel, ToolUse
from atp.models.parts import arguments_of
from atp.models.prices import cost_usd
from atp.models.structured import Structured
from atp.suite.result import Usage
from atp.usercode.environment import lent

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model as OtherModel

_NAMES = {"stop": "stop_sequences"}
"""Settings that pydantic-ai calls otherwise."""
_FINISH = {"tool_call": "tool_calls"}


class ProviderModel(Model):
    """A model that pydantic-ai reaches. Data is asked for in words, which every model understands."""

    type = "provider"

    def __init__(self, connector: Connector, shared: Shared) -> None:
        self.connector = connector.id
        self.name = connector.model
        self.settings = connector.settings
        self._connector = connector
        self._model = _infer(connector, shared.env)
        provider = connector.model.partition(":")[0]
        self._limiter = shared.provider(f"{provider}:{connector.host or ''}", connector.key).limiter
        self._structured = Structured(connector.id, False)

    async def ask(self, ask: Ask) -> Answer:
        """Answer. Raises `ModelError`."""
        return await (self._once(ask) if ask.schema is None else self._structured.ask(ask, self._once))

    async def _once(self, ask: Ask) -> Answer:
        answer = await attempts(lambda: self._attempt(ask), self._limiter, self._connector.retries)
        answer.usage.llm_calls = 1
        answer.usage.cost_usd = cost_usd(self._connector, answer.usage, answer.model, None)
        return answer

    async def _attempt(self, ask: Ask) -> Answer:
        from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError

        try:
            async with asyncio.timeout(self._connector.timeout):
                return _read(await self._response(ask), self.name)
        except TimeoutError as error:
            raise self._error(f"no answer within {self._connector.timeout:g} s", retryable=True) from error
        except ModelHTTPError as error:
            text = f"HTTP {error.status_code}: {error}"
            if error.status_code not in PASSING or ask.on_text is not None:  # what was told can't be taken back
                raise self._error(text, retryable=error.status_code in PASSING, status=error.status_code) from error
            headers = {name.title(): value for name, value in (getattr(error, "headers", None) or {}).items()}
            raise Passing(self._masked(text), retry_after=retry_after(headers), status=error.status_code) from error
        except (AgentRunError, UserError, OSError) as error:
            raise self._error(str(error) or type(error).__name__) from error

    async def _response(self, ask: Ask) -> "ModelResponse":
        from pydantic_ai.direct import model_request, model_request_stream
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        from atp.models.provider_messages import parameters, requests

        given: dict[str, Any] = {
            "model_settings": {_NAMES.get(name, name): value for name, value in (self.settings | ask.settings).items()},
            "model_request_parameters": parameters(ask),
        }
        messages = requests(ask.messages)
        if ask.on_text is None:
            return await model_request(self._model, messages, **given)
        async with model_request_stream(self._model, messages, **given) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                    ask.on_text(event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    ask.on_text(event.delta.content_delta)
            return stream.get()

    def _error(self, text: str, *, retryable: bool = False, status: int | None = None) -> ModelError:
        return ModelError(self._masked(text), retryable=retryable, status=status)

    def _masked(self, text: str) -> str:
        masked: str = mask(f"{self.connector}: {' '.join(text.split())}", self._connector.secrets)
        return masked


def _infer(connector: Connector, env: Mapping[str, str]) -> "OtherModel":
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider, infer_provider_class
    except ImportError as error:
        raise NoModel(
            f"the connector `{connector.id}` needs the package pydantic-ai-slim ({error})",
            "pip install 'agent-test-platform[providers]'",
        ) from error

    def provider(name: str) -> Any:
        given = {"api_key": connector.key, "base_url": connector.host}
        given = {key: value for key, value in given.items() if value is not None}
        made: Any = infer_provider_class(name)
        return made(**given) if given else infer_provider(name)

    try:
        with lent(env):
            return infer_model(connector.model, provider)
    except ImportError as error:
        raise NoModel(f"the connector `{connector.id}` needs a package more: {error}") from error
    except (UserError, ValueError, TypeError) as error:
        raise NoModel(f"{connector.where}: the connector `{connector.id}`: {error}") from error


def _read(response: "ModelResponse", name: str) -> Answer:
    from pydantic_ai.messages import TextPart, ToolCallPart

    used = response.usage
    read, written = used.input_tokens or None, used.output_tokens or None  # none were told, none were used: the same 0
    uses = [
        ToolUse(id=part.tool_call_id, name=part.tool_name, arguments=arguments_of(part.args if part.args else {}))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    finish = str(response.finish_reason or ("tool_call" if uses else "stop"))
    return Answer(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        tool_uses=uses,
        usage=Usage(
            input_tokens=read,
            output_tokens=written,
            total_tokens=None if read is None or written is None else read + written,
            cache_read_tokens=used.cache_read_tokens or None,
            cache_creation_tokens=used.cache_write_tokens or None,
        ),
        finish=_FINISH.get(finish, finish),
        model=response.model_name or name,
    )
