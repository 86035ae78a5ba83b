"""The spellings of a secret in texts: one regular expression for each form."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html.entities import codepoint2name

# A line of a text of several lines, such as a key in PEM, is a secret of its own from here on.
_LONG_LINE = 16
# Shorter values stay as they are written: Abcd is an ordinary word where abcd is a secret.
_ANY_CASE = 8
# Fewer characters of base64 are in many texts by chance.
_BASE64 = 8
_RUN = re.compile(r"[A-Za-z0-9]+")
_SPACE = (
    r"(?:\s|\\{1,8}(?:[nrtvf]|(?:u00|x)(?:20|0[9aAdD])|(?=\s))|%(?:25)?(?:20|0[9aAdD])|\+|&#(?:x0?[aAdD9]|x20|9|10|13|32);"
    r"|&nbsp;|<br ?/?>)+"
)
_QUOTES = {"'": r"'\\''|'\"'\"'|''|&apos;", '"': r'""'}


@dataclass(frozen=True, slots=True)
class SecretForm:
    """A form of a secret: `source` is its expression, `needle` a part of every text that has the form."""

    source: str
    needle: str
    any_case: bool
    length: int

    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def forms_of(value: str) -> tuple[SecretForm, ...]:
    """Return the forms of a secret, and of each long line of a text (not of the first and last of PEM)."""
    text = value.strip()
    if not text:
        return ()
    lines = [line.strip() for line in text.splitlines()] if len(text.splitlines()) > 1 else []
    parts = [line for line in lines if len(line) >= _LONG_LINE and not line.startswith("-----")]
    return (*_forms(text), *(_spelling(part) for part in parts))


def _forms(text: str) -> Iterator[SecretForm]:
    yield _spelling(text)
    data = text.encode("utf-8", "surrogatepass")
    digits = data.hex()
    yield SecretForm("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in digits), digits, True, len(digits))
    for offset in range(3):
        core, whole = _base64_core(data, offset)
        if len(core) >= _BASE64:
            padding = "" if whole else r"[A-Za-z0-9+/_-]?(?:=|%3[dD]){0,2}"
            yield SecretForm("".join(map(_base64_character, core)) + padding, _needle(core), False, len(core))


def _base64_core(data: bytes, offset: int) -> tuple[str, bool]:
    """Return the base64 of data after `offset` other bytes, without characters that hold bits of those."""
    bits = 8 * (offset + len(data))
    encoded = b64encode(bytes(offset) + data).decode()
    return encoded[-(-8 * offset // 6) : bits // 6], bits % 6 == 0


def _base64_character(character: str) -> str:
    return {"+": r"(?:[+-]|%2[bB])", "/": r"(?:\\?/|_|%2[fF])"}.get(character, character)


def _spelling(text: str) -> SecretForm:
    """Return the form of a text in which each character may be escaped."""
    any_case = len(text) >= _ANY_CASE
    pieces = [_SPACE if part.isspace() else _character(part, any_case=any_case) for part in re.findall(r"\s+|\S", text)]
    needle = _needle(text)
    return SecretForm("".join(pieces), needle.lower() if any_case else needle, any_case, len(text))


def _needle(text: str) -> str:
    """Return the longest run of characters that nothing escapes."""
    return max(_RUN.findall(text), key=len, default="")


def _character(c: str, *, any_case: bool) -> str:
    if c.isascii() and c.isalnum():
        return f"[{c.lower()}{c.upper()}]" if any_case and c.isalpha() else c
    variants = (
        [spelling for spelling in dict.fromkeys((c, c.lower(), c.upper())) if len(spelling) == 1] if any_case else [c]
    )
    return f"(?:{'|'.join(pattern for spelling in variants for pattern in _escapes(spelling) if pattern)})"


def _escapes(c: str) -> list[str]:
    code = ord(c)
    name = codepoint2name.get(code)
    return [
        _QUOTES.get(c, ""),
        r"\\{1,8}" if c == "\\" else "",
        rf"\\{{0,8}}{re.escape(c)}{{1,2}}" if c in "%$" else rf"\\{{0,8}}{re.escape(c)}",
        "".join(rf"%(?:25)?{_hex(byte)}" for byte in c.encode("utf-8", "surrogatepass")),
        "".join(rf"\\{{1,8}}x{_hex(byte)}" for byte in c.encode("utf-8", "surrogatepass")),
        "".join(rf"\\{{1,8}}u{_hex(unit >> 8)}{_hex(unit & 255)}" for unit in _utf16(c)),
        rf"\\{{1,8}}x{_hex(code)}" if code < 256 else "",  # noqa: PLR2004 - Latin-1
        r"\\{1,8}U" + "".join(_hex(byte) for byte in code.to_bytes(4)),
        rf"&#0*{code};",
        "&#[xX]0*" + "".join(f"[{d}{d.upper()}]" for d in f"{code:x}") + ";",
        f"&{name};" if name else "",
    ]


def _hex(byte: int) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{byte:02x}")


def _utf16(c: str) -> list[int]:
    data = c.encode("utf-16-be", "surrogatepass")
    return [data[i] << 8 | data[i + 1] for i in range(0, len(data), 2)]
