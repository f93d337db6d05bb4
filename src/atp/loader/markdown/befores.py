"""Befores: which cases a case names, and the sequence that is replayed before it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from atp.base.diagnostics import Diagnostics, Place
from atp.base.near import near_miss
from atp.loader.markdown.items import Entry
from atp.loader.markdown.names import links, plain, slug
from atp.suite.case import Case

LONGEST = 10_000
"""How many cases may be replayed before one."""
MOST = 5_000_000
"""How many cases all sequences of a file may have together: a chain of n cases makes n²/2."""

_BETWEEN = re.compile(r"(?:[\s,;.&+/>→|-]|\b(?:and|then)\b)+", re.IGNORECASE)
"""Words and signs between links that name no case."""


@dataclass(slots=True)
class Directory:
    """The cases of a file by name, id, index, anchor and slug."""

    cases: list[Case]
    names: dict[str, list[int]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    anchors: dict[str, int] = field(default_factory=dict)
    """Cases by the anchor of their heading."""
    anchor_of: dict[int, str] = field(default_factory=dict)
    """The anchor of each case."""
    slugs: dict[str, list[int]] = field(default_factory=dict)
    """Cases by the slug of their name, which differs from the anchor if the heading says `Test: …`."""

    def add(self, case: Case, heading: str, anchor: str) -> None:
        """Enter a case with its heading and the anchor that GitHub gives it."""
        for name in {_fold(case.name), _fold(heading)} - {""}:
            self.names.setdefault(name, []).append(case.index)
        self.ids[case.id] = case.index
        self.anchors.setdefault(anchor, case.index)
        self.anchor_of[case.index] = anchor or case.id
        self.slugs.setdefault(slug(case.name), []).append(case.index)

    def find(self, word: str) -> list[int]:
        """The cases that a word means: none, one, or several of the same name."""
        text = plain(word)
        named = self.names.get(_fold(text), [])
        if len(named) != 1 and word in self.ids:
            return [self.ids[word]]
        if named:
            return named
        for known in (word.lower(), slug(text)):
            if known in self.ids:
                return [self.ids[known]]
        if word.isdecimal() and len(word) < 10 and int(word) < len(self.cases):
            return [int(word)]
        return []

    def find_anchor(self, anchor: str) -> list[int]:
        """The cases that `#anchor` leads to, whatever the link's text."""
        for known in (self.anchors, self.ids):
            for word in (anchor, anchor.lower()):
                if word and word in known:
                    return [known[word]]
        return self.slugs.get(anchor.lower(), []) if anchor else []


def _without_ends(text: str) -> str:
    """The words between links, without leading and trailing joiners."""
    start = _BETWEEN.match(text)
    text = text[start.end() :] if start else text
    ends = [found.start() for found in _BETWEEN.finditer(text) if found.end() == len(text)]
    return text[: ends[0]] if ends else text


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


