"""Which cases are to run: by id and name, by tag, by their last result."""

import re

from atp.base.secrets import current_secrets
from atp.engine.prepare.options import Options
from atp.suite.case import Case


class Filter:
    """Selects cases by id and name, by tag, and for `--only-failed` by their last result."""

    def __init__(self, options: Options) -> None:
        self._pattern = re.compile(options.run) if options.run else None
        words = [word.strip() for word in (options.tags or "").split(",") if word.strip()]
        self._with = {word for word in words if not word.startswith("!")}
        self._without = {word[1:] for word in words if word.startswith("!")}
        self.only: set[tuple[str, str]] | None = None
        """The pairs (agent, case) to run: with `--only-failed`, where secrets are masked, or as pytest selects them."""
        self._wants_all = not (self._pattern or self._with or self._without)

    def wants(self, case: Case) -> bool:
        """True if the case is to run."""
        if self._wants_all:
            return True
        if self._pattern and not (self._pattern.search(case.id) or self._pattern.search(case.name)):
            return False
        tags = set(case.tags)
        return not (tags & self._without) and (not self._with or bool(tags & self._with))

    def wants_pair(self, agent: str, case: Case) -> bool:
        """True if the case is to run against this agent."""
        if self.only is None or (agent, case.id) in self.only:
            return True
        secrets = current_secrets()
        if not secrets.may_be_in(f"{agent} {case.id}"):
            return False
        return (secrets.mask_text(agent), secrets.mask_text(case.id)) in self.only
