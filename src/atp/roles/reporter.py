"""The reporter: an agent of the user's, or a model, that writes a report on a run in a form of its own (document 4)."""

import json
import re
from typing import Any

from atp.roles.fence import Fence
from atp.roles.player import Call, RoleClient, WrongAnswer

INSTRUCTIONS = """\
You write a report on a run of tests of AI agents. You get JSON: `report` is what came of the run (`summary`, \
`environment`, `results`, `skipped`, `metadata`), `format` the format to write (html, markdown, text, json), `options` \
how much of it. Show the summary first, then what failed and why. Answer with the report itself in that format, and \
with nothing else: no remarks, no fence around it. {rule}"""

_FENCED = re.compile(r"(`{3,}|~{3,})[\w+-]*[ \t]*\n(.*?)\n?\1", re.DOTALL)


class ReportWriter:
    """Writes reports by asking a client."""

    def __init__(self, client: RoleClient) -> None:
        self.client = client

    async def write(self, report: dict[str, Any], form: str, options: dict[str, Any]) -> str:
        """The report in that form. Raises `RoleError`."""
        payload = {"report": report, "format": form, "options": options}
        words = json.dumps(payload, ensure_ascii=False, default=str)
        fence = Fence.around([words])
        said = await self.client.ask(
            Call(
                role="reporter",
                instructions=INSTRUCTIONS.format(rule=fence.rule),
                payload=payload,
                words=fence.put(words),
                metadata={"format": form},
            )
        )
        text = unfenced(said.text)
        if not text.strip():
            raise WrongAnswer(f"{self.client.name} gave an empty report")
        return text


def unfenced(text: str) -> str:
    """The text without a fence around all of it, which models like to put there."""
    whole = _FENCED.fullmatch(text.strip())
    return whole[2] if whole and whole[1] not in whole[2] else text
