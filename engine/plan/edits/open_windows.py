"""`--reset-checkpoint open-windows`: an edit that counts from the first window that is not written yet.

Where each window is written once, the watermark says which the table has: those that end at it or before (Spark's
WatermarkSupport evicts by `window.end <= watermark`). A new checkpoint over all events since the end of the last
written window gives exactly those that are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile import Model
from engine.compile.nodes.facts import Facts
from engine.compile.stateful.blocks import blocks
from engine.compile.stateful.stateful_steps import UnprovableError, meaning_of_state
from engine.errors import Diagnostic, Location
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.plan.deployed.generations import committed_batch
from engine.state.checkpoint import watermark_of
from engine.times import duration_seconds, duration_text, time_text


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a query whose only state is their open groups, each of which is written once.

    `event_time`: what makes the time of the events: a column, or an expression. `milliseconds`: how long a window is;
    the first began in 1970.
    """

    event_time: str
    milliseconds: int


def windows_of(facts: Facts | None) -> Windows | None:
    """Return the tumbling windows of a query from its facts; None: it has none, or keeps more in state than these."""
    if facts is None or facts.state is None or facts.output_mode not in {None, "append"} or facts.write.unique_key:
        return None
    try:
        query_blocks = list(blocks(meaning_of_state(facts.state).block))
    except UnprovableError:
        return None
    reads = [block for block in query_blocks if block.kind == "read" and block.streaming]
    steps = [block for block in query_blocks if block.stateful and block.kind != "read"]
    if len(reads) != 1 or [step.kind for step in steps] != ["group"] or not steps[0].size:
        return None
    return Windows(reads[0].watermark, round(duration_seconds(steps[0].size) * 1000))


def can_follow(old: Facts, new: Facts) -> bool:
    before, after = windows_of(old), windows_of(new)
    return before is not None and after is not None and before.event_time == after.event_time


def first_open(model: Model, deployed_model: DeployedModel) -> int | Diagnostic:
    """Return the start of the first window that is not written, in milliseconds since 1970, or why there is none."""
    before = windows_of(deployed_model.writer.facts if deployed_model.writer is not None else None)
    after = windows_of(model.facts)
    if before is None or after is None or before.event_time != after.event_time:
        return _refused(model, _OTHER)
    mark, state = _watermark(deployed_model), deployed_model.state
    if not mark or state is None:
        return _refused(model, "no window of it was closed so far")
    size = before.milliseconds
    edge = max(mark // size * size, state.begin.get("events_from", 0))
    if edge % after.milliseconds:
        length = duration_text(after.milliseconds / 1000)
        misfit = f"a window of {length} does not begin at {time_text(edge)} (UTC), where the last "
        return _refused(model, misfit + "one that is written ends")
    return int(edge)


_OTHER = (
    "before and after the edit its state must be one tumbling window of the same watermark over one stream, written "
    "once when it is closed (output_mode: append, no unique_key)"
)


def _watermark(deployed_model: DeployedModel) -> int | None:
    """The watermark of the newest micro-batch that has reached the table, in milliseconds since 1970."""
    if deployed_model.state is None or deployed_model.checkpoint is None or deployed_model.written is None:
        return None
    marked = committed_batch(deployed_model.written.history, deployed_model.state)
    batch = max((b for b in (marked, deployed_model.state.batch) if b is not None), default=None)
    return watermark_of(deployed_model.checkpoint.path, batch) if batch is not None else None


def _refused(model: Model, why: str) -> Diagnostic:
    message = f"'{model.name}' cannot continue with its open windows: {why}"
    hint = f"Undo the edit, or rebuild the table: engine build -f -s {model.name}"
    return Diagnostic("reset-windows", message, hint, node=model.name, location=Location(model.file))
