"""Variations of prompts without a model: safe rewrites by rule, always the same for the same prompt.

A request is put in other words around what it asks for; its verb may be replaced by another for the same. What the
guard protects is never touched. Text that doesn't look English gets only other punctuation: better few variations than
wrong ones.
"""

import random
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Literal

from atp.roles.generate import words
from atp.roles.generate.guard import Piece, all_pieces, changed, same_text

MOST_OF_A_PROMPT = 2000
"""Rewrites of one prompt that are looked at; fewer of a long one, whose every check takes long."""
MOST_CHARACTERS = 1_000_000
"""The length of all rewrites of a prompt together."""
MOST_OF_A_CHAIN = 4000
"""Combinations of rewrites of one chain's prompts that are looked at."""
_MARKS = ".!?…。\uff01\uff1f"
"""What a sentence ends with."""
Mood = Literal["order", "prohibition", "question", "statement", "fixed"]
_UNTOUCHED_BY_MARKS = frozenset({"address", "path", "file", "email", "variable", "command", "flag", "fence", "name"})
"""What a full stop right behind it would seem to belong to."""
_REQUEST_FRAME = re.compile(
    r"(?:(?:could|can|would|will) you (?:please |kindly )?|please (?:could|can|would|will) you |"
    r"please |kindly |i(?:'d| would) like you to |i (?:need|want) you to )",
    re.IGNORECASE,
)


