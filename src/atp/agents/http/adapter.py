"""Agents behind an HTTP address."""

import asyncio

import aiohttp

from atp.agents import http_faults as faults
from atp.agents.adapter import Adapter, AdapterContext, AgentError, Finding, Reply, TurnRequest
from atp.agents.http_exchange import CONNECT_SECONDS, HttpExchange
from atp.agents.http_faults import Address
from atp.suite.agent import Agent, HttpConfig

READY_SECONDS = 5.0
"""Seconds that `health_endpoint` may take to answer with success."""
_START = "start the agent, or wait until it is up"


class HttpAdapter(Adapter):
    """Posts each turn to an address, after `health_endpoint` has answered."""

    type = "http"
    Config = HttpConfig

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        config: HttpConfig = agent.config
        self._health = Address("health_endpoint", config.health_endpoint) if config.health_endpoint else None
        key, url = "endpoint", config.endpoint
        if config.stream_endpoint:
            key, url = "stream_endpoint", config.stream_endpoint
        self._http = HttpExchange(key, url, config, config.protocol, context, verify_ssl=config.verify_ssl)
        self.capabilities = self._http.capabilities
        self.uses_workspace = self._http.uses_workspace

    async def start(self) -> None:
        """Wait until the agent is healthy, if the configuration has a `health_endpoint`."""
        if self._health is not None and (problem := await self._wait_until_healthy(self._health)) is not None:
            raise AgentError("; ".join(problem), "environment", retryable=True)

    async def turn(self, request: TurnRequest) -> Reply:
        """Post the turn."""
        return await self._http.turn(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _wait_until_healthy(self, health: Address) -> tuple[str, str] | None:
        """Return what is wrong and what helps, if the agent is not healthy in time."""
        why = await self._http.wait_until_ready(health, READY_SECONDS)
        return why and (f"the agent isn't ready: {why.problem}", why.remedy or _START)

    async def check(self) -> list[Finding]:
        """Ask `health_endpoint`; without one, look whether a server answers at the address of the turns."""
        return [await (self._check_connection() if self._health is None else self._check_health(self._health))]

    async def _check_connection(self) -> Finding:
        endpoint = self._http.address
        try:
            async with (
                asyncio.timeout(CONNECT_SECONDS),
                self._http.session.head(endpoint.url, headers=self._http.headers, allow_redirects=False) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, OSError) as error:
            detail = f"{endpoint}: {faults.unreachable(error)}"
            return Finding(what="connection", ok=False, detail=detail, hint=faults.remedy(error, endpoint))
        if status in faults.REFUSED:
            refused = f"{endpoint}: the credentials are refused (HTTP {status})"
            return Finding(what="credentials", ok=False, detail=refused, hint=faults.CHECK_CREDENTIALS)
        detail = f"{endpoint}: a server answers (HTTP {status} to HEAD); only a test shows whether the path takes turns"
        hint = endpoint.check_path if status == 404 else None  # some servers say so of a path that takes only POST
        return Finding(what="connection", ok=True, detail=detail, hint=hint)

    async def _check_health(self, health: Address) -> Finding:
        problem = await self._wait_until_healthy(health)
        if problem is not None:
            return Finding(what="health", ok=False, detail=problem[0], hint=problem[1])
        return Finding(what="health", ok=True, detail=f"{health} answers with success")
