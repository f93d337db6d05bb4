"""Agents in environments of their own: each lives in warm worker processes, which are started once and reused.

A worker holds one turn at a time, so that ending it ends nobody else's trial. A conversation stays with its worker,
whose agent may remember it; how many workers there are follows from how many conversations go on at a time.
"""

from typing import Any

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Finding, Reply, TurnRequest
from atp.agents.python.interpreter import find_interpreter, why_not, worker_command
from atp.agents.python.kinds import Code, TurnValues
from atp.agents.python.worker_pool import Pool, Worker
from atp.agents.python.worker_process import WorkerDied, WorkerProcess
from atp.agents.reply import Answer
from atp.agents.stdio import Stderr
from atp.agents.wire import RAW_LENGTH, ProtocolError, broken
from atp.base.text import cut
from atp.usercode.importing import configuration_error
from atp.usercode.load import UnusableCode
from atp.usercode.threads import in_thread


class WorkerAdapter(Adapter):
    """Calls Python code in workers."""

    def __init__(
        self, code: Code, python: str, parallel: int | None, context: AdapterContext, values: TurnValues
    ) -> None:
        self._code = code
        self._spec = code.spec(context)
        self._interpreter = find_interpreter(python, context)
        self._context = context
        self._values = values
        self._pool = Pool(self._begin, parallel)
        self._conversations: dict[str, Worker] = {}
        """The worker of each conversation, by the trial's id."""

    async def start(self) -> None:
        """Start the first worker: an agent that can't be loaded is known before anything is asked of it."""
        await self._pool.warm_up()

    async def check(self) -> list[Finding]:
        """See that a worker can load the agent."""
        try:
            await self.start()
        except AgentError as error:
            return [Finding(what="import", ok=False, detail=str(error))]
        return [Finding(what="import", ok=True, detail=f"`{self._code}` in {self._interpreter}")]

    async def close(self) -> None:
        """End all workers, and all that they started."""
        await self._pool.close()

    async def begin_trial(self, task_id: str) -> None:
        """Have a worker for it: to start one may take longer than the trial."""
        self._pool.give_back(await self._pool.take(task_id), well=True)

    def end_trial(self, task_id: str) -> None:
        """Have the worker forget the conversation with its next request."""
        worker = self._conversations.pop(task_id, None)
        if worker is not None:
            worker.ended.append(task_id)

    async def turn(self, request: TurnRequest) -> Reply:
        """Have a worker call the agent."""
        worker = await self._pool.take(str(request.context.get("session_id", "")))
        heard = _Heard(request)
        stderr = Stderr(request, events=False)
        well = False
        try:
            if before := worker.process.printed():
                earlier = Stderr(request, events=False)
                earlier.feed(before)
                earlier.finish()
            given = self._values.select(worker.takes, request)
            if "workspace" in given:
                given["workspace"] = str(given["workspace"])
            self._conversations[request.task_id] = worker
            ended, worker.ended = worker.ended, []
            ask = {"turn": given, "conversation": request.task_id, "ended": ended}
            await worker.process.ask(ask, heard.take, stderr.feed)
            well = True
        except WorkerDied as died:
            said = f": {stderr.tail}" if stderr.tail else ""
            raise AgentError(f"agent error: its process ended: {died}{said}", reply=heard.answer.finish()) from died
        finally:
            stderr.finish()
            self._pool.give_back(worker, well)
        if heard.error is not None:
            raise heard.error
        return heard.answer.finish()

    async def _begin(self) -> Worker:
        """A worker with the agent loaded. Raises `AgentError`."""
        try:
            process = WorkerProcess(worker_command(self._interpreter, self._context))
        except OSError as error:
            raise AgentError(f"{self._interpreter} can't be started: {error.strerror}", "environment") from error
        said: dict[str, Any] = {}

        def hear(message: dict[str, Any]) -> bool:
            said.update(message)
            return "loading" not in message

        try:
            await process.ask({"load": self._spec}, hear)
            takes = self._takes(said)
        except WorkerDied as died:
            printed = cut(process.printed()[-1000:], RAW_LENGTH).strip()
            if "loading" in said:
                why = f"`{self._code}` in {self._interpreter}: its import ended the process: {died}"
                why += f": {printed}" if printed else ""
            else:
                why = await in_thread(why_not, self._interpreter, str(died), printed)
            await process.end()
            raise AgentError(why, "environment") from died
        except BaseException:
            process.kill()
            await process.end()
            raise
        return Worker(process, takes)

    def _takes(self, said: dict[str, Any]) -> tuple[str, ...]:
        if "ready" in said:
            return tuple(said["ready"]["takes"])
        if "unusable" not in said:
            raise broken("the worker did not say that it is ready", said)
        wrong = configuration_error(UnusableCode.from_json(said["unusable"]))
        hint = f" ({wrong.hint})" if wrong.hint else ""
        # Whatever is wrong with it: it was never asked. In our own process, nothing would run at all.
        raise AgentError(f"`{self._code}` in {self._interpreter}: {cut(str(wrong), RAW_LENGTH)}{hint}", "environment")


class _Heard:
    """What a worker says in a turn."""

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self.answer = Answer(request)
        self.error: AgentError | None = None

    def take(self, message: dict[str, Any]) -> bool:
        """Take a message in; true when it was the last. Raises what the engine raises when a limit is passed."""
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
            case {"raised": {"said": str(said), "traceback": str(traceback)}}:
                for line in traceback.rstrip("\n").split("\n"):
                    self._request.log(line)
                self.error = AgentError(f"agent error: {cut(said, RAW_LENGTH)}", reply=self.answer.finish())
            case _:
                raise ProtocolError("the worker said something strange")
        return True
