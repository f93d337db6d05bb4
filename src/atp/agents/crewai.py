"""Agents that are CrewAI crews or flows, or classes and functions that make one.

They are kicked off with `prompt`, `messages`, `task` (its description), the configuration's `inputs`, the case's
options and the task's `input_data`, the later ones first where they share a name.
"""

from atp.agents.adapter import Adapter, Observes, Surroundings
from atp.agents.calling import Offer
from atp.agents.python_code import Code, python_adapter
from atp.agents.worker.load import split_place
from atp.suite.agent import Agent, CrewAiConfig

OBSERVES = Observes(cost=False)


def crewai_adapter(agent: Agent, surroundings: Surroundings) -> Adapter:
    """Reaches a crew."""
    config: CrewAiConfig = agent.config
    if config.crew_path is not None:
        place, name = split_place(config.crew_path)
    else:
        assert config.module is not None
        place, name = config.module, None
    code = Code("crewai", place, name or config.crew)
    return python_adapter(code, config, surroundings, Offer(config.inputs), OBSERVES)
