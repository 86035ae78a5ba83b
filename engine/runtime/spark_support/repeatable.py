"""Whether computing a query again over the same input gives the same rows."""

from __future__ import annotations

from engine.compile import Model


def repeatable(model: Model) -> bool:
    """Whether a micro-batch that is computed again has the same rows.

    A static side is read again, and what a stateful step gives may depend on the order of its rows: which of two
    repeats a dedup keeps, the last digits of a sum.
    """
    whole = all(item.stream for item in model.inputs)
    return whole and not model.stateful and model.deterministic
