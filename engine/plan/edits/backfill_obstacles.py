"""Whether the rows of a streaming table can be computed again by themselves, each from its input."""

from __future__ import annotations

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode, Publish


def not_recomputed(model: Model) -> str | None:
    """Return why `engine backfill` cannot replace rows of a streaming model, in words; None: it can."""
    name, write = model.name, model.write
    if model.stateful:
        # What is late, and which duplicates are dropped, depends on when rows came.
        return f"'{name}' keeps state: the content of its windows, joins or dedup depends on the arrival of rows"
    if write.unique_key:
        return (
            f"'{name}' has a unique_key: a key whose row moves into the range or out of it would be in the table "
            "twice, or not at all"
        )
    if write.output_mode is OutputMode.COMPLETE:
        return f"'{name}' has output_mode: complete: each micro-batch rewrites its table"
    if write.publish is Publish.ON_TESTS_PASS:
        return f"'{name}' has publish: on_tests_pass: readers would see the rows before its tests have passed"
    return None
