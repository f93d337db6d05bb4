"""Variations of prompts without a model: other phrasings around a prompt, always the same ones for the same prompt.

Nothing inside a prompt is replaced, except the polite phrase that an order begins with ("could you …"), so its meaning
stays. The guard checks each variation. Text that doesn't look English has none: none are better than wrong ones, and
other punctuation or capitals make no variation.
"""

import random
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Literal

from atp.base.text import comparable
from atp.roles.generate.guard import Piece, all_pieces, changed

MOST_OF_A_PROMPT = 2000
"""Rewrites of one prompt that are considered; fewer of a long prompt, whose every check takes long."""
MOST_CHARACTERS = 1_000_000
"""The length of all rewrites of a prompt together."""
MOST_OF_A_CHAIN = 4000
"""Combinations of rewrites of one chain's prompts that are considered."""

Kind = Literal["order", "prohibition", "question", "statement", "fixed"]


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.split("|")]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ORDERS = _phrases("""
    please {} | {}, please | could you {}? | can you {}? | would you {}? | will you {}? | could you please {}? |
    would you please {}? | could you kindly {}? | kindly {} | I need you to {} | I want you to {} | I'd like you to {} |
    I'm asking you to {} | I have to ask you to {} | what I need is for you to {} | here is what I need: {} |
    my request: {} | your task: {} | your task is to {} | your job is to {} | the task is to {} | go ahead and {} |
    do me a favour and {} | a small favour: {} | be so kind as to {} | would you be so kind as to {}? |
    I'd appreciate it if you could {} | I would be grateful if you could {} | it would be great if you could {} |
    it would help me if you could {} | would it be possible for you to {}? | is it possible for you to {}? |
    may I ask you to {}? | could I get you to {}? | I was hoping you could {} | I was wondering if you could {} |
    do you think you could {}? | make sure to {} | you should {} | you need to {} | if you don't mind, {} |
    {}, thank you | {}, would you? | so, {} | okay, {} | I have a request. Please {} |
    there's something I need. Please {}
""")
_PROHIBITIONS = _phrases("""
    please {} | {}, please | be careful: {} | one rule: {} | this is important: {} | keep in mind: {} | take care: {} |
    note: {} | a reminder: {} | okay, {}
""")
_QUESTIONS = _phrases("""
    a question: {} | quick question: {} | I have a question: {} | my question is: {} | tell me: {} | so, {} | okay, {} |
    please tell me: {} | could you tell me: {} | can you help me with this: {} | I'd like to know: {} |
    I want to know: {} | I need to know: {} | I'm wondering: {} | I'm curious: {} | I'm trying to find out: {} |
    may I ask you something? {} | do you know this: {} | please answer this: {} | I need an answer to this: {}
""")
_STATEMENTS = _phrases("""
    well, {} | so, {} | okay, {} | right, {} | you see, {} | just so you know: {} | for your information: {} |
    let me say this: {} | what I mean is: {} | to be clear: {} | in short: {}
""")
_FRAMES = {"order": _ORDERS, "prohibition": _PROHIBITIONS, "question": _QUESTIONS, "statement": _STATEMENTS}
"""Phrasings around a prompt of each kind, which leave open what is asked for, when, and by whom."""
_OPENINGS = ("Hi. ", "Hello. ", "Hello there. ", "Hi there. ", "Hey. ", "Excuse me. ")
_CLOSINGS = ("Thanks.", "Thank you.", "Many thanks.", "Thanks a lot.", "Thank you very much.", "Thanks in advance.")
_GREETINGS = (
    ("hi", "hello", "hey", "hi there", "hello there", "greetings", "good day"),
    ("good morning", "morning", "good morning to you", "a very good morning", "hi, good morning"),
    ("good afternoon", "good afternoon to you", "a very good afternoon", "hi, good afternoon"),
    ("good evening", "good evening to you", "a very good evening", "hi, good evening"),
    ("thanks", "thank you", "thanks a lot", "many thanks", "thank you very much"),
    ("bye", "goodbye", "bye bye", "see you", "see you later", "bye for now"),
)
"""Prompts of a word or two that mean the same."""
_VERBS = _words("""
    add adjust analyse analyze answer apply archive arrange assign book bring build buy calculate call cancel change
    check choose clean close collect combine compare compile compose compute configure connect convert cool copy correct
    count create debug decide define delete deploy describe design determine display download draft draw drop edit
    enable estimate evaluate examine execute explain export extract fetch fill filter find fix follow format gather
    generate get give go group heat help identify implement import improve include increase insert inspect install
    introduce join keep let list load locate log look lower make measure merge monitor move name open order organise
    organize outline pay pick plan play post prepare print process produce provide publish put read recommend record
    reduce refactor remind remove rename repair repeat replace reply report research reserve reset resolve restart
    retrieve return review rewrite run save say schedule search select send set share show simplify solve sort split
    start stop store submit suggest summarise summarize switch take talk teach tell test think transfer translate try
    turn undo update upload use validate verify visit wait warm watch write
""")
"""Verbs that an order may begin with."""
_QUESTION_WORDS = _words("""
    what what's when where where's who who's whom whose which why how how's is isn't are aren't was wasn't were does
    doesn't did didn't can can't could couldn't would wouldn't will won't should shouldn't may might must shall has had
    am
""")
"""Words that a question begins with."""
_PRONOUNS = _words("i you we they he she it this that there")
_ENGLISH = _words("""
    about and any are because could do does every everything for from good have hello how i it it's just morning my
    need not of one our please should some than thank thanks that the their them then there these they thing things
    this those to today tomorrow what when where which who why with would yes yesterday you your
""")
"""Frequent English words."""
_NO_NAMES = (_VERBS | _QUESTION_WORDS | _ENGLISH | {"don't", "never"}) - {"i"}
"""Words that lose their capital inside a sentence."""
_FOREIGN = _words("""
    aber auf auch aus bitte das dem den der des die ein eine es für ich ist kann mit nicht oder sie sind und von wie wir
    zu au avec ce dans de du elle en est et il je la le les mais ne nous ou par pas pour que qui se sur te tu un une
    vous con como del el los las mi por su y che di gli lo nel non per sono da em não o os para uma um een het ik op
    van voor wat och att det inte jag med på som
""")
"""Frequent words of other languages that use the same letters."""
_POLITE = re.compile(
    r"(?:(?:could|can|would|will) you (?:please |kindly )?|please (?:could|can|would|will) you |"
    r"please |kindly |i(?:'d| would) like you to |i (?:need|want) you to )",
    re.IGNORECASE,
)
_SENTENCE_ENDS = ".!?…。\uff01\uff1f"
_NO_MARK_AFTER = frozenset({"address", "path", "file", "email", "variable", "command", "flag", "fence", "name"})
"""Pieces that would seem to include a full stop right behind them."""


