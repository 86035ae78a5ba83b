"""What a model becomes, and what that means to others: they ask for it, and not for the word in the header."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class MaterializationTraits:
    """What a materialization means.

    `inlined`: its SQL is part of what reads it. `computed_when_read`: it is a view of the catalog, so that what it
    reads is read then. `recomputed`: its rows are computed from all of its input, as far as that has changed. `made`,
    `writes`: when its rows are made and what it stores, in words; empty: that depends on its query, or is nothing to
    note.
    """

    noun: str
    made: str = ""
    writes: str = ""
    in_catalog: bool = True
    inlined: bool = False
    keeps_rows: bool = False
    streaming: bool = False
    computed_when_read: bool = False
    recomputed: bool = False


class Materialized(StrEnum):
    STREAMING_TABLE = "streaming_table"
    TABLE = "table"
    VIEW = "view"
    EPHEMERAL = "ephemeral"

    @property
    def traits(self) -> MaterializationTraits:
        return _TRAITS[self]


_TRAITS = {
    Materialized.STREAMING_TABLE: MaterializationTraits("streaming table", keeps_rows=True, streaming=True),
    Materialized.TABLE: MaterializationTraits("table", "rebuilt in full", keeps_rows=True, recomputed=True),
    Materialized.VIEW: MaterializationTraits(
        "view",
        "computed when it is queried",
        "nothing: the query runs when the view is queried",
        computed_when_read=True,
    ),
    Materialized.EPHEMERAL: MaterializationTraits(
        "ephemeral model",
        "inlined in the models that read it",
        "nothing: its SQL is inlined in the models that read it",
        in_catalog=False,
        inlined=True,
    ),
}
