"""What the named criteria of `llm_eval` mean, for a judge; any other text is a criterion in the user's own words."""

RUBRICS = {
    "factual_accuracy": (
        "Factual accuracy: every statement that can be checked is correct, and agrees with what the user, the tools "
        "and the files say. Wrong, invented or contradicted statements count against it, the more so the more the user "
        "would rely on them; what is merely missing does not."
    ),
    "completeness": (
        "Completeness: everything that was asked for is there. Take the task apart into its requirements, see for each "
        "whether it is met in full, in part or not at all, and score the share that is met. A mere promise to do "
        "something does not meet it."
    ),
    "coherence": (
        "Coherence: it is well structured, consistent in itself and easy to follow. Contradictions, jumps, repetition, "
        "broken sentences and broken formatting count against it; whether it is correct or complete does not matter."
    ),
    "relevance": (
        "Relevance: it addresses what was asked, and keeps to it. Digressions, filler and answers to other questions "
        "count against it; whether it is correct does not matter."
    ),
}
"""By the names that document 1 gives."""


def rubric(criteria: str) -> str:
    """What to judge by, in a sentence or more."""
    return RUBRICS.get(criteria.strip().lower().replace(" ", "_").replace("-", "_"), criteria)
