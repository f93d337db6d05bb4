"""Garbage is collected afterwards as before, on every way out."""

import gc
from pathlib import Path

import pytest

import atp
from atp.loader.load import no_collection


def test_collection_is_as_it_was_also_after_an_error() -> None:
    assert gc.isenabled()
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="x"), no_collection():
        raise ValueError("x")
    assert gc.isenabled()


def test_loading_leaves_the_collector_alone(tmp_path: Path) -> None:
    before = (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "a", "input": "x"}')
    atp.load(file)
    with pytest.raises(atp.LoadError):
        atp.load(tmp_path / "none.yaml")
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before
