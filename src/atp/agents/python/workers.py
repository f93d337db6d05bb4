"""Calls Python agents in environments of their own, in worker processes that are started once and reused.

A worker runs one turn at a time, so ending its process interrupts no other trial's turn. All turns of a conversation
go to the same worker, whose agent may have state. There are as many workers as concurrent conversations.
"""

from dataclasses import replace
from typing import Any

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Finding, Reply, TurnRequest
from atp.agents.python.interpreter import find_interpreter, start_error, worker_command
from atp.agents.python.kinds import Code, TurnValues, takes_history
from atp.agents.python.worker_pool import Pool, Worker
from atp.agents.python.worker_process import WorkerDied, WorkerProcess
from atp.agents.reply import Answer
from atp.agents.stdio import Stderr
from atp.agents.wire import RAW_LENGTH, ProtocolError, broken
from atp.base.errors import with_hint
from atp.base.text import cut, cut_start
from atp.usercode.importing import configuration_error
from atp.usercode.load import UnusableCode
from atp.usercode.threads import in_thread


class WorkerAdapter(Adapter):
    """Calls Python code in worker processes."""

    def __init__(
        self, code: Code, python: str, parallel: int | None, context: AdapterContext, values: TurnValues
    ) -> None:
        self._code = code
        self._spec = code.spec(context)
        self._interpreter = find_interpreter(python, context)
        self._context = context
        self._values = values
        self._pool = Pool(self._start_worker, parallel)
        self._conversations: dict[str, Worker] = {}
        """The worker of each conversation, by the trial's id."""

    async def start(self) -> None:
        """Start the first worker, so that an agent that can't be loaded is reported before the first trial."""
        await self._pool.warm_up()

    async def check(self) -> list[Finding]:
        """Report whether a worker can load the agent."""
        try:
            await self.start()
        except AgentError as error:
            return [Finding(what="import", ok=False, detail=str(error))]
        return [Finding(what="import", ok=True, detail=f"`{self._code}` in {self._interpreter}")]

    async def close(self) -> None:
        """End all workers, and all processes that they started."""
        await self._pool.close()

    async def begin_trial(self, task_id: str) -> None:
        """Start a worker for the trial if none is free: a start may take longer than the trial's time limit."""
        self._pool.give_back(await self._pool.take(task_id), reusable=True)

    def end_trial(self, task_id: str) -> None:
        """Name the conversation as ended in the worker's next request."""
        worker = self._conversations.pop(task_id, None)
        if worker is not None:
            worker.ended.append(task_id)

    async def turn(self, request: TurnRequest) -> Reply:
        """Call the agent in a worker."""
        worker = await self._pool.take(str(request.context.get("session_id", "")))
        messages = _TurnMessages(request)
        stderr = Stderr(request, events=False)
        reusable = False
        try:
            if idle_output := worker.process.printed():
                earlier = Stderr(request, events=False)
                earlier.feed(idle_output)
                earlier.finish()
            values = self._values.select(worker.parameters, request)
            if "workspace" in values:
                values["workspace"] = str(values["workspace"])
            self._conversations[request.task_id] = worker
            ended, worker.ended = worker.ended, []
            turn = {"turn": values, "conversation": request.task_id, "ended": ended}
            await worker.process.ask(turn, messages.add, stderr.feed)
            reusable = True
        except WorkerDied as died:
            printed = f": {stderr.tail}" if stderr.tail else ""
            raise AgentError(
                f"agent error: its process ended: {died}{printed}", reply=messages.answer.finish()
            ) from died
        finally:
            stderr.finish()
            self._pool.give_back(worker, reusable)
        if messages.error is not None:
            raise messages.error
        return messages.answer.finish()

    async def _start_worker(self) -> Worker:
        """Start a worker, and load the agent in it. Raises `AgentError`."""
        try:
            process = WorkerProcess(worker_command(self._interpreter, self._context))
        except OSError as error:
            raise AgentError(f"{self._interpreter} can't be started: {error.strerror}", "environment") from error
        reply: dict[str, Any] = {}

        def on_message(message: dict[str, Any]) -> bool:
            reply.update(message)
            return "loading" not in message

        try:
            await process.ask({"load": self._spec}, on_message)
            parameters = self._parameters(reply)
            self.capabilities = replace(self.capabilities, history=takes_history(parameters))
            self.uses_workspace = "workspace" in parameters
        except WorkerDied as died:
            printed = cut_start(process.printed(), 1000).strip()
            if "loading" in reply:
                why = f"`{self._code}` in {self._interpreter}: its import ended the process: {died}"
                why += f": {printed}" if printed else ""
            else:
                why = await in_thread(start_error, self._interpreter, str(died), printed)
            await process.end()
            raise AgentError(why, "environment") from died
        except BaseException:
            process.kill()
            await process.end()
            raise
        return Worker(process, parameters)

    def _parameters(self, reply: dict[str, Any]) -> tuple[str, ...]:
        if "ready" in reply:
            return tuple(reply["ready"]["takes"])
        if "unusable" not in reply:
            raise broken("the worker did not say that it is ready", reply)
        problem = configuration_error(UnusableCode.from_json(reply["unusable"]))
        reason = with_hint(cut(str(problem), RAW_LENGTH), problem.hint)
        # Blamed on the environment, not the agent: no turn has run. In our own process, the whole run would be refused.
        raise AgentError(f"`{self._code}` in {self._interpreter}: {reason}", "environment")


class _TurnMessages:
    """Collects the messages of a worker's turn."""

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self.answer = Answer(request)
        self.error: AgentError | None = None

    def add(self, message: dict[str, Any]) -> bool:
        """Add a message. Returns true if it was the last. Raises what the engine raises when a limit is exceeded."""
        match message:
            case {"yielded": value, "at": float(at)}:
                self.answer.yielded(value, (at - self._request.began) * 1000)
                return False
            case {"returned": value}:
                self.answer.given_back(value)
            case {"ended": True}:
                pass
            case {"refused": str(why)}:
                self.error = AgentError(f"agent error: {cut(why, RAW_LENGTH)}", reply=self.answer.finish())
            case {"raised": {"said": str(text), "traceback": str(traceback)}}:
                for line in traceback.rstrip("\n").split("\n"):
                    self._request.log(cut(line, RAW_LENGTH))
                self.error = AgentError(f"agent error: {cut(text, RAW_LENGTH)}", reply=self.answer.finish())
            case _:
                raise ProtocolError("an unexpected message from the worker")
        return True
