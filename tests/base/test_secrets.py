"""Masking: every form of a secret is found, nothing else is changed, and hostile texts take no longer than others."""

import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from functools import partial
from typing import Any, Literal
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import quoteattr

import msgspec
import pytest

from atp.base.secrets import Secrets, current_secrets, every_secret, fixed_fields, hider, masking
from atp.suite.result import TrialResult, Turn

PEM = (
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg+kqhki/G9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n"
)
CANARIES = [
    "sk-CANARYplain0001",
    's3cr"CANARY\\q1/=+',
    'it\'s a "CANARY" & <more>',
    "pä$$wörd CANARY 😀",
    "\tCANARY\x07bell\x1bescape",
    PEM,
    "!§$%&/()=?",
    "blanks\u00a0CANARY\u2028beyond \x85ASCII",
]


def to_base64(text: str, before: int = 0, after: str = "", signs: bytes = b"+/") -> str:
    return base64.b64encode(f"{'u' * before}{text}{after}".encode(), signs).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": text})),
    "repr": repr,
    "repr beside a quote": lambda text: repr(f"it's {text}"),
    "repr beside both quotes": lambda text: repr(f"'\"{text}"),
    "repr of bytes": lambda text: repr(text.encode()),
    "repr of repr": lambda text: repr(repr(text)),
    "URL": quote,
    "URL, all of it": lambda text: quote(text, safe=""),
    "a form": quote_plus,
    "HTML": html.escape,
    "one line": lambda text: " ".join(text.split()),
    **{f"base64 after {n}": partial(to_base64, before=n) for n in range(3)},
    **{f"base64 between {n} and more": partial(to_base64, before=n, after=":v") for n in range(3)},
    **{f"base64 for URLs after {n}": partial(to_base64, before=n, signs=b"-_") for n in range(3)},
    "base64, escaped in a URL": lambda text: quote(to_base64(text), safe=""),
    "Basic": lambda text: "Basic " + to_base64(f"user:{text}"),
    "base64 of JSON": lambda text: to_base64(json.dumps(text)),
    "base64 of a URL": lambda text: to_base64(quote(text, safe="")),
    "base64 in lines": lambda text: base64.encodebytes(f"{'u' * 40}{text}".encode()).decode(),
    "URL of JSON": lambda text: quote(json.dumps({"a": text}), safe=""),
    "URL of a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps({"a": text}))),
    "HTML of JSON": lambda text: html.escape(json.dumps(text)),
    "HTML of HTML": lambda text: html.escape(html.escape(text)),
    "URL of HTML": lambda text: quote(html.escape(text), safe=""),
    "CSV": lambda text: text.replace('"', '""'),
    "a shell": shlex.quote,
    "hex": lambda text: text.encode().hex(),
    "hex, upper case": lambda text: text.encode().hex().upper(),
    "\\u, all of it": lambda text: "".join(f"\\u{ord(one):04x}" if ord(one) < 0x10000 else one for one in text),
    "\\U, all of it": lambda text: "".join(f"\\u{ord(one):04X}" if ord(one) < 0x10000 else one for one in text),
    "\\x, all of it": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "%, all of it": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML, all of it": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "wrapped": lambda text: "\n".join(text[begin : begin + 7] for begin in range(0, len(text), 7)),
}


NESTED_FORMS: dict[str, Callable[[str], str]] = {
    "an attribute of XML": lambda text: quoteattr(text, {"\n": "&#10;", "\t": "&#9;", " ": "&#x20;"})[1:-1],
    "a form of a form": lambda text: quote_plus(quote_plus(text)),
    "URL of repr of bytes": lambda text: quote(repr(text.encode()), safe=""),
    "URL of \\u": lambda text: quote(FORMS["\\u, all of it"](text), safe=""),
    "URL of HTML, all of it": lambda text: quote(FORMS["HTML, all of it"](text), safe=""),
    "HTML of HTML, all of it": lambda text: html.escape(FORMS["HTML, all of it"](text)),
    "every second as %": lambda text: "".join(f"%{ord(c):02x}" if c.isalnum() and c.isascii() else c for c in text),
    "base64 without what is around": lambda text: to_base64(text.strip()),
}
"""Forms that libraries write inside each other; the canaries are told in `FORMS`."""


@pytest.mark.parametrize("form", [*FORMS, *NESTED_FORMS])
@pytest.mark.parametrize("secret", CANARIES, ids=range(len(CANARIES)))
def test_every_form_is_masked(secret: str, form: str) -> None:
    written = (FORMS | NESTED_FORMS)[form](secret)
    shown = Secrets([secret]).mask_text(f"see {written} there")
    assert shown.startswith("see ")
    assert shown.endswith(" there")
    assert "***" in shown
    # What is left around the mask belongs to what is around the secret.
    around = r"\*\*\*|see | there|it's|Basic|\{|\}|a\\?|u005c|\\|[\"':bnt\n ]"
    around += r"|%(?:7B|7D|5C|22|3A|20|27)|&(?:amp;)*(?:quot|#x27);|(?:dXV1){5,}|Cg==|%26%23(?:9|10)%3B"
    rest = re.sub(around, "", shown)
    assert len(rest) <= 8, shown


