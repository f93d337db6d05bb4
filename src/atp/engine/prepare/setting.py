"""What a run is set in: its options, where it is, what is around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from atp.agents.registry import make_adapter
from atp.base.diagnostics import refused
from atp.engine.prepare.options import Options
from atp.engine.prepare.settings import connectors
from atp.engine.prepare.survey import Filter
from atp.engine.role_clients import RoleClients


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is set in."""

    options: Options
    wanted: Filter
    root: Path
    env: Mapping[str, str]

    def roles(self, marker: str = "") -> RoleClients:
        """Those who play the roles. Raises `LoadError`."""
        if self.options.record and self.options.replay:
            raise refused("contradiction", "--record and --replay are both given", "record first, then replay")
        roles = RoleClients(self.options, self.root, self.env, connectors(self.root))
        around = {"environment": self.env, "retries": self.options.retries, "marker": marker}
        roles.act_with(make_adapter, {**around, "root": self.root, "services": roles})
        return roles
