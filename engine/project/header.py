"""The header of a model: YAML between `/*---` and `---*/` at the top of its SQL file."""

from __future__ import annotations

import re

from engine.errors import Diagnostic, Location
from engine.project.yaml import Yaml, load_yaml

_BEGIN = re.compile(r"\ufeff?\s*/\*---")
_NOT_NEWLINE = re.compile(r"[^\n]")


def split_header(text: str, file: str) -> tuple[Yaml | None, str, list[Diagnostic]]:
    """Take the header off a model file.

    Returns:
        The header (None if the file has none), the SQL with the header blanked out so that every
        character keeps its line and column, and what is wrong.
    """
    begin = _BEGIN.match(text)
    if begin is None:
        return None, text, []
    end = text.find("*/", begin.end())
    if end < 0:
        place = location_of(text, begin.end() - 5, file)
        hint = "End the header with a line ---*/ before the SQL."
        return None, "", [Diagnostic("header-unclosed", "the header has no end", hint, location=place)]
    sql = blank(text[: end + 2]) + text[end + 2 :]
    body_end = end - 3
    if text[body_end:end] != "---":
        return None, sql, [_early_end(text, end, file)]
    line = text.count("\n", 0, begin.end()) + 1
    body = text[begin.end() : body_end]
    header, found = load_yaml(body, file, line=line)
    if header.data is not None and not isinstance(header.data, dict):
        place = header.value_at(())
        found.append(
            Diagnostic("wrong-type", "the header is not a mapping", "Write lines of 'key: value'.", location=place)
        )
        header = Yaml({}, file, origin=place)
    if header.data is None:
        header = Yaml({}, file, origin=Location(file, line))
    return header, sql, found


def _early_end(text: str, end: int, file: str) -> Diagnostic:
    place = location_of(text, end, file)
    if "---*/" in text[end:]:
        return Diagnostic(
            "header-comment-end",
            "'*/' ends the SQL comment in the middle of the header",
            "Write the value without */ (a path such as data/*/x.json: use a var() or another glob).",
            location=place,
        )
    return Diagnostic("header-unclosed", "the header ends with */ alone", "End it with ---*/.", location=place)


def blank(text: str) -> str:
    """The text with everything but line ends turned into blanks."""
    return _NOT_NEWLINE.sub(" ", text)


def location_of(text: str, offset: int, file: str) -> Location:
    """Line and column (from 1) of a character offset."""
    return Location(file, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
