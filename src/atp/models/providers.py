"""All other providers, through pydantic-ai. The connector's model is `provider:model`, as pydantic-ai spells it."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from atp.base.errors import ConfigurationError, install_extra
from atp.base.secrets import secrets_of
from atp.base.text import cut, words
from atp.models.calls import noted_call
from atp.models.client import LONGEST_MESSAGE, RETRYABLE_STATUSES, TransientError, retry_after, with_retries
from atp.models.connections import ModelContext
from atp.models.connectors.connector import Connector
from atp.models.model import Model, ModelAnswer, ModelError, ModelRequest, ToolUse
from atp.models.parts import read_arguments
from atp.models.prices import cost_usd
from atp.models.structured import Structured
from atp.suite.result import Usage
from atp.usercode.environment import extended_environ

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model as OtherModel

_NAMES = {"stop": "stop_sequences"}
"""Settings that pydantic-ai names differently."""
_FINISH = {"tool_call": "tool_calls"}


class ProviderModel(Model):
    """A model that pydantic-ai asks. A schema is put into the prompt, which every model understands."""

    type = "provider"

    def __init__(self, connector: Connector, context: ModelContext) -> None:
        self.connector = connector.id
        self.name = connector.model
        self.settings = connector.settings
        self._connector = connector
        self._model = _infer(connector, context.env)
        provider = connector.model.partition(":")[0]
        self._limiter = context.provider(f"{provider}:{connector.host or ''}", connector.key).limiter
        self._structured = Structured(connector.id, False)

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Answer a request. Raises `ModelError`."""
        if request.schema is None:
            return await self._send(request)
        return await self._structured.ask(request, self._send)

    async def _send(self, request: ModelRequest) -> ModelAnswer:
        # pydantic-ai writes the body, so what it is given is noted.
        body = {"model": self.name, "messages": request.messages, **self.settings, **request.settings}
        if request.tools:
            body["tools"] = to_builtins(request.tools)
        with noted_call(self.connector, self.name, body) as note:
            answer = await with_retries(lambda: self._attempt(request), self._limiter, self._connector.retries, note)
            answer.usage.llm_calls = 1
            answer.usage.cost_usd = cost_usd(self._connector, answer.usage, answer.model, None)
            note.answered(to_builtins(answer))
            note.used(answer.usage)
        return answer

    async def _attempt(self, request: ModelRequest) -> ModelAnswer:
        from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError

        try:
            async with asyncio.timeout(self._connector.timeout):
                return _read(await self._response(request), self.name)
        except TimeoutError as error:
            raise self._error(f"no answer within {self._connector.timeout:g} s", retryable=True) from error
        except ModelHTTPError as error:
            text, status = f"HTTP {error.status_code}: {error}", error.status_code
            retryable = status in RETRYABLE_STATUSES
            if not retryable or request.on_text is not None:  # text that was streamed can't be taken back
                raise self._error(text, retryable=retryable, status=status) from error
            headers = {name.title(): value for name, value in (getattr(error, "headers", None) or {}).items()}
            raise TransientError(self._masked(text), retry_after=retry_after(headers), status=status) from error
        except (AgentRunError, UserError, OSError) as error:
            raise self._error(str(error) or type(error).__name__) from error

    async def _response(self, request: ModelRequest) -> "ModelResponse":
        from pydantic_ai.direct import model_request, model_request_stream
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        from atp.models.provider_messages import parameters, requests

        settings = self.settings | request.settings
        if "max_retries" not in getattr(self._model, "unsupported_settings", ()):
            settings = {"max_retries": 0, **settings}  # the provider's SDK retries by itself, and `with_retries` does
        options: dict[str, Any] = {
            "model_settings": {_NAMES.get(name, name): value for name, value in settings.items()},
            "model_request_parameters": parameters(request.tools),
        }
        messages = requests(request.messages)
        if request.on_text is None:
            return await model_request(self._model, messages, **options)
        async with model_request_stream(self._model, messages, **options) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                    request.on_text(event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    request.on_text(event.delta.content_delta)
            return stream.get()

    def _error(self, text: str, *, retryable: bool = False, status: int | None = None) -> ModelError:
        return ModelError(self._masked(text), retryable=retryable, status=status)

    def _masked(self, text: str) -> str:
        return cut(secrets_of(self._connector.secrets).mask_text(f"{self.connector}: {words(text)}"), LONGEST_MESSAGE)


def _infer(connector: Connector, env: Mapping[str, str]) -> "OtherModel":
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider, infer_provider_class
    except ImportError as error:
        raise ConfigurationError(
            f"the connector `{connector.id}` needs the package pydantic-ai-slim ({error})",
            install_extra("providers"),
        ) from error

    def provider(name: str) -> Any:
        options = {"api_key": connector.key, "base_url": connector.host}
        options = {key: value for key, value in options.items() if value is not None}
        provider_class: Any = infer_provider_class(name)
        return provider_class(**options) if options else infer_provider(name)

    try:
        with extended_environ(env):
            return infer_model(connector.model, provider)
    except ImportError as error:
        raise ConfigurationError(f"the connector `{connector.id}` needs a further package: {error}") from error
    except (UserError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{connector.place('model')}: the connector `{connector.id}`: {error}") from error


def _read(response: "ModelResponse", name: str) -> ModelAnswer:
    from pydantic_ai.messages import TextPart, ToolCallPart

    used = response.usage
    read, written = used.input_tokens or None, used.output_tokens or None  # 0 also stands for "not reported"
    uses = [
        ToolUse(id=part.tool_call_id, name=part.tool_name, arguments=read_arguments(part.args if part.args else {}))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    finish = str(response.finish_reason or ("tool_call" if uses else "stop"))
    return ModelAnswer(
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
