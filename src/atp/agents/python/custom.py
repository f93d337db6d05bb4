"""Agents that are Python code of the user's.

`config.entry` names a function, sync or async, a generator or an async generator, an object that can be called, or a
class of such. Its further configuration is handed to it in `options`, below the case's own, and in `context["config"]`;
the state that its last reply asked for in `context["state"]`.
"""

from atp.agents.adapter import Adapter, AdapterContext
from atp.agents.python.calling import Offer
from atp.agents.python.python_code import Code, python_adapter
from atp.base.errors import ConfigurationError
from atp.suite.agent import Agent, AgentConfig, CustomConfig


def custom_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Reaches a function of the user's."""
    config: CustomConfig = agent.config
    if config.entry is None:
        raise ConfigurationError("`custom` needs `entry`", "write `entry: module:function` or `file.py:function`")
    known = {*AgentConfig.model_fields, "entry", "python"}
    further = {name: value for name, value in (config.model_extra or {}).items() if name not in known}
    place, _, name = config.entry.rpartition(":")
    return python_adapter(Code("custom", place, name), config, context, Offer(further))
