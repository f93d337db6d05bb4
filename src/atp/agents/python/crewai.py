"""Agents that are CrewAI crews or flows, or classes and functions that make one.

They are kicked off with `prompt`, `messages`, `task` (its description), `workspace` (the trial's folder), the
configuration's `inputs`, the case's options and the task's `input_data`, the later ones first where they share a name.
"""

from atp.agents.adapter import Adapter, AdapterContext, Capabilities
from atp.agents.python.calling import Offer
from atp.agents.python.python_code import Code, python_adapter
from atp.suite.agent import Agent, CrewAiConfig
from atp.usercode.load import named_place

OBSERVES = Capabilities(cost=False)


def crewai_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Reaches a crew."""
    config: CrewAiConfig = agent.config
    code = Code("crewai", *named_place(config.crew_path, config.module, config.crew))
    return python_adapter(code, config, context, Offer(config.inputs), OBSERVES)
