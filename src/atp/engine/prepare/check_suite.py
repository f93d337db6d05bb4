"""What `atp validate` finds in a suite that was loaded without errors: what a run of it would refuse."""

from collections.abc import Mapping
from pathlib import Path

from atp.base.diagnostics import Diagnostics
from atp.engine.prepare.agents import Project, agent_tools, resolve_agents
from atp.engine.prepare.case_gates import check_gates
from atp.engine.prepare.impossible_cases import check_cases, check_hooks, unknown_connectors
from atp.engine.prepare.options import Options
from atp.engine.prepare.sources import hook_folders, in_memory
from atp.suite.agent import NEEDS_ENTRY, CustomConfig
from atp.suite.suite import Suite


def check_suite(suite: Suite, options: Options, root: Path, env: Mapping[str, str], anchor: Path) -> Diagnostics:
    """Report what a run with these options would refuse in a suite that was loaded without errors.

    `anchor` is the folder of the input.
    """
    project = Project(root, env)
    source = in_memory(suite, lambda _: True, lambda source: agent_tools(source, options, project))
    # Agents are resolved as far as files describe them. What is wrong with them is for `atp agents check` to say.
    agents = resolve_agents(source, options, project, Diagnostics())
    found = Diagnostics(suite.path)
    for agent in agents:
        config = agent.agent.config
        if isinstance(config, CustomConfig) and config.entry is None:
            message, hint = NEEDS_ENTRY
            found.error("agent-configuration", f"agent `{agent.agent.name}`: {message}", agent.agent.place, hint)
    found.extend(check_cases(source, agents, root))
    found.extend(check_gates(source, options))
    hooks = ((hook, source.folder) for hook in sorted(source.survey.hooks))
    found.extend(check_hooks(hooks, hook_folders(anchor, root), root))
    survey = source.survey
    if survey.connectors or survey.deciders or survey.simulators or survey.varied:
        # Only here: most suites need none of what a run is made of.
        from atp.engine.prepare.roles import missing_roles
        from atp.engine.role_clients import RoleLookup
        from atp.engine.run_context import RunContext

        roles = RunContext(options, root, env, anchor).roles
        found.extend(unknown_connectors(source, agents, options, roles.services.models.described))
        found.extend(missing_roles(source, RoleLookup(roles)))
    return found
