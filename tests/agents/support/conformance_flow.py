"""The behaviour of the conformance test as a CrewAI flow, whose one method asks a model that calls tools.

It runs where CrewAI is installed, with the behaviour's file beside it. A flow, as a crew can't be as quiet: CrewAI
refuses a model's empty answer, and puts words of its own around what the user says.
"""

# mypy: ignore-errors
import os
import time

from behaviour import Failed, steps
from crewai import BaseLLM, Flow
from crewai.events.types.llm_events import LLMCallType
from crewai.flow.flow import start


class Model(BaseLLM):
    """Does what a step says, as CrewAI's own models do it: a tool is called, or tokens are used."""

    def call(self, messages, tools=None, callbacks=None, available_functions=None, **more):
        step = messages[-1]["step"]
        self._emit_call_started_event(messages="…")
        if step["do"] == "call":
            self._handle_tool_execution(step["tool"], step["input"], available_functions)
        else:
            usage = {"prompt_tokens": step["input_tokens"], "completion_tokens": step["output_tokens"]}
            self._emit_call_completed_event("…", LLMCallType.LLM_CALL, usage=usage)
        return "…"


def tool_of(step):
    def tool(**_given):
        if "error" in step:
            raise PermissionError(step["error"])
        return step["output"]

    return {step.get("tool"): tool}


class Reference(Flow):
    """Takes all that it is kicked off with into its state."""

    @start()
    def act(self):
        model = Model(model="reference")
        output = None
        for step in steps(self.state["messages"], {"value": self.state.get("value")}, self.state["workspace"]):
            match step["do"]:
                case "answer":
                    output = step["output"]
                case "fail":
                    raise Failed(step["reason"])
                case "sleep":
                    time.sleep(3600)
                case "die":
                    os._exit(7)
                case _:
                    model.call([{"role": "user", "content": "…", "step": step}], available_functions=tool_of(step))
        return output
