"""The behaviour of the conformance test as a LangGraph graph: a model that asks for tools, and a node that has them.

What LangChain has no words for, artifacts and what a model costs, is handed over in events of its own.
"""

import asyncio
import json
import sys
from itertools import islice
from typing import Annotated, Any

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from atp.testing.reference.behaviour import Failed, steps

ROLES = {"human": "user", "ai": "assistant", "system": "system"}


class State(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    value: Any


def next_step(state: State, config: RunnableConfig) -> dict[str, Any]:
    """What comes after all that the model has said since the user last did."""
    messages = state["messages"]
    last = max(number for number, one in enumerate(messages) if isinstance(one, HumanMessage))
    done = sum(isinstance(one, AIMessage) for one in messages[last:])
    said = [{"role": ROLES[one.type], "content": one.content} for one in messages[: last + 1] if one.type in ROLES]
    workspace = config["configurable"]["workspace"]
    return next(islice(steps(said, {"value": state.get("value")}, workspace), done, None))


class Reference(BaseChatModel):
    """Says what a step is in the words of a chat model."""

    step: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "reference"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
        step = self.step
        message = AIMessage(content=step.get("output") or "" if step["do"] == "answer" else "")
        if step["do"] == "call":
            message.tool_calls = [{"name": step["tool"], "args": step["input"], "id": f"call-{len(messages)}"}]
        if step["do"] == "think":
            read, written = step["input_tokens"], step["output_tokens"]
            message.usage_metadata = UsageMetadata(
                input_tokens=read, output_tokens=written, total_tokens=read + written
            )
        return ChatResult(generations=[ChatGeneration(message=message)])


async def model(state: State, config: RunnableConfig) -> State:
    step = next_step(state, config)
    if step["do"] == "fail":
        raise Failed(step["reason"])
    if step["do"] == "sleep":
        await asyncio.sleep(3600)
    if step["do"] == "die":
        sys.exit(7)
    if step["do"] == "make":
        made = {key: value for key, value in step.items() if key != "do"}
        await adispatch_custom_event("atp", {"artifacts": [made]})
    if "cost_usd" in step:
        await adispatch_custom_event("atp", {"usage": {"cost_usd": step["cost_usd"]}})
    return {"messages": [await Reference(step=step).ainvoke(state["messages"])]}


async def tools(state: State, config: RunnableConfig) -> State:
    called = state["messages"][-1]
    assert isinstance(called, AIMessage)
    step = next_step({**state, "messages": state["messages"][:-1]}, config)
    answer = step.get("error") or json.dumps(step["output"])
    status = "error" if "error" in step else "success"
    return {"messages": [ToolMessage(answer, tool_call_id=called.tool_calls[0]["id"], status=status)]}


def after(state: State, config: RunnableConfig) -> str:
    """Tools if they are asked for, the end after an answer, else the model again."""
    said = state["messages"][-1]
    if isinstance(said, AIMessage) and said.tool_calls:
        return "tools"
    done = next_step({**state, "messages": state["messages"][:-1]}, config)["do"]
    return END if done == "answer" else "model"


graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_conditional_edges("model", after, ["tools", "model", END])
graph.add_edge("tools", "model")
