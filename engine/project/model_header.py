"""The header of a model: YAML between `/*---` and `---*/` at the top of its SQL file.

`/* ---`, `/*--`, `/**---` and `/*` in place of `/*---` are comments that look like a header: a stream whose header is
read as a comment would silently be built as a batch table, without its keys and tests.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Final

from engine.errors import Diagnostic, Location
from engine.project.parse_yaml import Yaml, load_yaml
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
    diagnostics: list[Diagnostic]
    yaml, diagnostics = load_yaml(body, "")
    data = yaml.data if isinstance(yaml.data, dict) else {}
    return data, bool(diagnostics)


def _deciding(name: str, value: object) -> bool:
    """Whether a key says how a table is built, and its value is not prose."""
    key = _KEYS[name]
    if name in _DESCRIBING or value is None:
        return False
    if key.choices:
        return isinstance(value, str) and value in key.choices
    return not (isinstance(value, str) and len(value.split()) > 1)


# Longer rows of dashes are ornament, not a header.
_BEGIN = re.compile(r"\s*/\*---(?!-)")
# The front matter of other tools; a row of dashes is a comment in SQL.
_UNCOMMENTED = re.compile(r"\s*---[ \t]*\n(?=\s*[\w'\"]+\s*:)(?:.*\n)*?---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SplitFile:
    """A model file taken apart.

    `header`: the header's YAML; None if there is none or it cannot be read. `sql`: the text with the header blanked
    out, so that every character keeps its line and column.
    """

    header: Yaml | None
    sql: str
    problems: tuple[Diagnostic, ...] = ()


def split_header(text: str, file: str) -> SplitFile:
    begin = _BEGIN.match(text)
    if begin is None and (uncommented := _UNCOMMENTED.match(text)) is not None:
        return _uncommented(text, uncommented.end(), file)
    if begin is None and (comment := header_like_comment(text)) is not None:
        return _header_like(text, *comment, file)
    if begin is None:
        return SplitFile(None, text, _late_header(text, 0, file))
    end = text.find("*/", begin.end())
    if end < 0:
        place = location_of(text, begin.end() - 5, file)
        hint = "End the header with a line ---*/ before the SQL."
        return SplitFile(None, "", (Diagnostic("header-unclosed", "the header is not closed", hint, location=place),))
    body_end = end - 3
    if text[body_end:end] != "---":
        return _early_end(text, end, file)
    header, diagnostics = load_yaml(blank(text[: begin.end()]) + text[begin.end() : body_end], file)
    origin = location_of(text, begin.end() - 5, file)
    if header.data is not None and not isinstance(header.data, dict):
        place = header.value_at(())
        hint = "Write lines of 'key: value'."
        diagnostics.append(Diagnostic("wrong-type", "the header is not a mapping", hint, location=place))
    data = header.data if isinstance(header.data, dict) else {}
    sql = blank(text[: end + 2]) + text[end + 2 :]
    diagnostics += _late_header(text, end + 2, file)
    return SplitFile(replace(header, data=data, origin=origin), sql, tuple(diagnostics))


def _uncommented(text: str, end: int, file: str) -> SplitFile:
    """A header that is not a comment: SQL tools cannot read the file."""
    place = location_of(text, text.index("---"), file)
    hint = "Begin it with a line /*--- and end it with a line ---*/, so that every SQL tool reads the file."
    problem = Diagnostic("header-position", "the header is not in a comment", hint, location=place)
    return SplitFile(None, blank(text[:end]) + text[end:], (problem,))


def _header_like(text: str, begin: int, end: int, file: str) -> SplitFile:
    place = location_of(text, begin, file)
    hint = (
        "Begin the header with /*--- and end it with ---*/, both at the top of the file; for a comment, write other "
        "words before the first colon."
    )
    message = "a comment that looks like a header, and is not one"
    problem = Diagnostic("header-form", message, hint, location=place)
    return SplitFile(None, blank(text[:end]) + text[end:], (problem,))


def _early_end(text: str, end: int, file: str) -> SplitFile:
    """A `*/` that ends the comment too soon; the SQL begins after the real end, if there is one."""
    place = location_of(text, end, file)
    real = text.find("---*/", end)
    if real >= 0:
        message = "'*/' closes the SQL comment inside the header"
        hint = "Write the value without */, for instance as a var()."
        problem = Diagnostic("header-comment-end", message, hint, location=place)
        return SplitFile(None, blank(text[: real + 5]) + text[real + 5 :], (problem,))
    problem = Diagnostic(
        "header-unclosed", "the header ends with */ instead of ---*/", "End it with ---*/.", location=place
    )
    return SplitFile(None, blank(text[: end + 2]) + text[end + 2 :], (problem,))


def _late_header(text: str, start: int, file: str) -> tuple[Diagnostic, ...]:
    late = LATE.search(text, start)
    if late is None:
        return ()
    message = "a second header" if start else "the header is not at the top of the file"
    hint = "Keep one header, at the top of the file; other comments follow it."
    place = location_of(text, late.start(), file)
    return (Diagnostic("header-position", message, hint, location=place),)


def blank(text: str) -> str:
    """The text with everything but line ends turned into blanks."""
    return "\n".join(" " * len(line) for line in text.split("\n"))


def location_of(text: str, offset: int, file: str) -> Location:
    return Location(file, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
