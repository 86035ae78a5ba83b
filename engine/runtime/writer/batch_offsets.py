"""The offsets of a micro-batch: those that Spark computes it from, and those in its checkpoint, must be the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.errors import StateError
from engine.spark.internals.queries import end_offsets
from engine.state.state_path import StatePath, content

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_NO_OFFSET = "-"


def offsets_of_batch(checkpoint: StatePath, query: StreamingQuery, batch: int) -> bytes:
    """Return the content of `offsets/<n>`, which is there when the micro-batch is written.

    Raises:
        StateError: `checkpoint-changed`: it is not there, or names other offsets than the micro-batch has.
    """
    path = checkpoint / "offsets" / str(batch)
    try:
        written = content(path)
    except OSError as error:
        raise _changed(path, f"cannot be read: {error.strerror or error}", batch) from error
    lines = written.decode(errors="replace").splitlines()
    if [_value(line) for line in lines[2:]] != [
        _value(_NO_OFFSET if text is None else text) for text in end_offsets(query)
    ]:
        raise _changed(path, "has other offsets than the micro-batch was computed from", batch)
    return written


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _changed(path: StatePath, what: str, batch: int) -> StateError:
    message = f"{path} {what}"
    hint = f"Nothing of micro-batch {batch} was written. Find out what else writes to the checkpoint, and build again."
    return StateError("checkpoint-changed", message, hint)
