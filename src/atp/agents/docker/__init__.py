"""Agents in containers."""

from atp.agents.adapter import Adapter, AdapterContext
from atp.base.errors import ConfigurationError, install_extra
from atp.suite.agent import Agent, DockerConfig


def docker_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Make the adapter: with `port` all trials share one container, otherwise each turn has a container of its own."""
    try:
        import aiodocker  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"agents in containers need the package `aiodocker`: {error}", install_extra("docker")
        ) from error
    config: DockerConfig = agent.config
    if config.port is not None:
        from atp.agents.docker.http import SharedContainer

        return SharedContainer(agent, context)
    from atp.agents.docker.stdio import ContainerEachTurn

    return ContainerEachTurn(agent, context)
