"""Quotations: whether a judge's evidence really stands in what it was shown."""

import json
from collections.abc import Iterable

from atp.roles.fence import harmless

_MARKS = (('"', '"'), ("“", "”"), ("'", "'"), ("`", "`"), ("«", "»"), ("„", "“"))


class Shown:
    """Texts that may be quoted."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[str] = []
        for text in texts:
            plain = _normal(text)
            self._texts.append(plain)
            if (as_fenced := _normal(harmless(text))) != plain:
                self._texts.append(as_fenced)

    def has(self, quote: str) -> bool:
        """Whether the words stand in one of the texts, letter for letter; only blanks and line breaks are free."""
        return any(form in text for form in _forms(quote) for text in self._texts)


def _forms(quote: str) -> Iterable[str]:
    """A quotation, also without the marks put around it, and as it reads inside JSON, where some of the texts stand."""
    plain = _normal(quote)
    unmarked = [
        plain[1:-1].strip() for begin, end in _MARKS if len(plain) > 2 and plain[0] == begin and plain[-1] == end
    ]
    for form in (plain, *unmarked):
        if form:
            yield form
            yield json.dumps(form, ensure_ascii=False)[1:-1]
    if stripped := quote.strip():
        yield _normal(json.dumps(stripped, ensure_ascii=False)[1:-1])


def _normal(text: str) -> str:
    return " ".join(text.split())