@dataclass(slots=True)
class Befores:
    """Resolves the befores of all cases."""

    directory: Directory
    notes: Diagnostics
    places: dict[int, list[Place]] = field(default_factory=dict)
    """The places of a case's befores, by case."""
    guesses: int = 50
    """How many unknown names still get a suggestion, which takes a comparison with all known names."""

    def resolve(self, case: Case, entries: list[Entry]) -> None:
        """Find the cases that entries name, in order."""
        for entry in entries:
            for word, found in self._candidates(entry):
                if len(found) == 1:
                    self._enter(case, found[0], entry.at)
                elif found:
                    message = f"several cases are called `{word}`: {', '.join(map(str, found))}"
                    self.notes.error("ambiguous-before", message, entry.at, "address it by its index or id")
                else:
                    self.notes.error("unknown-before", f"there is no case `{word}`", entry.at, self._hint(word))

    def _candidates(self, entry: Entry) -> Iterator[tuple[str, list[int]]]:
        """The names in an entry: one, several with commas between them, or links and names in any order."""
        pieces = links(entry.text)
        if not pieces:
            yield from self._named(entry.text)
        for text, target in pieces:
            if target is None:
                if words := _without_ends(text):
                    yield from self._named(words)
            elif target.startswith("#"):
                yield target, self.directory.find_anchor(target[1:])
            else:
                self._note_elsewhere(text, target, entry.at)

    def _note_elsewhere(self, text: str, target: str, at: Place) -> None:
        """Note a link to another file."""
        anchor = target.rpartition("#")[2]
        found = self.directory.find(text) or self.directory.find_anchor(anchor)
        same = f"`[{text}](#{self.directory.anchor_of[found[0]]})`" if found else "`[Name](#name)`"
        message = f"`{target}` leads out of this file, but befores are cases of the same file"
        self.notes.error("unknown-before", message, at, f"link to a case of this file: {same}")

    def _named(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """The cases that words without a link name."""
        whole = self.directory.find(text)
        parts = [part.strip() for part in text.split(",")]
        split = [(part, self.directory.find(part)) for part in parts if part] if not whole and len(parts) > 1 else []
        if any(found for _, found in split):
            yield from split
        else:
            yield text, whole

    def _enter(self, case: Case, before: int, at: Place) -> None:
        if before > case.index:
            message = f"`{self.directory.cases[before].name}` stands further down in the file"
            self.notes.warn("forward-before", message, at, "move that case above this one")
        case.befores.append(before)
        self.places.setdefault(case.index, []).append(at)

    def _hint(self, word: str) -> str:
        cases = self.directory.cases
        word = word.removeprefix("#")
        if word.isdecimal():
            return f"cases are numbered from 0 to {len(cases) - 1}"
        if self.guesses > 0:
            self.guesses -= 1
            known = {_fold(case.name).replace(" ", "_").replace("-", "_"): case.name for case in cases[:1000]}
            folded = _fold(plain(word)).replace(" ", "_").replace("-", "_")
            meant = near_miss(folded, known) or next((one for one in known if folded in one or one in folded), None)
            if meant:
                return f"did you mean `{known[meant]}`?"
        return f"the cases are: {', '.join(case.name for case in cases[:10])}"

    def expand(self) -> None:
        """Set the whole sequence that is replayed before each case."""
        cases = self.directory.cases
        too_long: set[int] = set()
        left = MOST
        for index, befores in self._in_order():
            length = sum(len(cases[before].before_sequence) + 1 for before in befores)
            if too_long.intersection(befores):
                too_long.add(index)
            elif length > LONGEST or length > left:
                too_long.add(index)
                message = f"more than {min(LONGEST, left):,} cases would have to be replayed before this one"
                self.notes.error("too-many-befores", message, self.places[index][0], "name fewer befores")
            else:
                left -= length
                for before in befores:
                    cases[index].before_sequence += [*cases[before].before_sequence, before]

    def _in_order(self) -> Iterator[tuple[int, list[int]]]:
        """The cases, each after its befores. A cycle is noted, and broken where it closes."""
        done: dict[int, bool] = {}
        for start in range(len(self.directory.cases)):
            trail = [] if start in done else [_Step(start)]
            while trail:
                step = trail[-1]
                done.setdefault(step.index, False)
                befores = self.directory.cases[step.index].befores
                if step.next == len(befores):
                    done[step.index] = True
                    yield step.index, step.befores
                    trail.pop()
                    continue
                before = befores[step.next]
                if before not in done:
                    trail.append(_Step(before))
                    continue
                if done[before]:
                    step.befores.append(before)
                else:
                    self._note_circle(trail, before, self.places[step.index][step.next])
                step.next += 1

    def _note_circle(self, trail: list["_Step"], before: int, at: Place) -> None:
        shown = [step.index for step in trail[-10:]]
        start = shown.index(before) if before in shown else 0
        names = " → ".join(self.directory.cases[index].name for index in (before, *shown[start + 1 :], before))
        self.notes.error("before-cycle", f"this case comes before itself: {names}", at, "remove one of the befores")


@dataclass(slots=True)
class _Step:
    """A case on the trail of befores that are being followed."""

    index: int
    next: int = 0
    befores: list[int] = field(default_factory=list)
    """The befores that don't lead back to the case."""