@pytest.mark.parametrize("size", range(1, 19))
def test_a_part_of_a_secret_is_masked_where_a_text_was_cut(size: int) -> None:
    """As in a journal of a time when the value was not yet known to be secret."""
    secret = "sk-CANARYplain0001"
    begin, end = secret[:size], secret[-size:]
    text = f"see {begin}… and {begin}, {end} or …{end}"
    masked = Secrets([secret, "sk-CANother"]).mask_text(text)
    if size == len(secret):
        assert masked == "see ***… and ***, *** or …***"
    elif size >= 8:
        assert masked == f"see ***… and {begin}, {end} or …***"
    else:
        assert masked == text
    assert len(Secrets([secret]).blot_out(text)) == len(text)


LAYERS: dict[str, Callable[[str], str]] = {
    "JSON": lambda text: json.dumps(text)[1:-1],
    "URL": lambda text: quote(text, safe=""),
    "HTML": html.escape,
    "\\u": lambda text: re.sub("(....)", r"\\u\1", text.encode("utf-16-be").hex()),
    "\\x": FORMS["\\x, all of it"],
    "%": FORMS["%, all of it"],
    "&#": FORMS["HTML, all of it"],
    "&#x": lambda text: "".join(f"&#x{ord(one):X};" for one in text),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "\\u{}": lambda text: "".join(f"\\u{{{ord(one):x}}}" for one in text),
    "every third as %": lambda text: "".join(
        f"%{ord(one):02x}" if place % 3 == 0 and one.isascii() else one for place, one in enumerate(text)
    ),
}
"""Ways to escape a whole text, most of them each of its characters."""


@pytest.mark.parametrize("secret", CANARIES, ids=range(len(CANARIES)))
@pytest.mark.parametrize("outer", LAYERS)
def test_a_secret_is_masked_that_was_escaped_as_a_whole_and_then_again(secret: str, outer: str) -> None:
    secrets = Secrets([secret])
    for inner, escape in LAYERS.items():
        written = f"see {LAYERS[outer](escape(secret.strip()))} there"
        shown = secrets.mask_text(written)
        assert "***" in shown, (inner, written)
        assert len(shown) <= len("see *** there") + 4, (inner, shown)
        assert len(secrets.blot_out(written)) == len(written)
        ((begin, end),) = secrets.spans(written)
        assert (begin, len(written) - end) <= (8, 10)


@pytest.mark.parametrize("innermost", LAYERS)
def test_three_layers(innermost: str) -> None:
    secret = "sk-CANARYplain0001"
    secrets = Secrets([secret])
    for outer in LAYERS.values():
        for middle in LAYERS.values():
            shown = secrets.mask_text(f"see {outer(middle(LAYERS[innermost](secret)))} there")
            assert shown == "see *** there"


@pytest.mark.parametrize("secret", CANARIES, ids=range(len(CANARIES)))
@pytest.mark.parametrize("text", ["", "Nothing to see here.", "sk-CANARX", "KYRANAC", "*** %20 \\ \" '", "Q0FOQVJZ"])
def test_other_text_stays(secret: str, text: str) -> None:
    assert Secrets([secret]).mask_text(text) == text


@pytest.mark.parametrize("secret", ["a1%5cb2%c3", 'x1y2"\t\\z3', "p4\\\tq5r6", "s7\\t8\\\\u9v0"])
@pytest.mark.parametrize("form", ["as it is", "JSON", "repr", "%, all of it", "\\u, all of it"])
def test_a_secret_with_what_looks_escaped_or_ends_in_escapes(secret: str, form: str) -> None:
    shown = Secrets([secret]).mask_text(f"see {FORMS[form](secret)} there")
    assert "***" in shown
    assert len(shown) <= len("see '***' there")


@pytest.mark.parametrize(
    ("secret", "text"),
    [("0x12345678", '{"pin": 305419896}'), ("+1234567", "1234567"), ("1234567.50", "1234567.5"), ("1e7", "10000000")],
)
def test_a_secret_number_is_masked_as_json_writes_it(secret: str, text: str) -> None:
    assert "***" in Secrets([secret]).mask_text(text)
    assert Secrets([secret]).may_be_in(text.encode())


class _Words(msgspec.Struct):
    plain: str
    word: Literal["passed"]
    perhaps: Literal["passed"] | None = None
    left_out: Literal["passed"] | msgspec.UnsetType = msgspec.UNSET
    either: str | None = None
    words: list[Literal["passed"]] = []


def test_fields_with_words_of_atp_are_found_by_their_types() -> None:
    assert fixed_fields(_Words) == {"word", "perhaps", "left_out"}


