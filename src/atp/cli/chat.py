"""`atp chat`: talk to an agent, and save what was said as a test."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

_ENDS = ("/quit", "/exit", "/q")
_COMMAND = re.compile(r"/[\w?-]*(\s|$)")


@click.command("chat")
@click.argument("agent")
@click.option("-c", "--connector", metavar="ID", help="Override the agent's model connector.")
@click.option("-s", "--save", "file", metavar="FILE", help="Save it as a case: a .jsonl or .test.md file.")
@click.option("--name", default="chat", help="What the saved case is called (chat).")
def command(agent: str, connector: str | None, file: str | None, name: str) -> int:
    """Talk to AGENT, as `-n` of `atp test` names it. A line is a message; /quit or Ctrl-D ends.

    With --save the conversation becomes a test case, at the end of the file if there is one.
    """
    path = Path(file) if file else None
    if path is not None and not path.name.endswith((".jsonl", ".test.md")):
        raise click.UsageError(f"--save {file}: a conversation is saved as .jsonl or .test.md.")
    return _chat(agent, {"connector": connector} if connector else {}, path, name)


def _chat(agent: str, flags: dict[str, Any], path: Path | None, name: str) -> int:
    from atp.base.exit_codes import INTERRUPTED
    from atp.engine.chat import Chat, save, why_not_saved
    from atp.engine.signals import run_to_end
    from atp.journal.folder import TemporaryFolder
    from atp.usercode.importing import limit_imports

    if path is not None and (problem := why_not_saved(path)):
        raise click.UsageError(f"--save {path}: {problem}.")
    limit_imports()
    with TemporaryFolder("chat") as folder:
        chat = Chat(agent, flags, folder / "workspace")
        try:
            code = run_to_end(_talk(chat))
        except KeyboardInterrupt:  # the conversation so far is still saved
            code = INTERRUPTED
    if path is not None and not chat.transcript.turns:
        click.echo("Nothing is saved: there was no answer.", err=True)
    elif path is not None:
        try:
            id_ = save(chat.transcript, path, chat.hide(name), chat.target, chat.hide)
        except OSError as error:
            click.echo(f"atp: {path}: {error.strerror}", err=True)
            return 3
        done = f"Saved as case {id_} in {path}. Add what must hold, then: atp test {path} -n {agent}"
        click.echo(chat.hide(done), err=True)
        if path.name.endswith(".jsonl") and len(chat.transcript.turns) > 1 and not chat.gets_history:
            click.echo(
                "The agent is only given the newest message, so a test can't hand it the earlier ones: save a "
                ".test.md, which says them all again, or set `history: ignored` in the agent's `config`.",
                err=True,
            )
    return code


async def _talk(chat: Any) -> int:
    import asyncio

    from atp.agents.adapter import AgentError

    unanswered = False
    try:
        async with chat:
            while True:
                line = await asyncio.to_thread(_read)
                if line is None or line.strip() in _ENDS:
                    return 3 if unanswered and not chat.transcript.turns else 0
                if _COMMAND.match(line.strip()):
                    click.echo(f"There is no such command: {', '.join(_ENDS)} or Ctrl-D ends.", err=True)
                elif line.strip():
                    unanswered = not await _exchange(chat, line.strip()) or unanswered
    except AgentError as error:
        click.echo(f"atp: the agent can't be reached: {chat.hide(str(error))}", err=True)
        return 3


async def _exchange(chat: Any, line: str) -> bool:
    """Send a message and print the answer. False if there was none."""
    from atp.agents.adapter import AgentError
    from atp.base.secrets import current_secrets
    from atp.base.text import harmless

    before, hide = len(chat.transcript.messages), current_secrets().mask_text
    try:
        answer, calls = await chat.say(line)
    except AgentError as error:
        chat.take_back(before)
        click.echo(f"agent error: {hide(str(error)).removeprefix('agent error: ')}", err=True)
        return False
    except BaseException:
        chat.take_back(before)
        raise
    for call in calls:
        click.echo(harmless(hide(f"· {call.name}({json.dumps(call.arguments, ensure_ascii=False)})")), err=True)
    click.echo(harmless(hide(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))))
    return True


def _read() -> str | None:
    """A line of the user; None at the end."""
    if sys.stdin.isatty():
        click.echo("> ", nl=False, err=True)
    line = sys.stdin.readline()
    # What isn't UTF-8 can't be sent, and the agent is not to blame for that.
    return line.encode(errors="surrogateescape").decode(errors="replace") if line else None
