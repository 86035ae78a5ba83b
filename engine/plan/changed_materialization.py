"""A model that was materialized as something else: what that means for what it has stored."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile import Materialized, Model
from engine.compile.nodes.facts import Facts


def changed(old: Facts, new: Facts) -> str:
    """Return the sentence on what a model was and is, from its facts; empty if it is what it was."""
    was, now = old.materialized, new.materialized
    return "" if was == now else f"it was {_in_words(was)} and is now {_in_words(now)}"


def _in_words(word: str) -> str:
    return f"a {word}" if word in set(Materialized) and Materialized(word).traits.in_catalog else word


def describe_discarded(model: Model, old: Facts) -> str:
    if old.materialized == Materialized.VIEW.value:
        return "A view stores no rows: nothing is lost."
    text = f"That discards {', '.join(_discarded(model, old))}."
    if old.materialized == Materialized.STREAMING_TABLE.value:
        text += " Rows whose source files or records no longer exist cannot be re-read."
    if model.computed_when_read:
        return f"{text} {model.relation}__quarantine, if there is one, stays."
    return text


def _discarded(model: Model, old: Facts) -> Iterator[str]:
    if model.computed_when_read:
        yield f"all rows of {model.relation}"
    yield "its snapshots (time travel, branches, staged rows)"
    if old.materialized == Materialized.STREAMING_TABLE.value:
        yield "its checkpoint with all state"
        if old.write.history:
            yield "old versions of keys that its sources no longer have"
        if old.write.delete_when:
            yield "its record of deleted keys"
