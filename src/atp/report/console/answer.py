"""Direct-message mode without `-o`: the agent's answer on stdout, and nothing else there."""

from atp.base.json_text import whole_text
from atp.base.text import harmless, without_commands
from atp.report.reporter import Reporter
from atp.report.result_object import response
from atp.report.sink import LineStream, open_stdout
from atp.suite.result import CaseResult


class Answer(Reporter):
    """Prints the answer of each trial as it is, but for what could steer a terminal."""

    def case(self, result: CaseResult) -> None:
        """The answer, if there is one."""
        for trial in result.trials:
            if trial.transcript.turns and not self.problems:
                text = without_commands(whole_text(harmless(response(self.hide(trial.transcript.output)))))
                try:
                    LineStream(open_stdout()).write(text.encode() + b"\n")
                except OSError as error:
                    self.problem(error)
