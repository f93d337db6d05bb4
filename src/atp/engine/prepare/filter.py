"""The part of a suite that is asked for."""

import re

from atp.engine.prepare.options import Options
from atp.suite.case import Case


class Filter:
    """Which cases are wanted: by id and name, by tag."""

    def __init__(self, options: Options) -> None:
        self._pattern = re.compile(options.run) if options.run else None
        words = [word.strip() for word in (options.tags or "").split(",") if word.strip()]
        self._with = {word for word in words if not word.startswith("!")}
        self._without = {word[1:] for word in words if word.startswith("!")}
        self.only: set[tuple[str, str]] | None = None
        """With `--only-failed`: (agent, case) pairs."""
        self._wants_all = not (self._pattern or self._with or self._without)

    def wants(self, case: Case) -> bool:
        """Whether a case is to be run."""
        if self._wants_all:
            return True
        if self._pattern and not (self._pattern.search(case.id) or self._pattern.search(case.name)):
            return False
        tags = set(case.tags)
        return not (tags & self._without) and (not self._with or bool(tags & self._with))

    def wants_pair(self, agent: str, case: Case) -> bool:
        """Whether a case is to be run against an agent."""
        return self.only is None or (agent, case.id) in self.only
