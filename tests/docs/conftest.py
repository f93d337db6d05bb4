"""What tests of the installation share."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT
from tests.docs.newcomer import plain_environment, shell
from tests.parts import needs
from tests.waiting import WAIT_LIMIT

LARGE = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", ".artifacts", "site", ".atp")
"""What need not be copied. `.gitignore` sees to the rest."""


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with ATP as it is here now, to clone and to install from; nothing is written into this tree."""
    needs("git")
    made = tmp_path_factory.mktemp("repository") / "atp"
    shutil.copytree(ROOT, made, ignore=LARGE, symlinks=True)
    who = "-c user.name=ATP -c user.email=atp@localhost -c commit.gpgsign=false"
    commands = ["git init --quiet", "git add --all", f"git {who} commit --quiet --message ATP"]
    done = shell(commands, made, plain_environment(Path(sys.executable).parent))
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's environment: what ATP depends on and is built with is there, ATP is not."""
    made = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", made], check=True, timeout=WAIT_LIMIT)
    packages = made / "packages"
    packages.mkdir()
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        if not one.name.startswith(("agent_test_platform", "_agent_test_platform", "pip")):
            (packages / one.name).symlink_to(one)
    (inside,) = made.glob("lib/python*/site-packages")
    (inside / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    return made
