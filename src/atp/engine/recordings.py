"""What models have answered: recorded in a cassette or played back from it, and what judges said, kept in a cache."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from atp.base.diagnostics import refused
from atp.engine.prepare.options import Options

if TYPE_CHECKING:
    from atp.models.cassettes.cassette import Cassette
    from atp.models.cassettes.store import Cache


class Recordings:
    """The answers that a run keeps or goes by. Neither store is opened before it is needed."""

    def __init__(self, options: Options, root: Path, secrets: Callable[[], frozenset[str]]) -> None:
        """`secrets` are those known when a store is opened; `hide` tells of more."""
        self._options = options
        self._root = root
        self._secrets = secrets

    @cached_property
    def cassette(self) -> "Cassette | None":
        """Where answers are recorded to or played back from. Raises `LoadError` if that can't be used."""
        folder = self._options.replay or self._options.record
        if folder is None:
            return None
        from atp.models.cassettes.cassette import Cassette
        from atp.models.model import CassetteError

        try:
            return Cassette(Path(folder), "replay" if self._options.replay else "record", self._secrets())
        except CassetteError as error:
            raise refused("cassette", str(error), error.hint) from error

    @cached_property
    def cache(self) -> "Cache | None":
        """What judges said of the same before."""
        if not self._options.judge_cache:
            return None
        from atp.models.cassettes.store import Cache

        return Cache(self._root / ".atp" / "judge-cache", self._secrets())

    def _opened(self) -> "list[Cassette | Cache]":
        stores = (self.__dict__.get(name) for name in ("cassette", "cache"))
        return [store for store in stores if store is not None]

    def hide(self, secrets: frozenset[str]) -> None:
        """What neither may keep, from now on."""
        for store in self._opened():
            store.hide(secrets)

    def begin_trial(self) -> None:
        """From here on, the same question asked again is the trial's second."""
        if self.__dict__.get("cassette") is not None:
            from atp.models.cassettes.cassette import begin_trial

            begin_trial()

    def close(self) -> list[str]:
        """Write all that is to be kept. What could not be, and why."""
        from atp.models.model import CassetteError

        problems: list[str] = []
        for store in self._opened():
            try:
                store.close()
            except CassetteError as error:
                problems.append(str(error))
        if (cache := self.__dict__.get("cache")) is not None and cache.problem:
            problems.append(f"the judge cache is not kept: {cache.problem}")
        return problems
