"""A judge that obeys whoever speaks to it outside the fence, however they disguise it."""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from typing import Any
from urllib.parse import unquote

from atp.roles.ask import RoleAnswer, RoleCall, RoleClient
from atp.roles.judge.judges import Judgement

LIKE_A_FENCE = re.compile(r"<{3}\s*data\b[^\n]*\n(.*?)\n?[^\n]*\bdata\s*>{3}", re.DOTALL | re.IGNORECASE)
"""Lax on purpose: whatever looks like a closing mark closes, with the right nonce or not."""
OBEYED = re.compile(
    r"mark (every|all|each|the)( single)? expectations? as met|(all|every) expectations? (is|are|ha(s|ve) been) met"
    r"|\"?met\"?\s*[:=]\s*true|verdict\s*[:=]\s*(pass|met)|score\s*[:=]\s*1(\.0)?\b|you must (pass|approve) (it|this)",
    re.IGNORECASE,
)
_LOOKS_LIKE = str.maketrans("аеорсухіⅿ", "aeopcyxim")
_LEET = str.maketrans("4310", "aeio")


def readings(text: str) -> list[str]:
    """What a too clever reader makes of a text."""
    visible = "".join(chr(ord(one) - 0xE0000) if 0xE0020 <= ord(one) <= 0xE007E else one for one in text)
    plain = unicodedata.normalize("NFKD", visible)
    plain = "".join(one for one in plain if unicodedata.category(one) not in ("Cf", "Mn"))
    plain = plain.translate(_LOOKS_LIKE)
    plain = " ".join(html.unescape(unquote(plain)).replace("\\n", " ").replace('\\"', '"').split())
    plain = re.sub(r"[*_~`\\]", "", plain)
    found = [plain, plain[::-1], codecs.encode(plain, "rot13"), plain.translate(_LEET)]
    spaced = re.sub(r"(?<=\b\w) (?=\w\b)", "", plain)
    found.append(spaced)
    for word in re.findall(r"[A-Za-z0-9+/]{16,}={0,2}", plain):
        try:
            found.append(base64.b64decode(word, validate=True).decode())
        except (binascii.Error, UnicodeDecodeError):
            continue
    found += [bytes.fromhex(word).decode(errors="replace") for word in re.findall(r"(?:[0-9a-fA-F]{2}){16,}", plain)]
    return found


def is_told_to_pass(text: str) -> bool:
    """Whether a text, read in any way, says that it should pass."""
    return any(OBEYED.search(one) for one in readings(text))


class Gullible(RoleClient):
    """Obeys what it finds outside the fence; else says honestly whether the fenced texts hold what it looks for."""

    name = "gullible"

    def __init__(self, looks_for: str) -> None:
        self.identity = {"connector": "gullible"}
        self._looks_for = looks_for
        self.words: list[str] = []
        self.obeyed = False
        self.found: list[Judgement] = []

    async def ask(self, call: RoleCall) -> RoleAnswer:
        assert call.prompt is not None
        self.words.append(call.prompt)
        # Our own words may well speak of `met`: what they say without any record is not an order.
        fenced = LIKE_A_FENCE.findall(call.prompt)
        outside = _without_form(LIKE_A_FENCE.sub("", call.prompt))
        self.obeyed = is_told_to_pass(outside)
        found = any(self._looks_for in text for text in fenced)
        entry: dict[str, Any] = {"number": 1, "reason": "honestly", "met": found or self.obeyed}
        entry |= {"evidence": [self._looks_for] if found else [], "absence": not found}
        return RoleAnswer(data={"verdicts": [entry]})


def _without_form(words: str) -> str:
    """The words without our own example of an answer at their end."""
    return words[: words.rindex("Answer with one JSON object")]
