"""Agents in containers that read stdin and write stdout and stderr: each turn has a container of its own."""

import asyncio

from atp.agents.adapter import AdapterContext, AgentError, AgentTimeout, Reply, TurnRequest
from atp.agents.docker.adapter import DockerAdapter
from atp.agents.docker.container import Container, Ended
from atp.agents.protocol import build_request
from atp.agents.stdio import Stderr, Stdout, failure, prompt_line, read_reply
from atp.agents.wire import write_json
from atp.suite.agent import Agent
from atp.suite.capabilities import ONLY_ANSWERS
from atp.suite.container import WORKSPACE


class ContainerEachTurn(DockerAdapter):
    """Starts a container for each turn, with the trial's workspace in it."""

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        super().__init__(agent, context)
        self._speaks = self._config.protocol == "atp"
        if not self._speaks:
            self.capabilities = ONLY_ANSWERS

    async def _start_server(self) -> None:
        """Nothing runs between turns."""

    async def turn(self, request: TurnRequest) -> Reply:
        """Run a container with the request on its stdin. Raises `AgentTimeout` after `timeout` seconds."""
        for note in self._notes:
            request.log(note)
        seconds = self._config.timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._run(request)
        except TimeoutError as error:
            assert seconds is not None
            raise AgentTimeout(seconds) from error

    async def _run(self, request: TurnRequest) -> Reply:
        session = "" if self._speaks else str(request.context.get("session_id", ""))
        settings = self._settings.of_turn(self._engine, self._image.id, request.workspace(), session)
        container = self._container(settings, str(request.context.get("case_id", "")))
        stdout, stderr = Stdout(), Stderr(request, self._speaks)
        try:
            await container.create()
            ended = await self._converse(container, request, stdout, stderr)
        finally:
            stderr.finish()
            await self._remove(container)
        self._check_end(ended, request, stdout, stderr)
        return read_reply(stdout.content, request, self._speaks)

    async def _converse(self, container: Container, request: TurnRequest, stdout: Stdout, stderr: Stderr) -> Ended:
        ended = await container.converse(self._stdin(request), stdout.feed, stderr.feed)
        stderr.end_line()
        return ended

    def _stdin(self, request: TurnRequest) -> bytes:
        if not self._speaks:
            return prompt_line(request.prompt)
        message = build_request(request, self._config.environment)
        message["context"]["workspace_path"] = WORKSPACE
        return write_json(message)

    def _check_end(self, ended: Ended, request: TurnRequest, stdout: Stdout, stderr: Stderr) -> None:
        if ended.code == 0:
            if ended.out_of_memory:
                request.log(
                    f"a process in the container needed more than `memory: {self._config.memory}` and was killed"
                )
            return
        why = self._bad_end(ended, stderr.tail)
        if isinstance(why, AgentError):
            raise why
        raise failure(why, stdout.content, request, stderr.tail, self._speaks)
