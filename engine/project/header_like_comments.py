"""Comments that look like a header and are not one: `/* ---`, `/*--`, `/**---` or `/*` in place of `/*---`.

A stream whose header is read as a comment would silently be built as a batch table, without its keys and tests.
"""

from __future__ import annotations

import difflib
import re
from typing import Final

from engine.errors import Diagnostic
from engine.project.parse_yaml import load_yaml
from engine.schema.model_keys import ABOUT, MODEL

_KEYS: Final = {key.name: key for key in MODEL.keys}
_DESCRIBING: Final = {key.name for key in ABOUT}
# What may come before the first comment that counts: blanks, other comments, Jinja.
_BEFORE: Final = re.compile(r"(?:\s+|--(?:\\\n|[^\n])*|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\})*", re.DOTALL)
# A header that is not at the top.
LATE: Final = re.compile(r"/\*---[ \t]*$", re.MULTILINE)
_STARRED: Final = re.compile(r"^[ \t]*\*(?: |$)", re.MULTILINE)
# A line that may be a key with its value.
_KEY: Final = re.compile(r"^[ \t]*+(?:[\"'{][ \t]*+)?(\w++)[\"']?[ \t]*+:(?=\s|$)", re.MULTILINE)
# Longer rows of dashes are ornament.
_MOST_DASHES: Final = 4
_NEAR: Final = 0.8


def header_like_comment(text: str) -> tuple[int, int] | None:
    """Return begin and end of the first comments that look like a header; None: there is none."""
    begin = _behind_others(text, 0)
    while text.startswith("/*", begin) and (end := text.find("*/", begin + 2)) >= 0:
        if LATE.match(text, begin) is None and _looks_like_header(text[begin + 2 : end]):
            return begin, end + 2
        begin = _behind_others(text, end + 2)
    return None


def _behind_others(text: str, at: int) -> int:
    match = _BEFORE.match(text, at)
    return match.end() if match else at


def _looks_like_header(comment: str) -> bool:
    inside = comment.lstrip("*").lstrip()
    dashes = len(inside) - len(inside.lstrip("-"))
    body = _unstarred(inside.lstrip("-").rstrip("*").rstrip().rstrip("-"))
    keys = _KEY.findall(body)
    if not keys:
        return False
    data, broken = _read(body)
    if 0 < dashes <= _MOST_DASHES:
        names = [str(name) for name in data] if data else keys if broken else []
        return any(name in _KEYS or difflib.get_close_matches(name, _KEYS, n=1, cutoff=_NEAR) for name in names)
    return bool(data) and data.keys() <= _KEYS.keys() and any(_deciding(name, value) for name, value in data.items())


def _unstarred(body: str) -> str:
    lines = [line for line in body.split("\n")[1:] if line.strip()]
    return _STARRED.sub("", body) if lines and all(_STARRED.match(line) for line in lines) else body


def _read(body: str) -> tuple[dict[str, object], bool]:
    """The mapping that a comment is in YAML, and whether it is none at all for an error."""
    found: list[Diagnostic]
    yaml, found = load_yaml(body, "")
    data = yaml.data if isinstance(yaml.data, dict) else {}
    return data, bool(found)


def _deciding(name: str, value: object) -> bool:
    """Whether a key says how a table is built, and its value is not prose."""
    key = _KEYS[name]
    if name in _DESCRIBING or value is None:
        return False
    if key.choices:
        return isinstance(value, str) and value in key.choices
    return not (isinstance(value, str) and len(value.split()) > 1)