def test_secrets_of_a_run_that_goes_on_are_among_those_of_the_process() -> None:
    with masking(Secrets(["goes-on-secret"])):
        assert every_secret().mask_text("goes-on-secret") == "***"
    assert every_secret().mask_text("goes-on-secret") == "***"


def test_lines_of_a_secret_are_masked_where_they_stand_alone() -> None:
    shown = [Secrets([PEM]).mask_text(line) for line in PEM.splitlines()]
    assert shown == ["-----BEGIN PRIVATE KEY-----", "***", "***", "-----END PRIVATE KEY-----"]


class _Record(msgspec.Struct, kw_only=True):
    secret: str
    parts: list["_Record"] = []
    left: Any = msgspec.UNSET


def test_every_field_of_a_record_is_masked_and_its_keys_stay() -> None:
    record = _Record(secret="a secret", parts=[_Record(secret="secret", left={"secret": 1})])
    assert Secrets(["secret"]).mask(record, numbers=False) == _Record(
        secret="a ***", parts=[_Record(secret="***", left={"***": 1})]
    )


def test_keys_lists_and_numbers() -> None:
    secrets = ["first-secret", "123456789"]
    value = {"first-secret": ["x first-secret y", 123456789, True, None], "n": 123456789.0}
    assert Secrets(secrets).mask(value, numbers=True) == {"***": ["x *** y", "***", True, None], "n": "***"}
    assert hider(secrets)(value) == {"***": ["x *** y", 123456789, True, None], "n": 123456789.0}


def test_words_of_atp_and_measured_figures_stay_in_records() -> None:
    trial = TrialResult(agent="passed", case="c", key="passed", index=0, status="passed", duration_ms=123456.0)
    trial.transcript.turns.append(Turn(turn=1, input="", output={"pin": 123456}, duration_ms=123456.0))
    shown = Secrets(["passed", "123456"]).mask(trial, numbers=False)
    assert (shown.agent, shown.status, shown.duration_ms) == ("***", "passed", 123456.0)
    assert (shown.transcript.output, shown.transcript.turns[0].duration_ms) == ({"pin": "***"}, 123456.0)


@pytest.mark.parametrize("secret", ["3f2b8c1e-9a4d-4e6f-8b7a-1c2d3e4f5a6b", "ABCDEF0123456789"])
def test_the_case_of_hexadecimal_digits_does_not_matter(secret: str) -> None:
    assert Secrets([secret]).mask_text(f"{secret.upper()} {secret.lower()}") == "*** ***"


def test_a_key_that_is_written_with_backslashes_is_masked_where_it_has_line_breaks() -> None:
    lines = PEM.splitlines()
    assert Secrets([PEM.replace("\n", "\\n")]).mask_text(f"see {PEM}") in ("see ***", "see ***\n")
    assert Secrets([PEM.replace("\n", "\\n")]).mask_text(lines[1]) == "***"


def test_the_longest_secret_is_masked_first() -> None:
    assert Secrets(["abcdef", "abcdefgh"]).mask_text("abcdefgh abcdef") == "*** ***"


def test_secrets_that_are_found_later_are_masked_from_then_on() -> None:
    secrets = Secrets()
    hide = hider(secrets)
    assert hide("late-secret") == "late-secret"
    secrets.add(["late-secret"])
    assert hide("late-secret") == "***"


def test_current_secrets_are_those_of_the_innermost_run() -> None:
    outer, inner = Secrets(["outer-secret"]), Secrets(["inner-secret"])
    with masking(outer):
        with masking(inner):
            assert current_secrets() is inner
        assert current_secrets() is outer
    assert list(current_secrets()) == []


@pytest.mark.parametrize(
    "fill",
    [
        "\\",
        '\\"',
        "+",
        " ",
        "a",
        "\n",
        "/",
        '"',
        "%",
        "ab",
        "%5c",
        "&amp;",
        "\\n",
        "%41",
        "\\u0041",
        "a\n",
        "\\u005c",
        "%2541",
        "\\141",
    ],
)
@pytest.mark.parametrize("secret", ['"\\"abcdef', "\\abcdef", "a b c def", '""""""', "+/+/+/+/", "ab\nab\nab\nabcdef"])
def test_hostile_texts_are_searched_in_linear_time(secret: str, fill: str) -> None:
    """A quadratic search of this text would not end before the test's own time limit."""
    text = f"abcdef {(fill * 200_000)[:200_000]} abcdef"
    assert len(Secrets([secret]).mask_text(text)) <= len(text)


@pytest.mark.parametrize("size", range(1, 12))
def test_a_secret_that_is_split_over_pieces_is_blotted_out(size: int) -> None:
    text = "see first-secret there"
    pieces = [text[begin : begin + size] for begin in range(0, len(text), size)]
    blotted = Secrets(["first-secret"]).blot_out_pieces(pieces)
    assert "".join(blotted) == "see ************ there"
    assert list(map(len, blotted)) == list(map(len, pieces))
