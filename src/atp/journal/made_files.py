"""Keeps the files that agents made in the run's folder, each by the digest of its content, and reads them again."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from atp.base.files import NotRegularFile, in_place_of, open_untrusted
from atp.base.secrets import secrets_of
from atp.suite.result import MadeFile, TrialResult

LARGEST = 1_000_000
"""Bytes. The content of a larger file is not kept."""
MOST = 10_000_000
"""Bytes. The most that is kept of one trial."""
MOST_LISTED = 1000
"""The most files that are listed for one trial: an agent may have installed a package."""
MOST_READ = 2**30
"""Bytes. The most that is read of one trial; further files are listed without a digest."""
FOLDER = "files"
"""The folder of the contents, in the run's folder."""
LOST = "the files that the agent made are not kept"
"""How the warning begins about a trial whose files are not listed."""
_NOT_KEPT = "could not be kept"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class MadeFiles:
    """The contents of the files that agents made in one run."""

    def __init__(self, folder: Path) -> None:
        """`folder` is created with the first file."""
        self._folder = folder
        self.secrets: Iterable[str] = ()
        """A file that contains one of these is not kept."""

    def keep(self, found: Mapping[str, Path]) -> tuple[list[MadeFile], list[str]]:
        """Keep the files of a trial, by their names in the workspace. Returns them, and warnings about others.

        Links are left out: what they lead to was not made by the agent, or is listed itself.
        """
        made: list[MadeFile] = []
        warnings: list[str] = []
        to_keep, to_read = MOST, MOST_READ
        for name, path in sorted(found.items()):
            if len(made) == MOST_LISTED:
                warnings.append(f"the agent made {len(found)} files: only {MOST_LISTED} are listed")
                break
            try:
                one = self._read(name, path, to_keep, to_read)
            except NotRegularFile:
                continue
            except OSError as error:
                warnings.append(f"the file {name} {_NOT_KEPT}: {error.strerror or error}")
            else:
                made.append(one)
                to_keep -= one.size if one.kept else 0
                to_read -= one.size
        return made, warnings

    def take_over(self, run: Path, files: Iterable[MadeFile]) -> list[MadeFile]:
        """Keep the files of an earlier run, too. Returns them as far as their contents are still there."""
        taken = []
        for made in files:
            content = read_kept(run, made)
            kept = content is not None and not self._has_secret(content)
            if content is not None and made.sha256 is not None and kept:
                self._write(made.sha256, content)
            taken.append(replace(made, kept=kept))
        return taken

    def _read(self, name: str, path: Path, to_keep: int, to_read: int) -> MadeFile:
        with open_untrusted(path) as file:
            about = os.fstat(file.fileno())
            made = MadeFile(name=name, size=about.st_size)
            if about.st_size > min(LARGEST, to_keep):
                if about.st_size <= to_read:
                    made.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                return made
            content = file.read(LARGEST + 1)
        made.size, made.sha256 = len(content), hashlib.sha256(content).hexdigest()
        if not self._has_secret(content):
            self._write(made.sha256, content)
            made.kept = True
        return made

    def _has_secret(self, content: bytes) -> bool:
        text = content.decode(errors="surrogateescape")
        return secrets_of(self.secrets).mask_text(text) != text

    def _write(self, digest: str, content: bytes) -> None:
        path = self._folder / digest
        if path.exists():
            return
        self._folder.mkdir(exist_ok=True)
        with in_place_of(path) as file:
            file.write(content)


def no_files(found: Mapping[str, Path]) -> list[str]:
    """The names of what an agent left that is no regular file: links, pipes, sockets; at most `MOST_LISTED`."""
    return [name for name, path in sorted(found.items()) if not _is_regular(path)][:MOST_LISTED]


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def are_all_listed(result: TrialResult) -> bool:
    """True if the journal lists all files that the agent made in a trial. Warnings tell where it doesn't."""
    lost = any(one.startswith(LOST) or (one.startswith("the file ") and _NOT_KEPT in one) for one in result.warnings)
    return not lost and max(len(result.files), len(result.links)) < MOST_LISTED


def read_kept(run: Path, made: MadeFile) -> bytes | None:
    """Return the content of a file that was kept in a run's folder; None if it was not, or is not there any more."""
    if not made.kept or made.sha256 is None or not _DIGEST.fullmatch(made.sha256):  # journals can be edited
        return None
    try:
        with open_untrusted(run / FOLDER / made.sha256) as file:
            content = file.read(LARGEST + 1)
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == made.sha256 else None
