"""All generated Markdown files: nothing in them is lost without a word. `make test` takes a sample."""

import pytest
from tests.loader.markdown import soup
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


@pytest.mark.fuzz
@pytest.mark.no_cover
@pytest.mark.parametrize("round_", range(10))
def test_what_is_said_of_the_lines_of_any_file_is_so(round_: int) -> None:
    found: list[str] = []
    for seed in range(round_ * 5_000, (round_ + 1) * 5_000):
        text = soup.generate(seed)
        found += [f"seed {seed}: {wrong}" for wrong in soup.dishonest(text, soup.load(text))]
    assert found == []
