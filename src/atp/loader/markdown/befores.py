"""Befores: which cases a case names, and the sequence that is replayed before it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from atp.loader.diagnostics import Diagnostics
from atp.loader.markdown.items import Entry
from atp.loader.markdown.names import links, plain, slug
from atp.suite.case import Case
from atp.suite.near import near_miss
from atp.suite.record import Place

LONGEST = 10_000
"""How many cases may be replayed before one."""
MOST = 5_000_000
"""How many in all the sequences of a file: a chain of cases makes as many as half its square."""


@dataclass(slots=True)
class Directory:
    """The cases of a file by all that they can be addressed with."""

    cases: list[Case]
    names: dict[str, list[int]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    anchors: dict[str, int] = field(default_factory=dict)

    def add(self, case: Case, heading: str, anchor: str) -> None:
        """Enter a case with its heading and the anchor that GitHub gives it."""
        for name in {_fold(case.name), _fold(heading)} - {""}:
            self.names.setdefault(name, []).append(case.index)
        self.ids[case.id] = case.index
        self.anchors.setdefault(anchor, case.index)

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

    def find_link(self, text: str, target: str) -> list[int]:
        """The case that a link leads to, else the one it names."""
        anchor = target.removeprefix("#")
        if target.startswith("#") and anchor in self.ids:
            return [self.ids[anchor]]
        if target.startswith("#") and anchor in self.anchors:
            return [self.anchors[anchor]]
        return self.find(text)


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


@dataclass(slots=True)
class Befores:
    """Resolves the befores of all cases."""

    directory: Directory
    notes: Diagnostics
    places: dict[int, list[Place]] = field(default_factory=dict)
    """By case, where each of its befores is written."""
    guesses: int = 50
    """How many unknown names are compared with all that are known; it takes time."""

    def resolve(self, case: Case, entries: list[Entry]) -> None:
        """Find the cases that entries name, in order."""
        for entry in entries:
            for word, found in self._candidates(entry.text):
                if len(found) == 1:
                    self._enter(case, found[0], entry.at)
                elif found:
                    message = f"several cases are called `{word}`: {', '.join(map(str, found))}"
                    self.notes.error("ambiguous-before", message, entry.at, "address it by its index or id")
                else:
                    self.notes.error("unknown-before", f"there is no case `{word}`", entry.at, self._hint(word))

    def _candidates(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """The names in an entry: links, or one name, or several with commas between them."""
        if linked := links(text):
            for name, target in linked:
                yield name or target, self.directory.find_link(name, target)
            return
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
        if word.isdecimal():
            return f"cases are numbered from 0 to {len(cases) - 1}"
        if self.guesses > 0:
            self.guesses -= 1
            known = {_fold(case.name).replace(" ", "_").replace("-", "_"): case.name for case in cases[:1000]}
            folded = _fold(plain(word)).replace(" ", "_")
            meant = near_miss(folded, known) or next((one for one in known if folded in one or one in folded), None)
            if meant:
                return f"did you mean `{known[meant]}`?"
        return f"the cases are: {', '.join(case.name for case in cases[:10])}"

    def expand(self) -> None:
        """Write down the whole sequence that is replayed before each case."""
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
                cases[index].before_sequence = [
                    step for before in befores for step in (*cases[before].before_sequence, before)
                ]

    def _in_order(self) -> Iterator[tuple[int, list[int]]]:
        """The cases, each after its befores; a circle is broken where it closes, and said so."""
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
    """How far the befores of a case are followed."""

    index: int
    next: int = 0
    befores: list[int] = field(default_factory=list)
    """Those that don't lead back to it."""
