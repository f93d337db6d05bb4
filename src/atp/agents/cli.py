"""Agents that are commands."""

import os
import shlex
import shutil
import signal
from collections import deque
from collections.abc import Mapping

from atp.agents.adapter import (
    Adapter,
    AgentError,
    ConfigurationError,
    Observes,
    Reply,
    Surroundings,
    TurnRequest,
)
from atp.agents.breach import Breach, broken, cut, read_json
from atp.agents.events import read_event
from atp.agents.leftovers import OF_RUN, end_leftovers
from atp.agents.lines import LONGEST, KeptLines
from atp.agents.process import Command, Finished, run_process
from atp.agents.protocol import encode_request, read_response
from atp.agents.threads import in_thread
from atp.suite.agent import Agent, CliConfig

HANDED_ON = ("PATH", "HOME", "LANG", "TERM")
"""What a command gets of our environment."""
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line on stderr that may be an event."""
_KEPT = 4 * LONGEST
_TAIL = 10


class CliAdapter(Adapter):
    """Starts a command for each turn."""

    def __init__(self, agent: Agent, surroundings: Surroundings) -> None:
        config: CliConfig = agent.config
        self._config = config
        self._surroundings = surroundings
        self._argv = _argv(config)
        self._environment = _environment(config, surroundings)
        self._speaks = config.protocol == "atp"
        if not self._speaks:
            self.observes = Observes(tool_calls=False, tokens=False, cost=False, steps=False)

    async def turn(self, request: TurnRequest) -> Reply:
        """Run the command, with the request on its stdin."""
        command = self._command(request)
        stdin = encode_request(request, self._config.environment) if self._speaks else _line(request.prompt)
        stderr = _Stderr(request, self._speaks)
        try:
            finished = await run_process(command, stdin, stderr.feed)
            stderr.end_line()
        except OSError as error:
            why = error.strerror or str(error)
            raise AgentError(f"`{command.argv[0]}` can't be started: {why}", "environment") from error
        finally:
            stderr.finish()
        if finished.left_behind:
            request.log("the agent left processes behind; they were ended")
        if finished.code != 0:
            raise self._failure(finished, request, stderr.tail)
        if self._speaks:
            return read_response(finished.output, request)
        return Reply(output=finished.output.decode(errors="replace").rstrip("\r\n"))

    async def close(self) -> None:
        """End what got away from the turns."""
        if self._surroundings.marker:
            await in_thread(end_leftovers, self._surroundings.marker)

    def _command(self, request: TurnRequest) -> Command:
        base, config = self._surroundings.base, self._config
        folder = base / config.working_dir if config.working_dir is not None else request.workspace()
        if not folder.is_dir():
            raise AgentError(f"the working directory {folder} is not there", "environment")
        program, *arguments = self._argv
        arguments = [str(path.resolve()) if (path := base / one).is_file() else one for one in arguments]
        environment = self._environment
        if not self._speaks:
            environment = {**environment, "ATP_SESSION_ID": str(request.context.get("session_id", ""))}
        return Command((self._program(program), *arguments), folder, environment)

    def _program(self, name: str) -> str:
        """A path starts in the suite's folder; a bare name is looked for on the PATH, and then there."""
        path = self._surroundings.base / name
        if os.sep in name or (path.is_file() and shutil.which(name, path=self._environment.get("PATH")) is None):
            return str(path.absolute())
        return name

    def _failure(self, finished: Finished, request: TurnRequest, tail: str) -> AgentError:
        how = f"exit code {finished.code}"
        if finished.code < 0:
            how = f"ended by {_signal_name(-finished.code)}"
        said, reply = tail, None
        if self._speaks and finished.output.strip():
            try:
                reply = read_response(finished.output, request)
            except AgentError as error:
                if error.raw is None:  # a response in good form that tells of a failure
                    said, reply = str(error).removeprefix("agent error: "), error.reply
        raw = cut(finished.output) if finished.output else None
        return AgentError(f"agent error: {how}{f': {said}' if said else ''}", raw=raw, reply=reply)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _line(prompt: str) -> bytes:
    """A prompt as a line, or lines: tools that read lines would not see a last one without its end."""
    return (prompt if prompt.endswith("\n") else f"{prompt}\n").encode(errors="replace")


class _Stderr:
    """What a command writes to stderr: events, told at once, and lines for the log."""

    def __init__(self, request: TurnRequest, events: bool) -> None:
        self._request = request
        self._events = events
        self._kept = KeptLines(request.log)
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self._buffer = bytearray()
        self._skipped = 0

    @property
    def tail(self) -> str:
        """The last lines of the log."""
        return cut("\n".join(self._tail)[-1000:])

    def feed(self, piece: bytes) -> None:
        """Take a piece in. Raises what the engine raises when a limit is passed."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._buffer += line
            self.end_line()
        if len(self._buffer) + len(rest) <= LONGEST_LINE:
            self._buffer += rest
        else:
            self._skipped += len(rest)

    def end_line(self) -> None:
        """What has come is a line, if there is any of it: an event or not."""
        line, skipped = bytes(self._buffer), self._skipped
        self._buffer.clear()
        self._skipped = 0
        if self._events and b'"event_type"' in line and line.lstrip().startswith(b"{"):
            if skipped:
                raise broken(f"an event of {len(line) + skipped} bytes is too long", line)
            self._tell(line)
        elif line:
            self._keep(line, skipped)

    def finish(self) -> None:
        """Nothing more will come, or nobody wants to hear it."""
        if self._buffer:
            self._keep(bytes(self._buffer), self._skipped)
        self._kept.finish()

    def _tell(self, line: bytes) -> None:
        try:
            event = read_event(read_json(line, "an event"), self._request)
        except Breach as breach:
            raise broken(breach, line) from breach
        self._request.emit(event)

    def _keep(self, line: bytes, skipped: int) -> None:
        text = line[:_KEPT].decode(errors="replace").rstrip("\r")
        if len(line) > _KEPT:
            text = f"{text[: LONGEST - 40]} … ({len(line) + skipped} bytes)"
        self._kept.add(text)
        self._tail.append(text[:500])


def _argv(config: CliConfig) -> list[str]:
    try:
        command = shlex.split(config.command) if isinstance(config.command, str) else list(config.command)
    except ValueError as error:
        raise ConfigurationError(f"`command` can't be split: {error}", "write it as a list") from error
    if not command:
        raise ConfigurationError("`command` is empty")
    argv = [*command, *config.args]
    if any("\0" in one for one in (*argv, *config.environment, *config.environment.values())):
        raise ConfigurationError("`command` or `environment` has a NUL character in it")
    if any("=" in name or not name for name in config.environment):
        raise ConfigurationError("`environment` has a name that can't be one")
    return argv


def _environment(config: CliConfig, surroundings: Surroundings) -> Mapping[str, str]:
    around = surroundings.environment
    names = around if config.inherit_environment else HANDED_ON
    environment = {name: around[name] for name in names if name in around} | config.environment
    if surroundings.marker:
        environment[OF_RUN] = surroundings.marker
    return environment
