"""`_metadata`, where a record came from: a column of a source that `select *` leaves out.

The view of a source has it only in models that name it: there every star over the source gets an `EXCEPT`. (Spark's own
hidden columns end at a view.)
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


def star_edits(query: ParsedQuery, names: Mapping[int, str], text: str) -> Iterator[Edit]:
    """Yield the edits that keep `_metadata` out of stars; `names`: what qualifies a source's columns, by its offset."""
    for star, hidden in _stars(query, names):
        columns = ", ".join(f"{name}.{ORIGIN}" for name in hidden)
        listed = star.args.get("except_") or ()
        if not _is_written(star, text):
            continue
        if listed:
            at = span(listed[0])[0]
            yield Edit(at, at, f"{columns}, ")
        else:
            at = star.meta["end"] + 1
            yield Edit(at, at, f" EXCEPT ({columns})")


def implied_stars(query: ParsedQuery, names: Mapping[int, str], text: str) -> Iterator[int]:
    """Yield the references to sources of which a query gives `_metadata` without a star: `TABLE t`, `FROM t |> ..`."""
    for star, hidden in _stars(query, names):
        if not _is_written(star, text):
            yield min(hidden.values())


def _is_written(star: exp.Star, text: str) -> bool:
    return text[star.meta["end"]] == "*"


def _stars(query: ParsedQuery, names: Mapping[int, str]) -> Iterator[tuple[exp.Star, dict[str, int]]]:
    """The stars that stand for columns of sources, with the names of these and where they are read."""
    hiding = _hiding(query, names)
    written = {start: name.lower() for start, _, name in query.qualifiers}
    for star in query.nodes.every(exp.Star):
        if "end" not in star.meta or isinstance(star.parent, exp.Count):
            continue
        qualifier = _qualifier(star, written)
        starts_by_name = hiding.get(id(star.find_ancestor(exp.Select)), {})
        matching = {name: at for name, at in starts_by_name.items() if qualifier in {"", name.strip("`").lower()}}
        if matching:
            yield star, matching


def _hiding(query: ParsedQuery, names: Mapping[int, str]) -> dict[int, dict[str, int]]:
    """The names of the sources that each SELECT reads, in the order of the text, and where, by its identity."""
    places = ((table.this.meta.get("start"), table) for table in query.nodes.every(exp.Table))
    hidden: dict[int, dict[str, int]] = {}
    for start, table in sorted(((s, t) for s, t in places if s in names), key=lambda pair: pair[0]):
        hidden.setdefault(id(table.find_ancestor(exp.Select)), {}).setdefault(names[start], start)
    return hidden


def _qualifier(star: exp.Star, written: Mapping[int, str]) -> str:
    """By what a star is qualified, in lower case."""
    table = star.parent.args.get("table") if isinstance(star.parent, exp.Column) else None
    if not isinstance(table, exp.Identifier):
        return ""
    return written.get(span(table)[0], table.name.lower())
