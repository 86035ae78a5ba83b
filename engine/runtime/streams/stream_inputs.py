"""The inputs of a query that is about to start: they are those of its checkpoint, and nothing unread is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.plan.tables.upstream_tables import TableReading
from engine.runtime.inputs import initial_snapshot, stream_sources
from engine.runtime.inputs.no_data_batch import take_back
from engine.runtime.inputs.source_file_check import Landed, verify
from engine.runtime.inputs.source_resume import resume_sources
from engine.runtime.streams.generation import Generation
from engine.runtime.streams.stream_query import StreamQuery


@dataclass(frozen=True, slots=True)
class StreamInputs:
    readings: Mapping[str, TableReading]
    remembered: Mapping[str, Any]
    landed: Landed


def open_inputs(query: StreamQuery, generation: Generation) -> tuple[StreamQuery, Generation, StreamInputs]:
    """Find where each input continues, and compare the inputs with those of the checkpoint.

    What is written, in this order: initial snapshots and where tables begin, the last micro-batch taken back if one
    without rows is owed, the times of accepted files, the facts of the query with the order of its sources.

    Returns:
        The query over its tables, the generation with its state as it is now, and what is read.

    Raises:
        StateError: an input is not what the checkpoint has read, or lacks what was not read.
    """
    run, model, folder, session = query.run, query.model, query.folder, query.session
    state = stream_sources.renamed(run, model, generation.state, folder)
    state, readings = initial_snapshot.begin(run, model, session, state, folder)
    if any(reading.elsewhere for reading in readings.values()):
        query = query.over(readings)
    written = generation.table is not None
    state, streams = stream_sources.checked(run, model, folder, state, query.frame, written=written)
    generation = replace(generation, state=state)
    take_back(run, model, folder.checkpoint(state.generation))
    remembered = resume_sources(run, model, session, state, folder)
    landed = verify(run, model, session, folder, state.generation, generation.reached, query.place.folders)
    dedup = {item.name: item.dedup for item in model.inputs if len(item.dedup) > 1}
    stream_sources.record(folder, state.generation, model, replace(streams, order=query.order, dedup=dedup))
    return query, generation, StreamInputs(readings, remembered, landed)
