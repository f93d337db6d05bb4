"""Tells whether an expectation says that something is not there, so that no quotation can show it.

A wrong no costs the judge a quotation. A wrong yes lets a judge pass an agent without one. So the words of absence
count only where they stand for it: not in a quotation, a name or a compound ("no-refund policy"), not in "not only",
not where two of them cancel each other out, not in what the agent has to say, explain or advise, and not in "nothing
but".
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
    r"\bnever mind\b|\b(?:the|a|of|original|deadly) sins?\b|\bfree of (?:charge|cost)\b|"
    r"\b(?:no|non|not|never|nothing)-\w+|\w+-(?:no|not|without)\b|"  # a no-refund policy
    r"(?<!^)(?<![.!?:] )(?-i:\b(?:No|Not|Never|None|Nothing|Nobody|Nowhere|Without))\b|"  # a title
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
_NOTHING_BUT = (
    r"\b(?:nothing|none|nobody|no one|nowhere)(?: \w+)? (?:but|except|save|other than|besides|apart from)\b|"
    r"\bno (?:\w+ )?\w+ (?:but|except)\b|\bnicht(?:s|s anderes)? (?:als|außer)\b|\brien (?:que|d['’]autre que)\b|"
    r"\bnada (?:más|mas|mais) que\b|\bniets (?:dan|behalve)\b|除了"
)
"""What it says of is there, too: "nothing but a refund happened"."""
_SAYS = (
    r"\b(?:say|said|explain|stat|tell|told|mention|inform|apologi|note|report|point|clarif|confirm|admit|acknowledg|warn|"
    r"answer|repl|respond|declar|claim|know|recogni|reali|conclud|find|found|convey|communicat|indicat|express|announc|"
    r"wr[io]t|remind|regret|understand)\w*"
)
_CLAUSE = r"[^,;.!?]*"
_NOT = r"(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|without|cannot)\b"
_SOME = rf"(?:(?!{_NOT})\w+ )"
_SAID = (
    rf"{_SAYS} {_SOME}{{0,4}}?(?:that|it|they|he|she|i|we|you|there)\b(?! and\b){_CLAUSE}|"
    rf"\b(?:that \w+|(?:what|who|whom|whose|which|where)(?: \w+){{0,2}}?)(?<!that)(?:n['’]t\b| {_NOT})|"
    rf"\b(?:why|how|because|since|although|though|unless|whether|(?<!^)(?:if|when))\b{_CLAUSE}|"
    rf"^(?:if|when)\b{_CLAUSE},|{_SAYS} {_SOME}{{0,3}}?the (?:lack|absence)\b|\bapologi[sz]\w* for not\b|"
    rf"\b(?:erklär|sag|schreib|informier|begründ|mit|hin)\w*,? (?:\w+ ){{0,3}}?dass\b{_CLAUSE}|"
    rf"\b(?:warum|weshalb|wieso|weil|pourquoi|parce que|puisque|por qué|porque|perché|omdat|waarom|varför|"
    rf"eftersom|почему|потому что)\b{_CLAUSE}|(?:为什么|為什麼|为何|因为|因為)[^，。；,;.]*"  # noqa: RUF001
)
"""What the agent has to say, or under which condition: somebody else's "not"."""
_ADVISES = (
    r"\b(?:say|said|tell|told|warn|inform|remind|ask|advis|advice|instruct|urg|recommend|suggest|caution|encourag|"
    r"request|beg|promis|agre|offer|counsel)\w*"
)
_NO_NOUN = r"(?=$|[,.;:!?)]| (?:to|and|or|but|then|at|in|for|as|by|with|when|if|once|first|again|\w+ly)\b)"
_SAYS_NO = (
    # An answer that is "no": "it says no", "the answer is no", "it reports not found".
    rf"(?:{_SAYS}|\b(?:return|giv|show|print)\w*)(?: (?:with|back|the|a|an|clear|firm|simple|plain|as|is|was))*? "
    r"(?:no|never|not (?:found|available|possible|allowed|supported|applicable|enough|sure|certain|yet|now|really))"
    rf"{_NO_NOUN}|"
    r"\b(?:answer|reply|response|verdict|result|decision|conclusion|output)s? (?:\w+ )?(?:is|was|be|are|were) (?:\w+ )?"
    rf"(?:no|not|none|never){_NO_NOUN}|"
    # Advice: "it tells the user not to pay", "tips on avoiding fraud", "which foods to avoid".
    rf"{_ADVISES} {_SOME}{{0,5}}?(?:not|never) to\b{_CLAUSE}|"
    rf"{_ADVISES} {_SOME}{{0,5}}?(?:against|to {_SOME}{{1,4}}?without)\b{_CLAUSE}|"
    r"(?<!has )(?<!have )(?<!had )(?<!needs )(?<!need )(?<!ought )(?<!tries )(?<!tried )(?<!try )"
    r"\b(?:to|on|for|about|of|by|how) (?:avoid|omit|exclud|refrain)\w*|"
    r"\b(?:the|any|all|which|what|its|their|every|each) (?:omitted|excluded|avoided|absent|silent|lacking) \w+|"
    r"\bthe empty \w+s\b|"
    r"\b(?:discuss|describ|notic|flag|highlight|address|emphasi)\w* (?:the |an? )?(?:lack|absence)\b|"
    r"\b(?:dice|dicen|responde|contesta|dit|répond|diz|zegt)\w* (?:que )?no(?=$|[,.;!?])"
)
"""The "not" is what the agent says, or what somebody else is not to do."""
_NO_ABSENCE = re.compile(
    "|".join((_QUOTED, _NOT_ONLY, _BOUND, _NOTHING_BUT, _IDIOM, _TWICE, _SAID, _SAYS_NO)), re.IGNORECASE
)


def expects_absence(expectation: str) -> bool:
    """True if an expectation says that something is not there."""
    return _ABSENCE.search(_NO_ABSENCE.sub(" ", " ".join(expectation.split()))) is not None
