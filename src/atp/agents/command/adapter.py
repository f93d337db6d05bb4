"""Agents that are commands."""

import os
import re
import secrets
import shlex
import shutil
from pathlib import Path

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Finding, Reply, TurnRequest
from atp.agents.child import Command, child_environment, ending
from atp.agents.command.process import run_process
from atp.agents.leftovers import OF_AGENT, end_leftovers
from atp.agents.protocol import encode_request
from atp.agents.stdio import Stderr, check_startable, failure, prompt_line, read_reply, split_words
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.suite.agent import Agent, CliConfig, capabilities_of
from atp.usercode.threads import in_thread

_SCRIPT = re.compile(r"(?![-/])[\w.+/-]+\.(?:py|sh|js|mjs|cjs|ts|rb|pl)")
"""Words that most likely name a file in the suite's folder."""
_ELSEWHERE = frozenset(("docker", "podman", "kubectl", "ssh"))
"""Programs whose arguments name files of another machine."""


class CliAdapter(Adapter):
    """Runs a command for each turn."""

    type = "cli"
    Config = CliConfig

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        config: CliConfig = agent.config
        self._config = config
        self._context = context
        self._argv = _argv(config)
        own = {**config.environment, OF_AGENT: secrets.token_hex(8)}
        self._environment = child_environment(context, own, everything=config.inherit_environment)
        self._speaks = config.protocol == "atp"
        self.capabilities = capabilities_of(config)

    async def turn(self, request: TurnRequest) -> Reply:
        """Run the command, with the request on its stdin."""
        command = self._command(request)
        stdin = encode_request(request, self._config.environment) if self._speaks else prompt_line(request.prompt)
        stderr = Stderr(request, self._speaks)
        try:
            finished = await run_process(command, stdin, stderr.feed)
            stderr.end_line()
        except OSError as error:
            program, why = command.argv[0], error.strerror or str(error)
            hint = f" ({remedy})" if (remedy := self._remedy(program)) else ""
            raise AgentError(f"`{program}` can't be started: {why}{hint}", "environment") from error
        finally:
            stderr.finish()
        if finished.left_behind:
            request.log("the agent left processes behind; they were ended")
        if finished.code != 0:
            how = ending(finished.code)
            for word in self._absent(command.folder):
                guess = f"; {meant}" if (meant := self._meant(word)) else ""
                how += f" ({self._not_there(word)}{guess})"
            raise failure(how, finished.output, request, stderr.tail, self._speaks)
        return read_reply(finished.output, request, self._speaks)

    async def check(self) -> list[Finding]:
        """Look for the program and the scripts in its arguments, without starting it."""
        program, folder = self._check_program(), self._context.base
        if not program.ok:
            return [program]
        findings = [program]
        if self._config.working_dir is not None:
            folder /= self._config.working_dir
            findings.append(Finding(what="working_dir", ok=folder.is_dir(), detail=str(folder)))
        for word in self._absent(folder):
            hint = self._meant(word) or "give its path relative to the suite's file"
            findings.append(Finding(what="file", ok=False, detail=self._not_there(word), hint=hint))
        return findings

    def _check_program(self) -> Finding:
        name = self._argv[0]
        program = self._program(name)
        found = shutil.which(program, path=self._environment.get("PATH"))
        if found is not None:
            return Finding(what="program", ok=True, detail=found)
        wrong = "is not executable" if _is_there(program) else "is not there, or can't be run"
        hint = self._remedy(program) or "install it, or give its path relative to the suite's file"
        return Finding(what="program", ok=False, detail=f"`{name}` {wrong}", hint=hint)

    async def close(self) -> None:
        """End processes that outlived their turns."""
        await in_thread(end_leftovers, self._environment[OF_AGENT], OF_AGENT)

    def _command(self, request: TurnRequest) -> Command:
        base, config = self._context.base, self._config
        folder = base / config.working_dir if config.working_dir is not None else request.workspace()
        if not folder.is_dir():
            raise AgentError(f"the working directory {folder} is not there", "environment")
        program, *arguments = self._argv
        # Not Path.is_file: it raises for words that are too long for a name, such as whole scripts.
        arguments = [str(path.resolve()) if os.path.isfile(path := base / one) else one for one in arguments]
        environment = self._environment
        if not self._speaks:
            environment = {**environment, "ATP_SESSION_ID": str(request.context.get("session_id", ""))}
        return Command((self._program(program), *arguments), folder, environment)

    def _program(self, name: str) -> str:
        """Return the program: a path from the suite's folder; a bare name on the PATH, else in that folder."""
        path = self._context.base / name
        if os.sep in name or (os.path.isfile(path) and shutil.which(name, path=self._environment.get("PATH")) is None):
            return str(path.absolute())
        return name

    def _remedy(self, program: str) -> str | None:
        """Return what helps when a program can't be started, if its file shows that."""
        if _is_there(program):
            return None if os.access(program, os.X_OK) else f"chmod +x {shlex.quote(program)}"
        found = shutil.which(program, path=self._environment.get("PATH"))
        return None if found else self._meant(self._argv[0])

    def _absent(self, folder: Path) -> list[str]:
        """Return arguments that look like files, but are neither in the suite's folder nor in the working directory."""
        program, *words = self._argv
        if os.path.basename(program) in _ELSEWHERE:
            return []
        places = (self._context.base, folder)
        scripts = [word for word in dict.fromkeys(words) if _SCRIPT.fullmatch(word)]
        return [word for word in scripts if not any(os.path.exists(place / word) for place in places)]

    def _not_there(self, word: str) -> str:
        return f"`{word}` is not in {self._context.base}"

    def _meant(self, word: str) -> str | None:
        """Return a hint with the file in the suite's folder that an argument most likely means."""
        path = self._context.base / word
        try:
            beside = sorted(one.name for one in path.parent.iterdir() if one.is_file())
        except OSError:
            return None
        meant = near_miss(path.name, beside)
        return f"did you mean `{os.path.join(os.path.dirname(word), meant)}`?" if meant else None


def _is_there(program: str) -> bool:
    """Return whether an absolute path is a file."""
    return os.path.isabs(program) and os.path.isfile(program)


def _argv(config: CliConfig) -> list[str]:
    command = split_words(config.command, "command")
    if not command:
        raise ConfigurationError("`command` is empty")
    argv = [*command, *config.args]
    check_startable(argv, config.environment)
    return argv
