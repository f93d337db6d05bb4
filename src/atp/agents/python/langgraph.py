"""Agents that are LangGraph graphs: compiled, drafts (`StateGraph`), or functions that make one.

`model`, `temperature` and all further keys, below the case's own options, are the graph's `configurable`, where the
conversation is the `thread_id` and the trial's folder the `workspace`. A graph with a checkpointer is sent what is new,
any other the whole conversation. What LangChain has no words for, a graph hands over in an event of its own:
`dispatch_custom_event("atp", {"artifacts": […], "usage": {"cost_usd": …}})`.
"""

from atp.agents.adapter import Adapter, AdapterContext
from atp.agents.attachments import Attachments
from atp.agents.python.calling import Offer
from atp.agents.python.python_code import Code, python_adapter
from atp.suite.agent import Agent, LangGraphConfig
from atp.usercode.load import named_place

OURS = {"graph_path", "module", "graph", "python", "parallel"}
"""Keys that say where the graph is and how it runs."""


def langgraph_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Reaches a graph."""
    config: LangGraphConfig = agent.config
    code = Code("langgraph", *named_place(config.graph_path, config.module, config.graph))
    settings = {key: value for key, value in config.model_dump(exclude_none=True).items() if key not in OURS}
    offer = Offer(settings, Attachments((context.base, *context.search)))
    return python_adapter(code, config, context, offer)
