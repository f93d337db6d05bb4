"""`atp schema`: a JSON Schema on stdout."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from jsonschema import Draft202012Validator

Atp = Callable[..., CompletedProcess[str]]


@pytest.mark.parametrize("name", ["yaml", "jsonl", "frontmatter"])
def test_it_prints_a_schema(atp: Atp, name: str) -> None:
    done = atp("schema", name)
    assert (done.returncode, done.stderr) == (0, "")
    Draft202012Validator.check_schema(json.loads(done.stdout))


def test_another_name_is_bad_usage(atp: Atp) -> None:
    done = atp("schema", "toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'yaml', 'jsonl', 'frontmatter'" in done.stderr
