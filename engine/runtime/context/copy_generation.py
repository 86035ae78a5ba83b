"""The checkpoint of one table as that of another, with what was recorded of its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.plan.deployed.checkpoint_facts import RECORD, read_source_record
from engine.plan.source_changes import StreamSource
from engine.state import TableState
from engine.state.file_log import ACCEPTED
from engine.state.state_path import copy_tree


def copy_generation(
    source: TableState, generation: int, to: TableState, number: int, tables: Mapping[str, tuple[str, str]]
) -> None:
    """Copy a checkpoint and what its generation recorded; model.json and facts are the caller's.

    The last micro-batch of `source` does not run; `tables` (full name and UUID, by node) are read in place of those of
    before. Raises StateError: `state-unreadable`, `state-unwritable`.
    """
    copy_tree(source.checkpoint(generation), to.checkpoint(number))
    if (accepted := source.note(generation, ACCEPTED)) is not None:
        to.save_note(number, ACCEPTED, accepted)
    if (recorded_sources := read_source_record(source, generation)) is not None:
        streams = tuple(_stream(stream, tables.get(stream.node)) for stream in recorded_sources.streams)
        to.save_note(number, RECORD, replace(recorded_sources, streams=streams).as_json())


def _stream(stream: StreamSource, table: tuple[str, str] | None) -> StreamSource:
    if table is None:
        return stream
    return replace(stream, identity={**stream.identity, "table": table[0], "uuid": table[1]})