def rule_chains(listed: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Variations of the listed chains, taking turns, the most different first. They may repeat."""
    english = looks_english(" ".join(text for one in listed for text in one))
    walks = [_of_chain(one, english) for one in listed]
    while walks:
        for walk in list(walks):
            made = next(walk, None)
            if made is None:
                walks.remove(walk)
            else:
                yield made


def _of_chain(prompts: Sequence[str], english: bool) -> Iterator[list[str]]:
    """Each prompt in its next wording; when they are through, in other combinations."""
    found = [list(islice(rewrites(one, english), _most(one))) or [one] for one in prompts]
    longest = max(map(len, found), default=1)
    if longest == 1 and all(one == [text] for one, text in zip(found, prompts, strict=True)):
        return
    seen: set[tuple[str, ...]] = set()
    for n in range(min(MOST_OF_A_CHAIN, longest * (1 if len(found) == 1 else 10))):
        shift = n // longest  # with each way through, the prompts meet others
        made = [one[(n + shift * place) % len(one)] for place, one in enumerate(found)]
        if tuple(made) not in seen:
            seen.add(tuple(made))
            yield made


def _most(prompt: str) -> int:
    return max(100, min(MOST_OF_A_PROMPT, MOST_CHARACTERS // max(len(prompt), 1)))


def rewrites(prompt: str, english: bool = True) -> Iterator[str]:
    """Other wordings of a prompt, each once, without the prompt itself."""
    seen = {same_text(prompt)}
    mood = _mood(prompt)
    if mood == "fixed":
        return
    for made in _english(prompt, mood) if english else _neutral(prompt):
        key = same_text(made)
        if key not in seen and changed(prompt, made) is None:
            seen.add(key)
            yield made


def looks_english(text: str) -> bool:
    """Whether rules for English may be used."""
    letters = [char for char in text if char.isalpha()]
    if not letters or sum(char.isascii() for char in letters) < 0.97 * len(letters):
        return False
    found = re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower().replace("’", "'"))
    ours = sum(word in words.COMMON or word in words.VERBS or word in words.OTHER_VERBS for word in found)
    theirs = sum(word in words.FOREIGN for word in found)
    return ours > theirs and ours >= 0.15 * len(found)


def _mood(prompt: str) -> Mood:
    """What kind of sentence a prompt is, as far as its beginning tells."""
    body = prompt.strip()
    protected = all_pieces(body)
    if not re.search(r"[^\W\d_]", _outside(body, protected)):
        return "fixed"  # nothing but code, numbers and the like
    if protected and protected[0].start == 0:
        return "fixed" if protected[0].kind in ("command", "fence", "flag", "placeholder") else "statement"
    first, second = ([*re.findall(r"[\w'’]+", body[:200].lower().replace("’", "'")), "", ""])[:2]
    if first in ("don't", "never") or (first, second) == ("do", "not"):
        return "prohibition"
    if _REQUEST_FRAME.match(body) and _is_order(_core(body)):
        return "order"
    if _is_order(body):
        return "order"
    return "question" if first in words.QUESTION_WORDS or body.endswith("?") else "statement"


def _is_order(body: str) -> bool:
    """A verb first, or something unknown that takes an object: `warm the ocean`, `frobnicate my files`."""
    first, second = ([*re.findall(r"[\w'’]+", body[:200].lower()), "", ""])[:2]
    if body.rstrip().endswith("?") and first in words.QUESTION_WORDS:
        return False
    if first in words.VERBS or first in words.OTHER_VERBS:
        return first not in words.QUESTION_WORDS or second in words.DETERMINERS - {"it"}
    known = (
        first in words.QUESTION_WORDS
        or first in words.NO_ORDERS
        or first.endswith(("ly", "ing", "s", "ed", "'m", "'d"))
    )
    return not known and first.isalpha() and second in words.DETERMINERS


def _core(body: str) -> str:
    """What a request asks for, without the phrasing around it."""
    frame = _REQUEST_FRAME.match(body)
    if frame is None:
        return body
    rest = body[frame.end() :]
    return rest.removesuffix("?") if "\n" not in rest else rest


def _outside(text: str, protected: Sequence[Piece]) -> str:
    parts, at = [], 0
    for piece in protected:
        parts.append(text[at : piece.start])
        at = piece.end
    return " ".join([*parts, text[at:]])


def _english(prompt: str, mood: Mood) -> Iterator[str]:
    """Wordings in the order they are wanted: first the phrasing alone, then together with other changes."""
    body = prompt.strip()
    if (swaps := _greetings(body)) is not None:
        yield from chain(swaps, _neutral(body))
        return
    frames = _shuffled(_frames(mood), prompt)
    core = _core(body) if mood == "order" else body
    cores = [core, *_other_verbs(core, mood), *_other_forms(core)]
    for number, frame in enumerate(frames):  # spread the verbs over the phrasings, so that neighbours differ
        yield _framed(frame, cores[number % len(cores)])
    yield from (_started(one) for one in cores)
    for one in cores:
        yield from (_framed(frame, one) for frame in frames)
    yield from _greeted(body, frames, cores)
    yield from _neutral(f"{body}?" if mood == "question" and body[-1:].isalpha() else body)


def _greeted(body: str, frames: Sequence[str], cores: Sequence[str]) -> Iterator[str]:
    """With a word before and one behind."""
    starts, ends = _shuffled(words.OPENINGS, body), _shuffled(words.CLOSINGS, body)
    polite = (_framed(frame, cores[0]) for frame in frames if "thank" not in frame)
    whole = [body, *cores, *polite]
    for number, text in enumerate(whole):
        yield f"{starts[number % len(starts)]}{_started(text)}"
        yield _closed(text, ends[number % len(ends)])
    for number, text in enumerate(whole):
        opened = f"{starts[(number + 1) % len(starts)]}{_started(text)}"
        yield _closed(opened, ends[(number + 1) % len(ends)])


def _frames(mood: Mood) -> Sequence[str]:
    match mood:
        case "order":
            return words.REQUESTS
        case "prohibition":
            return words.PROHIBITIONS
        case "question":
            return words.QUESTIONS
        case _:
            return words.STATEMENTS


def _shuffled(items: Sequence[str], seed: str) -> list[str]:
    """In an order that depends on the prompt, so that not every case begins with the same phrasing."""
    made = list(items)
    number = int.from_bytes(blake2b(seed.encode(errors="replace"), digest_size=8).digest())
    random.Random(number).shuffle(made)  # noqa: S311  (an order, no secret)
    return made


def _framed(frame: str, body: str) -> str:
    """A phrasing around the first sentence, beginning with a capital if that does."""
    first, rest = _first_sentence(body)
    before, after = frame.split("{}")
    new_sentence = before.endswith((". ", "? "))
    inner = _started(first) if new_sentence else _lowered(first) if before else first
    if "\n" in first or _ends_touchy(first):
        if after not in ("", "?"):
            return body  # nothing can be put behind it
    elif after:
        mark = _last_mark(first) or ("." if first[:1].isupper() else "")
        inner = inner.rstrip(".!?… ") + (after if after.endswith("?") else after + mark)
    made = before + inner
    return (made[:1].upper() + made[1:] if first[:1].isupper() else made) + rest


def _first_sentence(body: str) -> tuple[str, str]:
    protected = [(piece.start, piece.end) for piece in all_pieces(body)]
    for found in re.finditer(r"[.!?](?=\s+[A-Z\"'(])", body):
        if not any(start <= found.start() < end for start, end in protected):
            return body[: found.end()], body[found.end() :]
    return body, ""


def _lowered(body: str) -> str:
    """For the middle of a sentence. Only words that are no names: we don't know the others."""
    first = re.match(r"[A-Z][a-z']*\b", body)
    known = first is not None and (
        (word := first[0].lower()) in words.VERBS
        or word in words.OTHER_VERBS
        or word in words.QUESTION_WORDS
        or (word in words.COMMON and not word.startswith(("i'", "i ")) and word != "i")
    )
    return body[0].lower() + body[1:] if known else body


def _started(body: str) -> str:
    """As a sentence of its own; what is protected keeps its case."""
    first = next(iter(all_pieces(body)), None)
    return body if first is not None and first.start == 0 else body[:1].upper() + body[1:]


def _closed(text: str, closing: str) -> str:
    if "\n" in text or _ends_touchy(text):
        return f"{text}\n\n{closing}"
    return f"{text if _last_mark(text) else f'{text}.'} {closing}"


def _last_mark(text: str) -> str:
    found = re.search(rf"[{_MARKS}]+$", text.rstrip())
    return found[0] if found else ""


def _ends_touchy(text: str) -> bool:
    """Whether nothing can be put right behind the text: it would seem to belong to what stands there."""
    end = len(text.rstrip())
    if not re.search(rf"[\w{_MARKS})\]\"'`”’»」]$", text[:end]):
        return True
    protected = all_pieces(text)
    return bool(protected) and protected[-1].end >= end and protected[-1].kind in _UNTOUCHED_BY_MARKS


def _other_verbs(core: str, mood: Mood) -> list[str]:
    found = re.match(r"([A-Za-z]+)(?=\s)(?!\s+(?:up|down|out|off|over|in|on|at|for|to|me|us|with|about|from)\b)", core)
    if mood != "order" or found is None:
        return []
    others = words.VERBS.get(found[0].lower(), ())
    made = [one[:1].upper() + one[1:] if found[0][:1].isupper() else one for one in others]
    return [f"{one}{core[found.end() :]}" for one in made]


def _other_forms(core: str) -> list[str]:
    """Short forms written out and the reverse, one at a time, outside of what is protected."""
    protected = [(piece.start, piece.end) for piece in all_pieces(core)]
    made = []
    for long, short in words.CONTRACTIONS.items():
        for old, new in ((long, short), (short, long)):
            found = re.search(rf"\b{re.escape(old)}\b(?!')", core, re.IGNORECASE)
            if (
                found is None
                or not found[0][:1].isalpha()
                or any(a < found.end() and found.start() < b for a, b in protected)
            ):
                continue
            if found.end() >= len(core.rstrip(".!? ")) and new == short:
                continue  # `I don't know what it's` is no English
            if old == short and short in ("it's", "I'd", "that's", "what's", "where's", "who's", "there's"):
                continue  # `it has`, `I had`: only its reader knows
            same_case = new[0].upper() + new[1:] if found[0][0].isupper() else new
            made.append(core[: found.start()] + same_case + core[found.end() :])
    return made


def _greetings(body: str) -> list[str] | None:
    """Other words for a greeting that stands alone."""
    bare = body.strip(" .!").lower()
    first = words.SAME_GREETING.get(bare, bare)
    if first not in words.GREETINGS:
        return None
    others = [one for one in (first, *words.GREETINGS[first]) if one != bare]
    capital, mark = body[:1].isupper(), _last_mark(body)
    return [(one[:1].upper() + one[1:] if capital else one) + mark for one in _shuffled(others, body)]


def _neutral(prompt: str) -> Iterator[str]:
    """Other punctuation and capitals, which any language bears."""
    body = prompt.strip()
    if "\n" in body or _ends_touchy(body):
        yield _started(body)
        return
    mark = _last_mark(body)
    bare = body.removesuffix(mark)
    stop, wide = ("。", "\uff01") if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]$", bare) else (".", "!")
    if "?" in mark or "\uff1f" in mark:
        yield _started(body)
        yield bare
        yield _started(bare)
        return
    for text in (bare, _started(bare)):
        yield text
        yield f"{text}{stop}"
        yield f"{text}{wide}"
