"""`-r report.summary`: the summary of a run as a short text."""

from atp.base.text import one_line
from atp.journal.listeners import RunEnd
from atp.report.console.summary_text import summary_lines
from atp.report.facts import agent_id
from atp.report.files import whole_file
from atp.report.reporter import Reporter


class SummaryReport(Reporter):
    """A few lines: the agents, and the summary of the console."""

    format = "report.summary"

    def end(self, end: RunEnd) -> None:
        """Write the lines."""
        lines = [
            f"Agent: {one_line(self.hide(agent_id(end.info)))}",
            *(text for text, _ in summary_lines(end, self.hide)),
        ]
        try:
            with whole_file(self.target) as file:
                file.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
        except OSError as error:
            self.problem(error)