def rule_chains(listed: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Variations of the listed chains, one of each in turn. They may repeat."""
    english = looks_english(" ".join(text for one in listed for text in one))
    sources = [_of_chain(one) for one in listed] if english else []
    while sources:
        for source in list(sources):
            chain = next(source, None)
            if chain is None:
                sources.remove(source)
            else:
                yield chain


def _of_chain(prompts: Sequence[str]) -> Iterator[list[str]]:
    """Each prompt in its next wording; after the last, in other combinations."""
    found = [list(islice(rewrites(one), _most(one))) or [one] for one in prompts]
    longest = max(map(len, found), default=1)
    if longest == 1 and all(one == [text] for one, text in zip(found, prompts, strict=True)):
        return
    seen: set[tuple[str, ...]] = set()
    for n in range(min(MOST_OF_A_CHAIN, longest * (1 if len(found) == 1 else 10))):
        shift = n // longest  # in each round, the wordings of one prompt meet other wordings of the next
        chain = [one[(n + shift * index) % len(one)] for index, one in enumerate(found)]
        if tuple(chain) not in seen:
            seen.add(tuple(chain))
            yield chain


def _most(prompt: str) -> int:
    return max(100, min(MOST_OF_A_PROMPT, MOST_CHARACTERS // max(len(prompt), 1)))


def rewrites(prompt: str) -> Iterator[str]:
    """Other wordings of an English prompt, each once, without the prompt itself."""
    seen = {comparable(prompt)}
    body = prompt.strip()
    kind = _kind(body)
    if kind == "fixed":
        return
    for text in _english(body, kind):
        key = comparable(text)
        if key not in seen and changed(prompt, text) is None:
            seen.add(key)
            yield text


def looks_english(text: str) -> bool:
    """True if the rules for English may be used."""
    letters = [char for char in text if char.isalpha()]
    if not letters or sum(char.isascii() for char in letters) < 0.97 * len(letters):
        return False
    words = _words_in(text)
    english = sum(word in _ENGLISH or word in _VERBS for word in words)
    return english > sum(word in _FOREIGN for word in words) and english >= 0.15 * len(words)


def _words_in(text: str) -> list[str]:
    return re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower().replace("’", "'"))


def _kind(body: str) -> Kind:
    """What kind of sentence a prompt begins with. A prompt that can't be rephrased is fixed."""
    pieces = all_pieces(body)
    if not re.search(r"[^\W\d_]", _outside(body, pieces)):
        return "fixed"  # nothing but code, numbers and the like
    if pieces and pieces[0].start == 0:
        return "fixed" if pieces[0].kind in ("command", "fence", "flag", "placeholder") else "statement"
    first, second, *_ = [*_words_in(body[:200]), "", ""]
    if first in ("don't", "never") or (first, second) == ("do", "not"):
        return "prohibition"
    core = _without_politeness(body)
    verb, object_, *_ = [*_words_in(core[:200]), "", ""]
    if (core is not body or not body.endswith("?")) and _is_order(verb, object_):
        return "order"
    return "question" if body.endswith("?") or first in _QUESTION_WORDS or second in _PRONOUNS else "statement"


def _is_order(verb: str, following: str) -> bool:
    if verb in ("do", "have"):  # "do you …" and "have they …" are questions, "do it" is not
        return following not in _PRONOUNS - {"it", "this", "that"}
    return verb in _VERBS


def _without_politeness(body: str) -> str:
    """An order without the polite phrase before it, and without the question mark that belongs to the phrase."""
    polite = _POLITE.match(body)
    if polite is None:
        return body
    rest = body[polite.end() :]
    return rest if "\n" in rest else rest.removesuffix("?")


def _outside(text: str, pieces: Sequence[Piece]) -> str:
    parts, at = [], 0
    for piece in pieces:
        parts.append(text[at : piece.start])
        at = piece.end
    return " ".join([*parts, text[at:]])


def _english(body: str, kind: Kind) -> Iterator[str]:
    """First the phrasings alone, then together with an opening, a closing or both."""
    greetings = _greetings(body)
    core = _without_politeness(body) if kind == "order" else body
    if kind == "question" and body[-1:].isalpha():
        core = f"{body}?"
    framed = greetings or [_framed(frame, core) for frame in _shuffled(_FRAMES[kind], body)]
    yield from framed
    if not greetings:
        yield from _greeted([core, *framed], _shuffled(_OPENINGS, body), _shuffled(_CLOSINGS, body))


def _greeted(texts: Sequence[str], openings: Sequence[str], closings: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"{openings[number % len(openings)]}{_capitalised(text)}"
        if "thank" not in text:
            yield _closed(text, closings[number % len(closings)])
            opened = f"{openings[(number + 1) % len(openings)]}{_capitalised(text)}"
            yield _closed(opened, closings[(number + 1) % len(closings)])


def _greetings(body: str) -> list[str]:
    """Other words for a prompt that is only a greeting."""
    bare = body.strip(" .!").lower()
    others = [one for group in _GREETINGS if bare in group for one in group if one != bare]
    mark = _end_marks(body)
    return [(_capitalised(one) if body[:1].isupper() else one) + mark for one in _shuffled(others, body)]


def _shuffled(items: Sequence[str], seed: str) -> list[str]:
    """The items in an order that depends on the prompt, so that not every case begins with the same phrasing."""
    shuffled = list(items)
    number = int.from_bytes(blake2b(seed.encode(errors="replace"), digest_size=8).digest())
    random.Random(number).shuffle(shuffled)  # noqa: S311  (an order, no secret)
    return shuffled


def _framed(frame: str, body: str) -> str:
    """A phrasing around the first sentence, beginning with a capital if that sentence does."""
    first, rest = _first_sentence(body)
    before, after = frame.split("{}")
    inner = _capitalised(first) if before.endswith((". ", "? ")) else _lowered(first) if before else first
    if "\n" in first or _takes_no_mark(first):
        if after not in ("", "?"):
            return body  # nothing can be put behind the sentence
    elif after:
        mark = _end_marks(first) or ("." if first[:1].isupper() else "")
        inner = inner.rstrip(".!?… ") + (after if after.endswith("?") else after + mark)
    text = before + inner
    return (text[:1].upper() + text[1:] if first[:1].isupper() else text) + rest


def _first_sentence(body: str) -> tuple[str, str]:
    protected = [(piece.start, piece.end) for piece in all_pieces(body)]
    for found in re.finditer(r"[.!?](?=\s+[A-Z\"'(])", body):
        if not any(start <= found.start() < end for start, end in protected):
            return body[: found.end()], body[found.end() :]
    return body, ""


def _lowered(body: str) -> str:
    """The text with a small first letter, if its first word is known not to be a name."""
    first = re.match(r"[A-Z][a-z']*\b", body)
    return body[0].lower() + body[1:] if first is not None and first[0].lower() in _NO_NAMES else body


def _capitalised(body: str) -> str:
    """The text with a capital first letter, unless it begins with a protected piece."""
    first = next(iter(all_pieces(body)), None)
    return body if first is not None and first.start == 0 else body[:1].upper() + body[1:]


def _closed(text: str, closing: str) -> str:
    if "\n" in text or _takes_no_mark(text):
        return f"{text}\n\n{closing}"
    return f"{text if _end_marks(text) else f'{text}.'} {closing}"


def _end_marks(text: str) -> str:
    found = re.search(rf"[{_SENTENCE_ENDS}]+$", text.rstrip())
    return found[0] if found else ""


def _takes_no_mark(text: str) -> bool:
    """True if a mark right behind the text would seem to belong to the piece that stands there."""
    end = len(text.rstrip())
    if not re.search(rf"[\w{_SENTENCE_ENDS})\]\"'`”’»」]$", text[:end]):
        return True
    pieces = all_pieces(text)
    return bool(pieces) and pieces[-1].end >= end and pieces[-1].kind in _NO_MARK_AFTER
