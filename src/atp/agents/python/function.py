"""Calls Python agents in our own process."""

from typing import Any

from atp.agents.adapter import Adapter, AgentError, Finding, Reply, TurnRequest
from atp.agents.python.kinds import TurnValues, takes_history
from atp.agents.reply import Answer
from atp.agents.wire import RAW_LENGTH
from atp.base.text import cut
from atp.suite.capabilities import Capabilities
from atp.usercode.call import Raised, call
from atp.usercode.json_values import plain, refusal
from atp.usercode.printed import Printed
from atp.usercode.signature import Callee


class FunctionAdapter(Adapter):
    """Calls Python code in our own process. Only its answer, its events and what it prints reach the run."""

    def __init__(self, callee: Callee, values: TurnValues) -> None:
        self._callee = callee
        self._values = values
        self.capabilities = Capabilities(history=takes_history(callee.parameters.names))
        self.uses_workspace = "workspace" in callee.parameters.names

    async def check(self) -> list[Finding]:
        """Report that the import worked: it was done before the adapter was made. A call would already be a test."""
        return [Finding(what="import", ok=True, detail="it could be imported")]

    def end_trial(self, task_id: str) -> None:
        """Drop the trial's instance if the agent is a class."""
        self._callee.end(task_id)

    async def turn(self, request: TurnRequest) -> Reply:
        """Call the function with the values of the request that it takes."""
        printed = Printed()
        answer = Answer(request)
        try:
            function = self._callee.find(request.task_id)
            if function is None:
                function = await call(self._callee.make, (request.task_id,), printed=printed)
            parameters = self._callee.parameters
            args, kwargs = parameters.arguments(self._values.select(parameters.names, request))
            value = await call(
                function,
                args,
                kwargs,
                printed=printed,
                on_yield=lambda item: answer.yielded(_plain(item)),
                blocks=not self._callee.is_async,
            )
            answer.given_back(_plain(value))
        except Raised as raised:
            printed.write(raised.traceback)
            raise AgentError(f"agent error: {cut(str(raised), RAW_LENGTH)}", reply=answer.finish()) from raised.error
        finally:
            for line in printed.finish():
                request.log(line)
        return answer.finish()


def _plain(value: Any) -> Any:
    try:
        return plain(value)
    except BaseException as error:  # raised by a class of the agent's: neither an error of ATP nor a real exit
        raise AgentError(f"agent error: {refusal(error)}") from error
