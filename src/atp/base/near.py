"""Suggests the word that a mistyped word was meant to be."""

from collections.abc import Iterable


def edits(one: str, other: str, most: int = 2) -> int:
    """The edit distance: letters inserted, left out, replaced, or swapped with a neighbour. At most `most + 1`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` most likely stands for, if there is one.

    Short words must be nearer: two edits make `ab` out of anything.
    """
    lowered = word.lower().replace("-", "_").replace(" ", "_")
    best: tuple[int, str] | None = None
    for candidate in known:
        target = candidate.lower()
        allowed = 2 if len(target) > 4 else 1
        distance = edits(lowered, target, allowed)
        if distance <= allowed and (best is None or distance < best[0]):
            best = (distance, candidate)
    return best[1] if best else None


def meant_key(word: str, known: Iterable[str]) -> str | None:
    """The key that `word` most likely stands for: a near miss, or the only key that begins so (`timeout`)."""
    known = list(known)
    longer = [one for one in known if len(word) > 3 and one.startswith(f"{word.lower()}_")]
    return near_miss(word, known) or (longer[0] if len(longer) == 1 else None)
