"""The building blocks of sentences with an exact meaning, and what a sentence has in their places."""

import re

from atp.checks.expectations.names import BOUND, NUMBER, TIMES, Often, bare_tool, file_of, often, plain_tool, tool_of
from atp.checks.expectations.words import Piece, Sentence

_NOT = "(?:not|never)"
_CALL = "call|invoke|use|execute"
_PAST = "called|invoked|used|executed"
_MAKE = "create|write|make|save|generate|produce"
_DONE = "created|written|made|saved|generated|produced"
_MADE = f"wrote|{_DONE}"

BLOCKS = {
    "subject": r"(?:(?:(?:the )?(?:agent|assistant|model|target|bot)|it) )?",
    "by": r"(?: by (?:the )?(?:agent|assistant|model|target|bot))?",
    "be": r"(?:is|are|was|were|gets?|got|(?:has|have|had) been|(?:should|must|will) (?:be|have been)"
    r"|(?:has|have|needs?) to be)",
    "not_be": rf"(?:(?:is|are|was|were) {_NOT}|(?:has|have|had) {_NOT} been"
    rf"|(?:should|must|will) {_NOT} (?:be|have been)|not|never)",
    "called": rf"(?P<verb>{_PAST})",
    "calls": rf"(?P<verb>calls|invokes|uses|executes|(?:has )?(?:{_PAST})"
    rf"|(?:should|must|will) (?:{_CALL}|have (?:{_PAST})))",
    "not_calls": rf"(?P<verb>(?:does|did|should|must|will) {_NOT} (?:{_CALL}|have (?:{_PAST}))|has {_NOT} (?:{_PAST})"
    rf"|never (?:calls|invokes|uses|executes|{_PAST}))",
    "made": rf"(?:{_DONE})",
    "makes": rf"(?:creates|writes|makes|saves|generates|produces|{_MADE}|has (?:{_DONE})"
    rf"|(?:should|must|will) (?:{_MAKE}|have (?:{_DONE})))",
    "not_makes": rf"(?:(?:does|did|should|must|will) {_NOT} (?:{_MAKE}|have (?:{_DONE}))|has {_NOT} (?:{_DONE})"
    rf"|never (?:creates|writes|makes|saves|generates|produces|{_MADE}))",
    "response": r"(?:the )?(?:agent's |assistant's |model's )?(?:final |last )?(?:response|output|answer|reply)",
    "contains": r"(?:contains|contained|includes|included|(?:should|must|will) (?:contain|include))",
    "not_contains": rf"(?:(?:does|did|should|must|will) {_NOT} (?:contain|include)|never (?:contains|includes))",
    "times": rf"(?P<times>(?:{BOUND} )?{TIMES})",
    "number": rf"(?P<number>(?:{BOUND} )?{NUMBER})",
    "tools": r"(?P<noun>tool|function)s?",
    "text": r"(?:the (?:exact )?(?:text|string|phrase|substring) )?<(?P<text>(?:quoted|code)\d+)>",
    "arguments": r"(?:(?:the )?(?:arguments?|parameters?|args|input) )?<(?P<arguments>(?:json|code)\d+)>",
}


def _tool(name: str) -> str:
    """The ways of naming a tool: after the word "tool", before it, alone. A plain word alone has no article."""
    noun = "(?:tool|function)"
    after = rf"(?:<(?P<{name}_1>\w+)>|(?P<{name}_2>[a-z]+))"
    before = rf"(?:<(?P<{name}_3>\w+)>|(?P<{name}_4>[a-z]+))"
    return (
        rf"(?:(?:the |a )?(?P<{name}_noun1>{noun}) (?P<{name}_named>named |called )?{after}"
        rf"|(?P<{name}_article>the )?{before} (?P<{name}_noun2>{noun})|(?:the )?<(?P<{name}_5>\w+)>"
        rf"|(?P<{name}_6>[a-z]+))"
    )


BLOCKS |= {
    "tool": _tool("tool"),
    "other": _tool("other"),
    "file": r"(?:(?:the |a )?file (?:named |called )?<(?P<file_1>\w+)>|(?:the )?<(?P<file_2>\w+)> file"
    r"|(?:the )?<(?P<file_3>\w+)>)",
    "list": r"(?P<list><\w+>(?:(?: ,)?(?: and| then)? <\w+>){1,9})",
}


class Form:
    """The template of a sentence with an exact meaning."""

    def __init__(self, template: str) -> None:
        """`{block}` in a template is one of `BLOCKS`; the rest is a regular expression."""
        self._template = template
        self._pattern: re.Pattern[str] | None = None

    def read(self, sentence: Sentence) -> "Match | None":
        """The parts of a sentence, if the whole sentence has this form."""
        if self._pattern is None:
            self._pattern = re.compile(re.sub(r"\{(\w+)\}", lambda block: BLOCKS[block[1]], self._template))
        match = self._pattern.fullmatch(sentence.words)
        return Match(match.groupdict(), sentence) if match else None


class Match:
    """What a sentence has in the places of a form."""

    def __init__(self, places: dict[str, str | None], sentence: Sentence) -> None:
        self._places = places
        self._sentence = sentence

    def has(self, place: str) -> bool:
        """Whether the sentence has something in a place."""
        return self._places.get(place) is not None

    def word(self, place: str) -> str:
        """The words in a place."""
        return self._places.get(place) or ""

    def piece(self, place: str) -> Piece | None:
        """The piece in a place."""
        mark = self._places.get(place)
        return self._sentence.pieces[int(re.sub(r"\D", "", mark))] if mark else None

    def pieces(self, place: str) -> list[Piece]:
        """All pieces in a place."""
        return [self._sentence.pieces[int(mark)] for mark in re.findall(r"(\d+)>", self.word(place))]

    def may_be_about_code(self, noun: str) -> bool:
        """Whether the verb may be about code, which uses and executes functions, too."""
        return noun != "tool" and re.search("use|execute", self.word("verb")) is not None

    def tool(self, place: str = "tool") -> str | None:
        """The tool that is named there: by a piece, or by a plain word that can only be a name."""
        if self.may_be_about_code(self.word(f"{place}_noun1") or self.word(f"{place}_noun2")):
            return None
        for number in "135":
            if piece := self.piece(f"{place}_{number}"):
                return tool_of(piece, called_tool=number == "1" or (number == "3" and "-" not in piece.text))
        if word := self.word(f"{place}_2") or self.word(f"{place}_4"):
            bare = self.has(f"{place}_4") and not self.has(f"{place}_article")
            return plain_tool(word, self._sentence, bare=bare)
        word = self.word(f"{place}_6")
        return bare_tool(word, self._sentence) if word else None

    def tools(self) -> list[str] | None:
        """The tools of a `list`; None if one of them is no tool."""
        found = [tool_of(piece, called_tool=False) for piece in self.pieces("list")]
        known = [tool for tool in found if tool is not None]
        return known if len(known) == len(found) else None

    def file(self) -> str | None:
        """The file that the sentence names."""
        for number in "123":
            if piece := self.piece(f"file_{number}"):
                return file_of(piece, called_file=number != "3")
        return None

    def text(self) -> str | None:
        """The quoted text; None if it is blank."""
        piece = self.piece("text")
        return piece.text if piece and piece.text.strip() else None

    def often(self, place: str) -> Often | None:
        """How often something happened; None if the words make no sense."""
        return often(self.word(place))
