"""What tests of the installation share."""

import shutil
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT
from tests.docs.newcomer import plain_environment, shell
from tests.parts import needs

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
