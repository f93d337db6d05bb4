"""`-r <agent>`: a report that an agent of the user's writes, from the JSON report.

The agent is asked when all trials are done. If the agent fails, the built-in report for the file's extension is written
in its place, and the failure is a problem of the run.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError, ParserCreate

from atp.base.durations import duration
from atp.base.exit_codes import INTERRUPTED
from atp.base.json.text import whole_text
from atp.base.text import harmless, one_line, without_commands
from atp.engine.prepare.options import Options
from atp.journal.folder import TemporaryFolder
from atp.journal.listeners import RunEnd
from atp.journal.recorded_run import RecordedRun
from atp.report.files import whole_file
from atp.report.formats.json import JsonReport
from atp.report.formats.summary import SummaryReport
from atp.report.reporter import REPORTERS, Reporter

if TYPE_CHECKING:
    from atp.roles.ask import RoleClient

_FORMS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".xml": "xml", ".csv": "csv"}


def _malformed(text: str, form: str) -> str | None:
    """Why a text is not of the form that the file's extension promises. Only JSON and XML are checked."""
    try:
        if form == "json":
            json.loads(text)
        elif form == "xml":
            ParserCreate().Parse(text.encode(errors="replace"), True)
    except (ValueError, ExpatError, RecursionError) as error:
        return f"its report is no {form.upper()}: {error}"
    return None


class AgentReport(Reporter):
    """Asks an agent for the report, and writes what the agent answers."""

    def __init__(self, path: Path | None, secrets: Sequence[str], client: "RoleClient", options: Options) -> None:
        super().__init__(path, secrets)
        self._client = client
        self._options = options

    @property
    def form(self) -> str:
        """The format that the file's extension asks for."""
        return _FORMS.get(self.path.suffix.lower(), "text") if self.path else "text"

    async def finish(self, end: RunEnd) -> None:
        """Ask for the report and write it, or write the built-in one."""
        why = await self._try(end)
        if why is None:
            return
        instead = "the built-in report was written instead"
        self._problems.append(f"{self.path or 'stdout'}: -r {one_line(self.hide(why))}; {instead}")
        kind = (REPORTERS.for_file(self.path) if self.path else None) or SummaryReport
        built_in = kind(self.target, self._secrets)
        RecordedRun(Path(end.info.folder)).repeat(built_in)
        built_in.end(end)
        self._problems += built_in.problems

    async def _try(self, end: RunEnd) -> str | None:
        """Ask for the report and write it. Returns why there is none, if that fails."""
        from atp.roles.ask import RoleError
        from atp.roles.reporter import ReportWriter

        if end.exit_code == INTERRUPTED:
            return f"{self._client.name}: not asked, because the run was interrupted"
        options = {"verbose": bool(self._options.verbose), "include_outputs": True}
        limit = self._options.timeout
        try:
            async with asyncio.timeout(limit):
                text = await ReportWriter(self._client).write(self._report(end), self.form, options)
        except RoleError as error:
            return str(error)
        except TimeoutError:
            return f"{self._client.name}: timeout after {duration(limit)}"
        except asyncio.CancelledError:
            return f"{self._client.name}: cut short, because the run was interrupted"
        if why := _malformed(text, self.form):
            return f"{self._client.name}: {why}"
        self._write(text)
        return None

    def _report(self, end: RunEnd) -> dict[str, Any]:
        """The JSON report, as an object."""
        with TemporaryFolder("report") as folder:
            file = JsonReport(folder / "report.json", self._secrets)
            RecordedRun(Path(end.info.folder)).repeat(file)
            file.end(end)
            report: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
        return report

    def _write(self, text: str) -> None:
        """Write the text: to a file as the agent wrote it, to stdout without what could steer a terminal."""
        shown = whole_text(self.hide(text) if self.path else without_commands(harmless(self.hide(text))))
        try:
            with whole_file(self.target) as file:
                file.write(shown.encode() if shown.endswith("\n") else f"{shown}\n".encode())
        except OSError as error:
            self.problem(error)
