"""What a run is set in: its options, where it is, what is around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from atp.agents.registry import make_adapter
from atp.loader.diagnostics import refused
from atp.run.cast import Cast
from atp.run.filter import Filter
from atp.run.options import Options
from atp.run.settings import connectors


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is set in."""

    options: Options
    wanted: Filter
    root: Path
    env: Mapping[str, str]

    def cast(self, marker: str = "") -> Cast:
        """Those who play the roles. Raises `LoadError`."""
        if self.options.record and self.options.replay:
            raise refused("contradiction", "--record and --replay are both given", "record first, then replay")
        cast = Cast(self.options, self.root, self.env, connectors(self.root))
        around = {"environment": self.env, "retries": self.options.retries, "marker": marker}
        cast.act_with(make_adapter, {**around, "root": self.root, "services": cast})
        return cast
