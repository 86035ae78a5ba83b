"""Which values are secret, and the one scrubber that keeps them out of texts.

Secrets are the environment variables named ENGINE_SECRET_*, and values in a target's settings (`register_secret`).
A secret is recognized in the spellings of JSON, YAML, HTML, URLs, shells, SQL, Python and properties files, in any
letter case, and inside base64 and hexadecimal text.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from html.entities import codepoint2name
from typing import Any

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
    return (*_text_forms(text), *(_spelling(part) for part in parts))


def _text_forms(text: str) -> Iterator[SecretForm]:
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


PREFIX = "ENGINE_SECRET_"
MASK = "*****"
# Shorter values would mask ordinary words and numbers everywhere (and an empty one everything).
MIN_LENGTH = 4
# Of values that nobody named a secret: a password of a development database is often an ordinary word.
MIN_LENGTH_OTHERS = 8

# By segments of a variable's name: DB_PASSWORD, GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY; not TOKENIZER, PARTITION_KEY, PWD.
_CREDENTIAL = re.compile(
    r"(?:^|_)(?:PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|SECRETS?|TOKENS?|CREDENTIALS?|CREDS|APIKEYS?|JAAS)(?:_|$)"
    r"|(?:PASSWORD|PASSWD|SECRET|TOKEN)$|_(?:PASS|PWD|PAT|SAS|DSN)$|CONNECTION_STRING$",
    re.IGNORECASE,
)
_KEY = re.compile(r"(?:^|_)KEYS?$", re.IGNORECASE)
# A key of columns or of a data structure opens nothing.
_HARMLESS_KEY = re.compile(
    r"(?:^|_)(?:PARTITION|SORT|PRIMARY|UNIQUE|FOREIGN|CLUSTER(?:ING)?|SURROGATE|NATURAL|BUSINESS|MERGE|DEDUP|JOIN|ROW|ORDER"
    r"|GROUP|INDEX|LOOKUP|HASH|COMPOSITE|PUBLIC)_KEYS?$",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"secret|passw|passphrase|passcode|pwd|token|credential|jaas|authorization|(?:api|access|account|private|keystore)[._-]?key|^key$"
    r"|[._-]sas\b",
    re.IGNORECASE,
)
# What such a key says of the secret: where it is, who gives it, how long it holds.
_SETTING_ABOUT_SECRET = re.compile(
    r"(provider|file|path|location|class|enabled|ur[li]|type|mechanism|interval|timeout|algorithm|regex|name|id"
    r"|expir\w{0,20}|refresh\w{0,20})$",
    re.IGNORECASE,
)
# Values that are credentials by their own form: keys in PEM, addresses with a password, tokens of well-known services.
_CREDENTIAL_VALUE = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----|://[^\s/@:]{0,200}:[^\s/@]{1,200}@|\bgh[pousr]_\w{20}|\bgithub_pat_\w{20}"
    r"|\bglpat-[\w-]{15}|\bxox[abprs]-[\w-]{10}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\beyJ[\w-]{10,4000}\.eyJ"
)
# The password of an address; everything up to the @ where it holds further colons.
_IN_ADDRESS = re.compile(r"(://[^\s/@:'\"<>]{0,200}:)[^\s/@'\"<>]{1,200}(?=@)")

_registered: frozenset[str] = frozenset()


def names_credential(name: str) -> bool:
    """Return whether the name of an environment variable is that of a credential: GITHUB_TOKEN, DB_PASSWORD."""
    if name.startswith(PREFIX) or _CREDENTIAL.search(name):
        return True
    return bool(_KEY.search(name)) and not _HARMLESS_KEY.search(name)


def is_credential(value: str) -> bool:
    """Return whether a value is a credential by its form: a private key, an address with a password, a token."""
    return bool(_CREDENTIAL_VALUE.search(value))


def names_secret_setting(key: str) -> bool:
    """Return whether a key of a target's settings holds a secret: password, fs.s3a.secret.key."""
    return bool(_SETTING.search(key)) and not _SETTING_ABOUT_SECRET.search(key)


def register_secret(value: str, least: int = MIN_LENGTH_OTHERS) -> None:
    """Mask a value of at least `least` characters from now on in all texts that leave this process."""
    global _registered  # noqa: PLW0603 - known to the process, like its environment
    if len(value.strip()) >= least and value not in _registered:
        _registered |= {value}


def register_settings(settings: Any, key: str = "") -> None:
    """Register the secrets in settings: values under keys that name secrets, and passwords in addresses."""
    if isinstance(settings, Mapping):
        for inner, value in settings.items():
            register_settings(value, str(inner))
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            register_settings(value, key)
    elif isinstance(settings, str):
        if names_secret_setting(key):
            register_secret(settings)
        for match in re.finditer(r"://[^\s/@:]{0,200}:([^\s/@]{1,200})@", settings):
            register_secret(match[1])


def without_secrets(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a process that needs no secret: without `ENGINE_SECRET_*`."""
    environment = os.environ if env is None else env
    return {name: value for name, value in environment.items() if not name.startswith(PREFIX)}


def secret_values(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the values to mask, longest first, so that a secret inside another one leaves no rest."""
    environment = os.environ if env is None else env
    # Asked for with each text: of the other variables only the names are looked at.
    values = {v for k in environment if k.startswith(PREFIX) and len((v := environment[k]).strip()) >= MIN_LENGTH}
    return tuple(sorted(values | _registered, key=lambda value: (-len(value), value)))


def scrubber(env: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Return a function that masks the current secrets; create it once for many texts."""
    return _cached_scrubber(secret_values(env))


def scrub(text: str, env: Mapping[str, str] | None = None) -> str:
    return scrubber(env)(text)


def scrub_record(value: Any, clean: Callable[[str], str] | None = None) -> Any:
    """Mask secrets in the texts and keys of a record of mappings, lists and texts."""
    clean = clean or scrubber()
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {scrub_record(key, clean): scrub_record(inner, clean) for key, inner in value.items()}
    return [scrub_record(inner, clean) for inner in value] if isinstance(value, (list, tuple)) else value


def secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each secret in a text, and of passwords in addresses; they may overlap."""
    if "://" in text and "@" in text:
        yield from ((match.end(1), match.end()) for match in _IN_ADDRESS.finditer(text))
    lower = text.lower()
    for form in _forms(secret_values()):
        if form.needle in (lower if form.any_case else text):
            yield from (match.span() for match in form.pattern().finditer(text))


@lru_cache(maxsize=16)
def _forms(values: tuple[str, ...]) -> tuple[SecretForm, ...]:
    return tuple(sorted({form for value in values for form in forms_of(value)}, key=lambda form: -form.length))


@lru_cache(maxsize=16)
def _cached_scrubber(values: tuple[str, ...]) -> Callable[[str], str]:
    forms = _forms(values)

    def clean(text: str) -> str:
        if "://" in text and "@" in text:
            text = _IN_ADDRESS.sub(rf"\g<1>{MASK}", text)
        return _mask_forms(text, forms)

    return clean


def _mask_forms(text: str, forms: tuple[SecretForm, ...]) -> str:
    """Mask the forms; searching a few letters of each first is ten times as fast as its expression."""
    lower = ""
    for form in forms:
        if form.any_case and not lower:
            lower = text.lower()
        if form.needle in (lower if form.any_case else text):
            text = form.pattern().sub(MASK, text)
            lower = ""
    return text
