"""Agents that are commands."""

import os
import secrets
import shutil
import signal
from collections.abc import Mapping

from atp.agents.adapter import (
    Adapter,
    AgentError,
    ConfigurationError,
    Finding,
    Reply,
    Surroundings,
    TurnRequest,
)
from atp.agents.child import Command
from atp.agents.leftovers import OF_AGENT, OF_RUN, end_leftovers
from atp.agents.process import run_process
from atp.agents.protocol import encode_request
from atp.agents.stdio import NOTHING, Stderr, check_startable, failure, prompt_line, read_reply, split_words
from atp.agents.threads import in_thread
from atp.suite.agent import Agent, CliConfig

HANDED_ON = ("PATH", "HOME", "LANG", "TERM")
"""What a command gets of our environment."""


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
            self.observes = NOTHING

    async def turn(self, request: TurnRequest) -> Reply:
        """Run the command, with the request on its stdin."""
        command = self._command(request)
        stdin = encode_request(request, self._config.environment) if self._speaks else prompt_line(request.prompt)
        stderr = Stderr(request, self._speaks)
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
            code = finished.code
            how = f"exit code {code}" if code > 0 else f"ended by {_signal_name(-code)}"
            raise failure(how, finished.output, request, stderr.tail, self._speaks)
        return read_reply(finished.output, request, self._speaks)

    async def check(self) -> list[Finding]:
        """See that the program can be found, without starting it."""
        program = self._program(self._argv[0])
        found = shutil.which(program, path=self._environment.get("PATH"))
        if found is None:
            hint = "install it, or give its path relative to the suite's file"
            return [
                Finding(what="program", ok=False, detail=f"`{self._argv[0]}` is not there, or can't be run", hint=hint)
            ]
        findings = [Finding(what="program", ok=True, detail=found)]
        if self._config.working_dir is not None:
            folder = self._surroundings.base / self._config.working_dir
            findings.append(Finding(what="working_dir", ok=folder.is_dir(), detail=str(folder)))
        return findings

    async def close(self) -> None:
        """End what got away from the turns."""
        await in_thread(end_leftovers, self._environment[OF_AGENT], OF_AGENT)

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


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _argv(config: CliConfig) -> list[str]:
    command = split_words(config.command, "command")
    if not command:
        raise ConfigurationError("`command` is empty")
    argv = [*command, *config.args]
    check_startable(argv, config.environment)
    return argv


def _environment(config: CliConfig, surroundings: Surroundings) -> Mapping[str, str]:
    around = surroundings.environment
    names = around if config.inherit_environment else HANDED_ON
    environment = {name: around[name] for name in names if name in around} | config.environment
    environment[OF_AGENT] = secrets.token_hex(8)
    if surroundings.marker:
        environment[OF_RUN] = surroundings.marker
    return environment
