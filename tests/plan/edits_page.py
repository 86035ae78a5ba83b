"""docs/edits.md: each edit of the cases, and what a plan says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.plan.edit_cases import ADDITIVE, APPEND, BREAKING, FORWARD, SAME, E, K, P, compare, edited

PAGE = Path(__file__).parents[2] / "docs/edits.md"
_BEGIN = """# Edits of a query that keeps state

What becomes of an edit of a streaming query that keeps state (windows, aggregates, dedup, DISTINCT, LIMIT, joins of streams), with what the plan says.
Each line is a case of the tests, from which this page is made; those that continue were run with Spark. The rules in short are in
[safety](safety.md#edits-of-a-query-that-keeps-state); for your own edit ask `engine plan`.
"""
_GROUPS: tuple[tuple[str, str, Mapping[str, Sequence[Any]]], ...] = (
    ("Nothing changed", "The query means what it meant: the stream continues, and nothing is noted.", SAME),
    ("Continues, with a note", "The state stays as it is. The edit applies to what is written from now on.", FORWARD),
    (
        "Continues, with a new column",
        (
            "The state has what the column needs. With `on_schema_change: append_columns` (or after the column was added to the table) the "
            "stream continues; the column is NULL in rows that are there."
        ),
        ADDITIVE,
    ),
    (
        "Rejected",
        (
            "What is kept in state is not what the edited query would have kept. The build is rejected before Java starts (`model-changed`); "
            "`engine build -f` rebuilds the table, and [`engine rollback`](safety.md#back-to-before-a-full-refresh) undoes that."
        ),
        BREAKING,
    ),
)
_SHORT = {E: "events", P: "pays", K: "kinds", APPEND: "windows"}


def page(folder: Path) -> str:
    """The text of the page; `folder`: for the projects of the cases."""
    lines = [_BEGIN.rstrip()]
    for number, (title, about, cases) in enumerate(_GROUPS):
        lines += ["", f"## {title}", "", about, ""]
        said = cases is not SAME
        lines += [
            "| edit | before | after |" + (" the plan says |" if said else ""),
            "|---|---|---|" + ("---|" if said else ""),
        ]
        for at, (name, case) in enumerate(sorted(cases.items(), key=lambda item: item[0].lower())):
            cells = [_plain(name), *_texts(case[1])]
            if said:
                cells.append(_plain(_said(folder / f"{number}-{at}", case)))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _said(folder: Path, case: Sequence[Any]) -> str:
    compared = compare(folder, case[0], edited(case[0], *case[1]))
    if compared.refusal is not None:
        return compared.refusal.message.partition(": ")[2] or compared.refusal.message
    return "; ".join(compared.reasons)


def _texts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """What was replaced, and by what."""
    pairs = list(pairs)
    return ["; ".join(filter(None, (_code(pair[side]) for pair in pairs))) or "nothing" for side in (0, 1)]


def _code(text: str) -> str:
    for long, short in _SHORT.items():
        text = text.replace(long, short)
    flat = " ".join(text.split())
    if not flat:
        return ""
    mark = "``" if "`" in flat else "`"
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{mark}{pad}{flat}{pad}{mark}".replace("|", "\\|")


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
