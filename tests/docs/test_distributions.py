"""The wheel and the source distribution of a release: what is in them, and that ATP works where only the wheel is."""

import email
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT
from tests.docs.newcomer import call, files, plain_environment, shell
from tests.waiting import WAIT_LIMIT

import atp

NAME = f"agent_test_platform-{atp.__version__}"


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a distribution of one kind as a release does; the backend comes from here."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=WAIT_LIMIT)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", repository, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / NAME


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, which so has all that it takes."""
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, environment: Path) -> Path:
    """An environment with the wheel: its dependencies are there, this tree is not."""
    command = f"pip install --no-index {wheel}"
    done = shell([command], environment, plain_environment(environment / "bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    return environment


def test_the_source_distribution_has_the_sources_and_nothing_odd(unpacked: Path) -> None:
    beside = {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert {one.name for one in unpacked.iterdir()} == {*beside, "src"}
    assert files(unpacked / "src") == {f"atp/{one}" for one in files(ROOT / "src/atp")}


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = email.message_from_bytes(archive.read(f"{NAME}.dist-info/METADATA"))
        entries = archive.read(f"{NAME}.dist-info/entry_points.txt").decode()
    infos = {
        f"{NAME}.dist-info/{one}" for one in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    assert names == {f"atp/{one}" for one in files(ROOT / "src/atp")} | infos
    assert "atp/py.typed" in names
    assert "[console_scripts]\natp = atp.__main__:main" in entries
    assert "[pytest11]" in entries
    assert "Operating System :: POSIX :: Linux" in about.get_all("Classifier", [])


def test_what_is_installed_works_on_its_own(installed: Path, tmp_path: Path) -> None:
    """What it has beside Python code is found: the starters, the files of the HTML report, the pytest plugin."""
    assert call(installed, tmp_path, "atp --version") == f"atp {atp.__version__}\n"
    place = Path(call(installed, tmp_path, "python -c 'import atp; print(atp.__file__)'").strip()).parent
    assert place.is_relative_to(installed)
    for kind in ("yaml", "md", "jsonl"):
        call(installed, tmp_path, f"atp init {kind} --dir {kind}")
    said = call(installed, tmp_path, "python -m atp test yaml/suite.yaml -o report.html -o report.json")
    assert "Failed:  0" in said
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["summary"]["passed"] > 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assets = list((place / "report/html/assets").glob("*.js"))
    assert assets
    for asset in assets:
        assert asset.read_text(encoding="utf-8").splitlines()[0] in page, asset.name
    schema = json.loads(call(installed, tmp_path, "atp schema yaml"))
    assert "test_suite" in schema["properties"]
    passed = call(installed, tmp_path, "python -m pytest --atp -q yaml")
    assert "passed" in passed
    assert list((tmp_path / ".atp/runs").iterdir())
