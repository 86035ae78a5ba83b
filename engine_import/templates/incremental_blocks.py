"""What `is_incremental()` decides in a template of dbt, taken apart where it is clear."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine_import.templates.template_parts import Piece, PieceKind, joined, pieces

_IS = r"is_incremental\s*+\(\s*+\)"
_FALSE = re.compile(rf"(?:{_IS}(?:\s++and\s++(?!.*\bor\b).+)?|(?!.*\bor\b).+(?<!\s)\s++and\s++{_IS})", re.DOTALL)
_TRUE = re.compile(rf"not\s+{_IS}", re.DOTALL)
_ANY = re.compile(rf"\b(?:{_IS}|should_full_refresh\s*\(|flags\.FULL_REFRESH)")
_NEWEST = re.compile(
    # A name from its beginning on: tried from each of its letters, a long one would take forever.
    r"(?:(?<![\w.])|(?<=[^\w.]\.))([A-Za-z_][\w.]*+)\s*+>=?\s*+\(?\s*+(?:\(\s*+)?(?:select\s++)?(?:coalesce\s*+\(\s*+)?"
    r"(?:\(\s*+select\s++)?max\s*+\(\s*+([\w.]++)\s*+\)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FullQuery:
    """The query of a full refresh.

    Attributes:
        template: without the parts that count in incremental runs only.
        left_out: these parts.
        newest: the column of the input that new rows are found by, if the parts say so plainly.
        stored: the column of the table that it is compared with.
        unclear: a condition is left that compares with `is_incremental()` in another way.
    """

    template: str
    left_out: tuple[str, ...] = ()
    newest: str = ""
    stored: str = ""
    unclear: bool = False


def full_query(template: str) -> FullQuery:
    """Take the incremental parts out of a template: what is left is what dbt runs in a full refresh."""
    parts = pieces(template)
    kept: list[Piece] = []
    left_out: list[str] = []
    at = 0
    while at < len(parts):
        branches = _branches(parts, at) if _is_if(parts[at]) else None
        if branches is None:
            kept.append(parts[at])
            at += 1
            continue
        begin, middle, end = branches
        incremental, otherwise = parts[begin + 1 : middle], parts[middle + 1 : end]
        if _TRUE.fullmatch(_condition(parts[begin])):
            incremental, otherwise = otherwise, incremental
        left_out.append(joined(incremental).strip())
        inner = full_query(joined(otherwise))
        kept += pieces(inner.template)
        left_out += inner.left_out
        at = end + 1
    text = joined(kept)
    found = next((match for part in left_out if (match := _NEWEST.search(part))), None)
    newest, stored = (found[1].rpartition(".")[2], found[2].rpartition(".")[2]) if found else ("", "")
    unclear = any(_ANY.search(piece.text) for piece in kept if piece.part in (PieceKind.BLOCK, PieceKind.EXPRESSION))
    return FullQuery(text, tuple(filter(None, left_out)), newest, stored, unclear)


def _condition(piece: Piece) -> str:
    return re.sub(r"^(if)\b", "", piece.inner).strip()


def _is_if(piece: Piece) -> bool:
    """Whether a piece begins a block that only an incremental run, or only a full one, takes."""
    if piece.part is not PieceKind.BLOCK or not re.match(r"if\b", piece.inner):
        return False
    condition = _condition(piece)
    return bool(_FALSE.fullmatch(condition) or _TRUE.fullmatch(condition))


def _branches(parts: list[Piece], begin: int) -> tuple[int, int, int] | None:
    """Return where an if, its else (or its end) and its end are; None if there is an elif, or no end."""
    depth, middle = 0, 0
    for at in range(begin, len(parts)):
        word = parts[at].inner.split(None, 1)[:1] if parts[at].part is PieceKind.BLOCK else []
        if word == ["if"]:
            depth += 1
        elif depth == 1 and word == ["elif"]:
            return None
        elif depth == 1 and word == ["else"]:
            middle = at
        elif word == ["endif"]:
            depth -= 1
            if depth == 0:
                return begin, middle or at, at
    return None
