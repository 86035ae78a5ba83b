"""The relations of the oracle, as the checker knows them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.compile.columns import InputColumns


def relation(
    columns: Mapping[str, str | None] | None = None, event_time: str = "", *, streaming: bool = True
) -> InputColumns:
    """What a query reads; None: its columns are not known."""
    known = None if columns is None else tuple(columns.items())
    return InputColumns("r", known, event_time=event_time, streaming=streaming)


COLUMNS = {"id": "int", "v": "int", "ts": "timestamp", "s": "string"}
RELATIONS = {
    "sa": relation(COLUMNS),
    "sb": relation(COLUMNS),
    "wa": relation(COLUMNS, "ts"),
    "wb": relation(COLUMNS, "ts"),
    "ba": relation(COLUMNS, streaming=False),
}

# What Spark starts, and would never write.
STRICTER = {"join-unmatched-rows"}
