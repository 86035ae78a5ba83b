"""The order of `dedup` keys: Spark keeps them as one row, by position, and compares types but not names.

Two keys of one type in another order are other keys (measured, Spark 4.1.4: duplicates are written and new rows
dropped). A new generation uses one order, however the header has it, and records it (`sources.json`); one that was
begun by a version that recorded none continues in the order that the state itself has. Columns that have another name
now keep their place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from engine.compile import Input, Model
from engine.errors import Location, StateError
from engine.state import checkpoint as spark_checkpoint
from engine.state.state_path import StatePath

_OPERATORS = {"dedupe", "dedupeWithinWatermark"}


def ordered(
    model: Model,
    checkpoint: StatePath | None,
    recorded: Mapping[str, Sequence[str]] | None = None,
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> Model:
    """Return the model with the keys of each input in the order of its checkpoint, or in that of a new one.

    `recorded`: the keys that the generation has recorded, by the name that an input has now.
    `renamed`: for each input the names that columns have now, by the earlier ones in lower case.

    Raises:
        StateError: `model-changed`: the order of the state is not known.
    """
    if not any(len(item.dedup) > 1 for item in model.inputs):
        return model
    in_state = list(_recorded(checkpoint)) if checkpoint is not None else []
    inputs = []
    for item in model.inputs:
        names, columns = {key.lower(): key for key in item.dedup}, (renamed or {}).get(item.name, {})
        known = [recorded[item.name]] if recorded and item.name in recorded else in_state
        orders = [[key if key in names else columns.get(key, key).lower() for key in map(str.lower, keys)]
                  for keys in known]  # fmt: skip
        order = next((keys for keys in orders if sorted(keys) == sorted(names)), None)
        if order is None and len(names) > 1 and orders:
            raise _unknown(model, item)
        inputs.append(replace(item, dedup=tuple(names[key] for key in order or sorted(names))))
    return replace(model, inputs=tuple(inputs))


def _unknown(model: Model, item: Input) -> StateError:
    message = (
        f"the order in which the state of '{model.name}' holds the dedup keys of '{item.name}' "
        f"({', '.join(item.dedup)}) is not known"
    )
    hint = (
        "Restore the names that the columns had when it was last built, or rebuild the table: "
        f"engine build -f -s {model.name}"
    )
    return StateError("model-changed", message, hint, node=model.name, location=Location(model.file))


def _recorded(checkpoint: StatePath) -> Iterator[tuple[str, ...]]:
    """The keys of each dedup step, in lower case and in the order of its state; none where they cannot be read."""
    for step, name in spark_checkpoint.operator_folders(checkpoint).items():
        if name not in _OPERATORS:
            continue
        schemas = (_key_columns(schema.read_bytes()) for schema in sorted(step.glob("*/_metadata/schema")))
        yield next(filter(None, schemas), ())


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
