"""Tells whether an expectation says that something is not there, so that no quotation can show it.

A wrong no costs the judge a quotation. A wrong yes lets a judge pass an agent without one. So the words of absence
count only where they stand for it: not in a quotation, not in "not only", not where two of them cancel each other out.
"""

import re

_ABSENCE = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|without|cannot|absent|absence|empty|silent|"
    r"(?:avoid|refrain|lack|omit|exclud)\w*|free (?:of|from)|"
    r"nicht|nichts|nie|niemals|kein\w*|ohne|weder|"
    r"ne|jamais|aucun\w*|sans|rien|ni|sin|nunca|nada|ningun\w*|ningún|senza|mai|nessun\w*|não|sem|nenhum\w*|"
    r"niet|geen|zonder|nooit|inte|utan|ingen|aldrig|без|не|нет|никогда)\b|n['’]t\b|"
    r"[不没沒无無未非]|ません|ない|なし|없|않|아니",
    re.IGNORECASE,
)
_QUOTED = r"\"[^\"]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|`[^`]*`|「[^「」]*」"
_NOT_ONLY = (
    r"\bnot (?:only|just|merely|simply|solely)\b|\bnicht (?:nur|bloß|allein)\b|\bnon seulement\b|"
    r"\bno (?:s[oó]lo|solamente|únicamente)\b|\bnon (?:solo|soltanto)\b|\bnão (?:só|apenas|somente)\b|"
    r"\bniet alleen\b|\binte bara\b|\bне только\b|不[仅僅但只光单單]|だけ(?:では|じゃ)(?:ない|なし)|뿐(?:만)? 아니"  # noqa: RUF001
)
_BOUND = r"\bnot? (?:less|fewer|more|later|earlier|sooner|longer) than\b|\bnot until\b"
_IDIOM = (
    r"\b(?:yes|ja|sí|oui|si)(?: or | oder | o | ou |/)(?:no|not|nein|non)\b|\bor not\b|\bno(?:\.|\s?#) ?(?=\d)|"
    r"\bno (?:doubt|matter|problem|exceptions?)\b|\bin no time\b|\bwithout (?:a )?(?:doubt|exceptions?|fail|delay)\b|"
    r"\bnever mind\b|\b(?:the|a|of|original|deadly) sins?\b|"
    r"非常|未来|未來|[无無][论論]|不管|不同|不[错錯]|不少|不断|不斷|不得不|不可或缺|必不可少|"
    r"な(?:ければ|くては|いと)(?:なら|なり|いけ)(?:ない|ません)|かもしれ(?:ない|ません)|少ない"
)
_LEFT_OUT = r"(?:omit|fail|forg[eo]t|miss|lack|skip|neglect|exclud|refus|ignor|overlook|leav\w+ out|drop)"
_TWICE = (
    rf"(?:\b(?:not|never|cannot|avoids?|avoiding)|n['’]t) (?:to )?(?:be )?{_LEFT_OUT}\w*|"
    r"(?:\b(?:not|never)|n['’]t) (?:be |left |an? )?(?:empty|blank|silent|absent|incomplete|missing|without)\b|"
    r"\b(?:nothing|none|nobody|no (?:\w+ )?\w+)(?: of (?:\w+ )?\w+)? (?:is|are|was|were|be|gets?|ha(?:s|ve) been) "
    rf"(?:left out|missing|lost|{_LEFT_OUT}\w*)\b|\bnicht (?:leer|ohne)\b|\bn[e'’] ?\w+ pas vide\b|不(?:为|是)?空|非空"
)
_NO_ABSENCE = re.compile("|".join((_QUOTED, _NOT_ONLY, _BOUND, _IDIOM, _TWICE)), re.IGNORECASE)


def expects_absence(expectation: str) -> bool:
    """True if an expectation says that something is not there."""
    return _ABSENCE.search(_NO_ABSENCE.sub(" ", " ".join(expectation.split()))) is not None
