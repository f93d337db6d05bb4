"""The errors that a user can cause, in one family: `except atp.Error` catches them all."""


class Error(Exception):
    """Something that the user can fix. `str(error)` says what is wrong, `hint` how to fix it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """What is wrong and how to fix it, in one line."""
        return with_hint(str(self), self.hint)


def with_hint(message: str, hint: str | None) -> str:
    """A message with its hint in brackets, if there is one."""
    return f"{message} ({hint})" if hint else message


def install_extra(name: str) -> str:
    """The hint for a package that only an extra of ATP requires. ATP is on no package index: see the README."""
    return f"install ATP with its extra `{name}`, from a clone: pip install '/path/to/atp[{name}]'"


class ConfigurationError(Error):
    """An agent, a model or a script that can't be set up as it is configured. Nothing runs."""

    key: str | None = None
    """The key of an agent's `config` that is wrong, if that is known."""
