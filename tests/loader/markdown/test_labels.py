"""Which words are labels: those that are spelled right, and those with a typo, but no words of their own."""

import pytest

from atp.loader.markdown.labels import label_at_start

OTHER_WORDS = """
    action after again author brain cabin chair champ chaos charm chart chat china claim content doctor drain extent
    factor gain grain impute indent insertions inspected invent latent main motor pain patent plain potent prescription
    put rain respected sector stain tabs train tutor unexpected vector
    actions captions portions scaring ship skin slip snip steam storing
"""


@pytest.mark.parametrize("word", OTHER_WORDS.split())
def test_a_word_close_to_a_label_is_no_label(word: str) -> None:
    assert label_at_start(f"**{word.title()}:** x") is None


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        *(("Promts", "prompts"), ("Promtps", "prompts"), ("Pormpts", "prompts"), ("rPompts", "prompts")),
        *(("Promt", "prompt"), ("Inptu", "input"), ("Chian", "chain"), ("Chan", "chain"), ("Befor", "before")),
        *(("Intnet", "intent"), ("Atcor", "actor"), ("Tag", "tags"), ("Taggs", "tags")),
        *(("Expecations", "expectations"), ("Expactations", "expectations"), ("Asertions", "assertions")),
        *(("Dependancies", "dependencies"), ("Discription", "description")),
        *(("Timout", "timeout"), ("Skp", "skip"), ("Optoins", "options"), ("Metdata", "metadata")),
        *(("Work-space", "workspace"), ("Pass_rat", "pass rate")),
    ],
)
def test_a_typo_is_the_label_that_was_meant(word: str, meant: str) -> None:
    label = label_at_start(f"**{word}:** x")
    assert label is not None
    assert label.meant == meant
