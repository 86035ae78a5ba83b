"""The order of `dedup` keys: Spark keeps them as one row, by position, and compares types but not names.

Two keys of one type in another order are other keys (measured, Spark 4.1.4: duplicates are written and new rows
dropped). A new generation uses one order, however the header has it; an older one continues in the order in which
its state was written, which the state itself records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from engine.compile import Model
from engine.state import checkpoint as spark_checkpoint
from engine.state.state_path import StatePath

_OPERATORS = {"dedupe", "dedupeWithinWatermark"}


def ordered(model: Model, checkpoint: StatePath | None) -> Model:
    """The model with the keys of each input in the order of its checkpoint, or in that of a new one."""
    if not any(len(item.dedup) > 1 for item in model.inputs):
        return model
    kept = {tuple(sorted(keys)): keys for keys in (_recorded(checkpoint) if checkpoint else ())}
    inputs = []
    for item in model.inputs:
        names = {key.lower(): key for key in item.dedup}
        order = kept.get(tuple(sorted(names)), tuple(sorted(names)))
        inputs.append(replace(item, dedup=tuple(names[key] for key in order)))
    return replace(model, inputs=tuple(inputs))


def _recorded(checkpoint: StatePath) -> Iterator[tuple[str, ...]]:
    """The keys of each dedup step, in lower case and in the order of its state."""
    for step, name in spark_checkpoint.operator_folders(checkpoint).items():
        if name not in _OPERATORS:
            continue
        for schema in sorted(step.glob("*/_metadata/schema")):
            keys = _key_columns(schema.read_bytes())
            if keys:
                yield keys
                break


def _key_columns(content: bytes) -> tuple[str, ...]:
    """The names of the first schema in Spark's file: JSON between lengths (Spark class SchemaHelper)."""
    text = content.decode("utf-8", errors="replace")
    start = text.find('{"type":"struct"')
    if start < 0:
        return ()
    try:
        schema, _ = json.JSONDecoder().raw_decode(text, start)
        return tuple(str(column["name"]).lower() for column in schema["fields"])
    except (ValueError, LookupError, TypeError):
        return ()
