"""All generated Markdown files: nothing in them is lost without a word. `make test` takes a sample."""

import pytest
from tests.loader.markdown.matrix import ACCEPTED, LOOKALIKES, combinations, generate, load, losses, misread


@pytest.mark.fuzz
@pytest.mark.no_cover
@pytest.mark.parametrize("spelling", ACCEPTED + LOOKALIKES)
def test_no_generated_file_loses_a_line(spelling: str) -> None:
    lost: list[str] = []
    for one in combinations(spelling):
        name, generated = generate(*one)
        loaded = load(generated)
        found = losses(generated, loaded)
        if all(label.is_accepted for label in generated.labels.values()):
            found += misread(generated, loaded)
        lost += [f"{name}: {one}" for one in found]
    assert lost == []
