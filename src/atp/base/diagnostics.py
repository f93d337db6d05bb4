"""Diagnostics: what is wrong with a file, where, and how to fix it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from atp.base.errors import Error, with_hint
from atp.base.secrets import current_secrets, secrets_of

Severity = Literal["error", "warning"]


@dataclass(slots=True, eq=False)  # not frozen: that would make creation three times as slow, and each case has a Place
class Place:
    """A line and column. All places are equal, because records that differ only in their places are."""

    line: int = 0
    column: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place)

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One mistake, or something worth a look."""

    code: str
    """Stable, in words with hyphens: `unknown-key`."""
    severity: Severity
    """An error keeps the file from running, a warning doesn't."""
    message: str
    """What is wrong."""
    hint: str | None = None
    """How to fix it."""
    file: str | None = None
    """The file."""
    line: int = 1
    """From 1."""
    column: int = 1
    """From 1, in characters."""

    @property
    def with_hint(self) -> str:
        """What is wrong and how to fix it, in one line, without the place."""
        return with_hint(self.message, self.hint)

    def as_dict(self) -> dict[str, Any]:
        """The diagnostic as JSON values."""
        return asdict(self)


class Diagnostics(list[Diagnostic]):
    """The diagnostics of one file, collected while it is read."""

    def __init__(self, file: str | None = None) -> None:
        super().__init__()
        self.file = file
        self.secrets: set[str] = set()
        """Values that no message may show; the loader adds them as it finds them."""

    def error(self, code: str, message: str, at: Place | None = None, hint: str | None = None) -> None:
        """Note a mistake."""
        self._note("error", code, message, at, hint)

    def warn(self, code: str, message: str, at: Place | None = None, hint: str | None = None) -> None:
        """Note something worth a look."""
        self._note("warning", code, message, at, hint)

    def _note(self, severity: Severity, code: str, message: str, at: Place | None, hint: str | None) -> None:
        place = at or Place(1, 1)
        self.append(
            Diagnostic(
                code=code,
                severity=severity,
                message=self._masked(message),
                hint=None if hint is None else self._masked(hint),
                file=self.file,
                line=max(place.line, 1),
                column=max(place.column, 1),
            )
        )

    def _masked(self, text: str) -> str:
        return current_secrets().mask_text(secrets_of(self.secrets).mask_text(text))

    def in_order(self) -> list[Diagnostic]:
        """The diagnostics by place, without the repetitions that YAML aliases cause."""
        return sorted(dict.fromkeys(self), key=lambda one: (one.line, one.column))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any diagnostic is an error."""
    return any(one.severity == "error" for one in diagnostics)


class LoadError(Error):
    """A file that can't be used as it is."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__("\n".join(_line(one) for one in self.diagnostics))


def load_error(code: str, message: str, hint: str | None = None) -> LoadError:
    """A `LoadError` with one diagnostic that is about no file."""
    notes = Diagnostics()
    notes.error(code, message, hint=hint)
    return LoadError(notes)


def _line(one: Diagnostic) -> str:
    where = f"{one.file or '<text>'}:{one.line}:{one.column}"
    return f"{where}: {one.severity}[{one.code}]: {one.with_hint}"
