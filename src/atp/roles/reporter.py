"""The reporter: an agent of the user's, or a model, that writes a report on a run."""

from typing import Any

from atp.base.json.text import readable
from atp.models.structured import without_fence
from atp.roles.ask import RoleCall, RoleClient, WrongAnswer
from atp.roles.fence import Fence

INSTRUCTIONS = """\
You write a report on a run of tests of AI agents. You get JSON: `report` is the result of the run (`summary`, \
`environment`, `results`, `skipped`, `metadata`), `format` the format to write (html, markdown, text, json), `options` \
how much of it. Show the summary first, then what failed and why. Answer with the report itself in that format, and \
with nothing else: no remarks, no fence around it. {rule}"""


class ReportWriter:
    """Writes reports by asking a client."""

    def __init__(self, client: RoleClient) -> None:
        self.client = client

    async def write(self, report: dict[str, Any], form: str, options: dict[str, Any]) -> str:
        """The report in the format `form`. Raises `RoleError`."""
        payload = {"report": report, "format": form, "options": options}
        text = readable(payload)
        fence = Fence.around([text])
        answer = await self.client.ask(
            RoleCall(
                role="reporter",
                instructions=INSTRUCTIONS.format(rule=fence.rule),
                payload=payload,
                prompt=fence.put(text),
                metadata={"format": form},
            )
        )
        written = without_fence(answer.text)
        if not written.strip():
            raise WrongAnswer(f"{self.client.name} gave an empty report")
        return written
