"""Paths and globs as assertions write them, and the names that they match."""

from collections.abc import Callable, Sequence
from typing import Any


def normal_path(path: str) -> str:
    """A path without `./` and doubled slashes. A path that ends in a slash stands for everything below."""
    steps = [step for step in path.replace("\\", "/").split("/") if step not in ("", ".")]
    return "/".join([*steps, "**"] if path.endswith("/") else steps)


def is_glob(path: str) -> bool:
    """Whether a path has wildcards."""
    return "*" in path or "?" in path


def matches_glob(pattern: str, path: str) -> bool:
    """Whether a pattern matches a path: `*` and `?` within a part, `**` for any number of parts.

    Brackets are plain text, as file names have them. Matching takes no more than the product of both lengths.
    """
    return _wild(pattern.split("/"), path.split("/"), "**", _part_matches)


def _part_matches(pattern: str, part: str) -> bool:
    return _wild(pattern, part, "*", lambda wanted, found: wanted in ("?", found))


def _wild(pattern: Sequence[Any], items: Sequence[Any], star: str, same: Callable[[Any, Any], bool]) -> bool:
    """Whether the items match the pattern, in which `star` stands for any number of them.

    On a mismatch only the last star has to take one item more: it can take whatever an earlier star could.
    """
    here = there = 0
    last_star, resume = -1, 0
    while there < len(items):
        if here < len(pattern) and pattern[here] == star:
            last_star, resume = here, there
            here += 1
        elif here < len(pattern) and same(pattern[here], items[there]):
            here, there = here + 1, there + 1
        elif last_star >= 0:
            resume += 1
            here, there = last_star + 1, resume
        else:
            return False
    return all(one == star for one in pattern[here:])
