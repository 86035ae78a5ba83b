"""`_metadata`, where a record came from: a column of a source that `select *` leaves out.

The view of a source has the column only in models that name it, and there every star over the source gets an
`EXCEPT (<source>._metadata)`. (Spark's own hidden columns end at a view.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from engine.compile.config.window_config import Edit
from engine.compile.sql.parse import ParsedQuery, span
from engine.sources import ORIGIN


def names_metadata(text: str) -> bool:
    """Whether a query may name `_metadata`; one in a text or comment counts too, and does no harm."""
    return ORIGIN in text.lower()


def star_edits(query: ParsedQuery, names: Mapping[int, str]) -> Iterator[Edit]:
    """The edits that keep `_metadata` out of the stars of a query.

    Args:
        query: with the stars.
        names: for each reference to a source, by its offset, the name that qualifies its columns.
    """
    hiding = _hiding(query, names)
    written = {start: name.lower() for start, _, name in query.qualifiers}
    for star in query.nodes.every(exp.Star):
        if "end" not in star.meta or isinstance(star.parent, exp.Count):
            continue
        qualifier = _qualifier(star, written)
        known = hiding.get(id(star.find_ancestor(exp.Select)), [])
        columns = ", ".join(f"{name}.{ORIGIN}" for name in known if qualifier in {"", name.strip("`").lower()})
        listed = star.args.get("except_") or ()
        if columns and listed:
            at = span(listed[0])[0]
            yield Edit(at, at, f"{columns}, ")
        elif columns:
            at = star.meta["end"] + 1
            yield Edit(at, at, f" EXCEPT ({columns})")


def _hiding(query: ParsedQuery, names: Mapping[int, str]) -> dict[int, list[str]]:
    """The names of the sources that each SELECT reads, in the order of the text, by its identity."""
    places = ((table.this.meta.get("start"), table) for table in query.nodes.every(exp.Table))
    hidden: dict[int, dict[str, None]] = {}
    for start, table in sorted(((s, t) for s, t in places if s in names), key=lambda pair: pair[0]):
        hidden.setdefault(id(table.find_ancestor(exp.Select)), {})[names[start]] = None
    return {select: list(listed) for select, listed in hidden.items()}


def _qualifier(star: exp.Star, written: Mapping[int, str]) -> str:
    """By what a star is qualified, in lower case."""
    table = star.parent.args.get("table") if isinstance(star.parent, exp.Column) else None
    if not isinstance(table, exp.Identifier):
        return ""
    return written.get(span(table)[0], table.name.lower())
