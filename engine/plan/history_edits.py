"""Edits of a history of full extracts: its versions cannot be computed again, so most edits apply to new ones only."""

from __future__ import annotations

from collections.abc import Sequence

from engine.compile import Materialized, Model
from engine.compile.nodes.facts import Facts
from engine.compile.nodes.model_settings import OutputMode, Publish
from engine.plan.comparison import Change


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


def keeps_history(facts: Facts) -> bool:
    return facts.materialized == Materialized.TABLE.value and bool(facts.write.history)


def _identity(facts: Facts) -> tuple[object, ...]:
    """What a version is, by what two versions belong together, and where they are."""
    return facts.write.history, facts.write.unique_key, facts.write.sequence_by, facts.partition_by


def protected(model: Model) -> bool:
    """Return whether a full refresh is rejected: as the header says, and of a history unless it allows that."""
    allowed = model.operation.full_refresh
    return allowed is False or (bool(model.write.history) and not model.streaming and allowed is not True)


def changes(old: Facts, new: Facts, reasons: Sequence[str]) -> tuple[Change, tuple[str, ...]]:
    """Return what an edit of a history means: other keys, another order or other partitions are another table."""
    if _identity(old) != _identity(new):
        # Compares SQL: a command with nothing to do loads no parser.
        from engine.plan import changed_values

        return Change.IDENTITY_CHANGED, tuple(changed_values.identity_changes(old, new))
    if not reasons:
        return Change.UNCHANGED, ()
    return Change.FORWARD, tuple(f"{reason}; it applies to new versions" for reason in reasons)
