"""The recorded answers of a run: its cassette, and the cache of its judges' answers."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from atp.base.diagnostics import load_error
from atp.base.secrets import Secrets
from atp.engine.prepare.options import Options

if TYPE_CHECKING:
    from atp.models.cassettes.cassette import Cassette
    from atp.models.cassettes.store import Cache


class Recordings:
    """The cassette and the judges' cache of one run. Each is opened when it is first needed."""

    def __init__(self, options: Options, root: Path, secrets: Secrets) -> None:
        """`secrets` are masked in both."""
        self._options = options
        self._root = root
        self._secrets = secrets

    @cached_property
    def cassette(self) -> "Cassette | None":
        """Where answers are recorded to or replayed from; none if the run does neither. Raises `LoadError`."""
        folder = self._options.replay or self._options.record
        if folder is None:
            return None
        from atp.models.cassettes.cassette import Cassette
        from atp.models.model import CassetteError

        try:
            return Cassette(Path(folder), "replay" if self._options.replay else "record", self._secrets)
        except CassetteError as error:
            raise load_error("cassette", str(error), error.hint) from error

    @cached_property
    def cache(self) -> "Cache | None":
        """The judges' earlier answers; none if the run doesn't use them."""
        if not self._options.judge_cache:
            return None
        from atp.models.cassettes.store import Cache

        return Cache(self._root / ".atp" / "judge-cache", self._secrets)

    def _opened(self) -> "list[Cassette | Cache]":
        stores = (self.__dict__.get(name) for name in ("cassette", "cache"))
        return [store for store in stores if store is not None]

    def begin_trial(self) -> None:
        """Number the answers to repeated calls of a new trial from 1 again."""
        if self.__dict__.get("cassette") is not None:
            from atp.models.cassettes.cassette import begin_trial

            begin_trial()

    def close(self) -> list[str]:
        """Close the cassette and the cache of judges. Returns what could not be written, and why."""
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
