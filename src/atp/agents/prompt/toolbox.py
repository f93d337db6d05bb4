"""Making the tools that a prompt agent names. What is wrong with any of them is told before anything runs."""

from collections.abc import Callable
from dataclasses import replace

from atp.agents.adapter import AdapterContext, Services
from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.canned import Canned
from atp.agents.prompt.head import Written
from atp.agents.prompt.tools import AgentTool, Command, UsableTool
from atp.base.diagnostics import Place
from atp.base.errors import ConfigurationError
from atp.loader.validate import DataPath


def make_tools(
    written: Written, files: AgentFiles, context: AdapterContext, services: Services
) -> dict[str, UsableTool]:
    """The tools by name; mistakes are noted where the tools are named."""
    box = _Toolbox(written, files)
    head = written.head
    search = (files.root, context.base, *context.search)
    around = replace(context, base=written.path.parent, search=search)
    for number, entry in enumerate(head.commands):
        box.make(("commands", number), entry, lambda entry: Command(entry, around))
    for number, name in enumerate(head.agents):
        box.make(("agents", number), name, lambda name: AgentTool(services.running_agent(name)))
    for name, table in head.tools.items():
        box.tools[name] = Canned(name, table, box.tools.get(name))
    return box.tools


class _Toolbox:
    """Tools in the making."""

    def __init__(self, written: Written, files: AgentFiles) -> None:
        self.tools: dict[str, UsableTool] = {}
        self._locate = written.locate
        self._notes = files.notes(written.path)

    def make(self, where: DataPath, named: str, make: Callable[[str], UsableTool]) -> None:
        try:
            tool = make(named)
        except ConfigurationError as error:
            self.note(where, f"`{named}`: {error}", error.hint)
            return
        if tool.tool.name in self.tools:
            self.note(where, f"two tools are called `{tool.tool.name}`", "rename one of them, or leave it out")
        self.tools[tool.tool.name] = tool

    def note(self, where: DataPath, message: str, hint: str | None) -> None:
        at = Place(1, 1) if self._locate is None else self._locate.value(where)
        self._notes.error("tool", message, at, hint)
