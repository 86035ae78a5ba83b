"""docs/edits.md: each edit of the cases, and what a plan says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.plan.edit_cases import ADDITIVE, APPEND, BREAKING, FORWARD, SAME, E, K, P, compare, edited

PAGE = Path(__file__).parents[2] / "docs/edits.md"
_BEGIN = """# Edits of a stateful query

Look up how `engine plan` classifies an edit of a stateful streaming query (windows, aggregates, dedup, DISTINCT, LIMIT, stream-stream joins). The page is
generated from test cases, one per line; cases that resume were also run in Spark. The [edit rules](change-a-model.md#edit-rules) are a summary. To check
your own edit, run `engine plan`.
"""
_GROUPS: tuple[tuple[str, str, Mapping[str, Sequence[Any]]], ...] = (
    ("Nothing changed", "The query has the same meaning. The stream resumes without a note.", SAME),
    (
        "Resumes with a note",
        "The state does not change. The edit applies to rows that are written from now on.",
        FORWARD,
    ),
    (
        "Resumes with a new column",
        (
            "The streaming state already contains the column's values. The stream resumes once the table has the column: set "
            "`on_schema_change: append_columns`, or add it yourself. Existing rows keep NULL in it."
        ),
        ADDITIVE,
    ),
    (
        "Rejected",
        (
            "The streaming state does not contain the values that the edited query needs. Headrace rejects the build before Java starts "
            "(`model-changed`). "
            "`engine build -f` rebuilds the table, and [`engine rollback`](full-refresh.md#compare-and-roll-back) undoes the rebuild."
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
            "| edit | before | after |" + (" plan output |" if said else ""),
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
