"""Document 4's JSONL: the events in a file. Whoever stops us, what happened so far is in it."""

from collections.abc import Sequence
from pathlib import Path

from atp.report.formats.events import Events
from atp.report.sink import LineFile, Sink


class JsonlReport(Events):
    """Streams the events to a file."""

    format = "report.jsonl"
    extensions = (".jsonl",)

    def __init__(self, path: Path | None, secrets: Sequence[str] = (), *, fresh: bool = False) -> None:
        """With `fresh` an earlier file is left alone, and the name gets a number."""
        super().__init__(path, secrets)
        self._fresh = fresh

    def _open(self) -> Sink:
        if self.path is None:
            return super()._open()
        if not self._fresh:
            return LineFile(self.path)
        stem, number = self.path.stem, 1
        while True:
            try:
                return LineFile(self.path, fresh=True)
            except FileExistsError:
                number += 1
                self.path = self.path.with_stem(f"{stem}-{number}")
