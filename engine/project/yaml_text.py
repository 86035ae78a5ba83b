"""YAML text of plain data, safe to put into an SQL comment, and read back as exactly that data.

Strings that could be read as something else, that begin Jinja, or that would end a comment are quoted and escaped;
readers of YAML 1.1 and 1.2 agree on what is left plain.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./]*(?: [A-Za-z0-9_./()=<>%;+-]+)*[.]?")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"))
_PRINTABLE = re.compile(r"[\t\n\x20-\x7e\xa0-\u02ff\u0370-\u03ff\u1e00-\u1fff\u20a0-\u20bf\u3040-\ud7ff\uff00-\uff60]*")
_TAG = re.compile(r"\{(?=[{%#])")
_WIDTH = 100
_DEEPEST = 30


class Raw(str):
    """A string whose Jinja is meant: it is quoted, not escaped."""

    __slots__ = ()


def yaml_text(value: Any, indent: int = 0) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in _lines(value, 0))


def _lines(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield '"..."'
    elif isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{_scalar(str(key))}:", inner, depth)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for item in value:
            first, *rest = _lines(item, depth + 1) if not _is_short(item) else [flow(item)]
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield flow(value)


def _entry(key: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value and _is_block(value):
        yield f"{key} |{'' if value.endswith(chr(10)) else '-'}"
        yield from (f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    elif _is_short(value):
        yield f"{key} {flow(value)}"
    else:
        yield key
        yield from (f"  {line}" for line in _lines(value, depth + 1))


def _is_short(value: Any) -> bool:
    """Whether a value is written on one line: a scalar, or a small collection of scalars."""
    if isinstance(value, Mapping):
        return not value or (all(map(_is_flat, value.values())) and len(flow(value)) < _WIDTH)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return not value or (all(map(_is_flat, value)) and len(flow(value)) < _WIDTH)
    return True


def _is_flat(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) < _WIDTH and "\n" not in value
    return not isinstance(value, (Mapping, Sequence)) or not value


def flow(value: Any, depth: int = 0) -> str:
    if depth > _DEEPEST:
        return '"..."'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(str(key))}: {flow(inner, depth + 1)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(flow(item, depth + 1) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        return json.dumps(value) if math.isfinite(value) else json.dumps(str(value))
    text = str(value)
    if not isinstance(value, Raw):
        text = without_jinja(text)
    if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    """A string in double quotes; what is not plainly visible is escaped, and so is the slash after a star."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(map(_escaped, quoted)).replace("*/", "*\\/")


def _escaped(character: str) -> str:
    if _PRINTABLE.fullmatch(character):
        return character
    number = ord(character)
    # Half a surrogate pair is not a character: neither YAML nor a file can have it.
    return f"\\U{number:08x}" if number > 0xFFFF else "\\ufffd" if 0xD800 <= number <= 0xDFFF else f"\\u{number:04x}"  # noqa: PLR2004


def _is_block(text: str) -> bool:
    lines = text.removesuffix("\n").split("\n")
    return (
        bool(_PRINTABLE.fullmatch(text))
        and "\t" not in text
        and "*/" not in text
        and not _TAG.search(text)
        and bool(lines[0].strip())
        and not lines[0].startswith(" ")
        and bool(lines[-1].strip())
        and not text.endswith("\n\n")
    )


def without_jinja(text: str) -> str:
    """Return the text with what begins Jinja written so that it renders to itself."""
    return _TAG.sub("{{ '{' }}", text)
