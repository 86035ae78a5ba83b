"""The statements of a file of Spark's own test queries, split as Spark's SQLQueryTestSuite splits them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Functions of Java and Python, scripts: nothing that a model could hold.
LEFT_OUT = {"scripting", "udaf", "udf", "udtf"}
_IMPORT = "--IMPORT "
_START, _END = "--QUERY-DELIMITER-START", "--QUERY-DELIMITER-END"
# A semicolon behind a backslash ends no statement.
_SEMICOLON = re.compile(r"(?<=[^\\]);")
_COMMENTS = re.compile(r"(?:\s+|/\*.*?\*/|--[^\n]*\n)*", re.DOTALL)
_QUERY = re.compile(r"\(*\s*(?:select|with|from|values|table)\b", re.IGNORECASE)
_NAME = r"`?(?P<name>\w+)`?"
_VIEW = re.compile(
    rf"create\s+(?:or\s+replace\s+)?(?:(?:global\s+)?temp(?:orary)?\s+)?view\s+(?:if\s+not\s+exists\s+)?{_NAME}(?P<rest>[\s(].*)",
    re.IGNORECASE | re.DOTALL,
)
_TABLE = re.compile(
    rf"create\s+(?:or\s+replace\s+)?table\s+(?:if\s+not\s+exists\s+)?{_NAME}(?P<rest>[\s(].*)",
    re.IGNORECASE | re.DOTALL,
)
_AS = re.compile(r"^[^(]*?\bas\s+(?P<query>(?:\(|select|values|with|table)\b.*|\(.*)", re.IGNORECASE | re.DOTALL)
_DROP = re.compile(rf"drop\s+(?:view|table)\s+(?:if\s+exists\s+)?{_NAME}\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that is a query."""

    sql: str


@dataclass(frozen=True, slots=True)
class MakeView:
    """A view or table that the file creates: `sql` makes a temporary view, or `columns` are those of an empty one."""

    name: str
    sql: str = ""
    columns: str = ""


@dataclass(frozen=True, slots=True)
class DropView:
    """A view or table that the file drops."""

    name: str


Statement = Query | MakeView | DropView


def files(folder: Path) -> list[Path]:
    """The files below a folder that hold queries of a session without functions of its own."""
    found = (path for path in folder.rglob("*.sql") if not LEFT_OUT & set(path.relative_to(folder).parts[:-1]))
    return sorted(found)


def statements(path: Path, folder: Path) -> Iterator[Statement]:
    """The queries of a file, and what they read; settings (`--SET`, `SET`) and other statements are left out."""
    for text in _split(path, folder):
        statement = _statement(text)
        if statement is not None:
            yield statement


def _split(path: Path, folder: Path) -> list[str]:
    """Statements as the suite runs them: what `--IMPORT` names is put in front, other lines of `--` are comments."""
    lines = path.read_text().split("\n")
    imported = [line[len(_IMPORT) :].strip() for line in lines if line.startswith(_IMPORT)]
    texts = [text for name in imported for text in _split(folder / name, folder)]
    code: list[str] = []
    whole: list[str] | None = None
    for line in lines:
        if line.strip().startswith(_START):
            texts += _statements(code)
            code, whole = [], []
        elif line.strip().startswith(_END):
            texts.append("\n".join(whole or ()).strip().removesuffix(";"))
            whole = None
        elif line.strip().startswith("--"):
            continue
        else:
            (code if whole is None else whole).append(line)
    return [*texts, *_statements(code)]


def _statements(code: list[str]) -> list[str]:
    return [text.strip() for text in _SEMICOLON.split("\n".join(code)) if text.strip()]


def _statement(text: str) -> Statement | None:
    sql = text[_COMMENTS.match(text).end() :]  # type: ignore[union-attr]
    if _QUERY.match(sql):
        return Query(text)
    if match := _DROP.match(sql):
        return DropView(match["name"].lower())
    if match := _VIEW.match(sql):
        return MakeView(match["name"].lower(), f"create or replace temporary view {match['name']}{match['rest']}")
    if match := _TABLE.match(sql):
        return _table(match["name"].lower(), match["rest"].strip())
    return None


def _table(name: str, rest: str) -> MakeView | None:
    """A table of declared columns, which is empty, or one of a query."""
    if rest.startswith("("):
        columns = rest[1 : _closing(rest)].strip()
        return MakeView(name, columns=columns)
    if match := _AS.match(rest):
        return MakeView(name, f"create or replace temporary view {name} as {match['query']}")
    return None


def _closing(text: str) -> int:
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return place
    return len(text)
