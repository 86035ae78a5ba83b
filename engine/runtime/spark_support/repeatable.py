"""Whether computing a query again over the same input gives the same rows."""

from __future__ import annotations

from engine.compile import Manifest, Materialized, Model
from engine.compile.sql.determinism import deterministic_text


def volatile(manifest: Manifest, model: Model) -> bool:
    """Whether the query, or a view that it reads, reads the clock or draws random numbers."""
    views = (manifest.nodes[item.node] for item in model.inputs)
    return not model.deterministic or any(
        isinstance(view, Model) and view.materialized is Materialized.VIEW and volatile(manifest, view)
        for view in views
    )


def repeatable(model: Model) -> bool:
    """Whether a micro-batch that is computed again has the same rows.

    A static side is read anew, and what a stateful step gives may depend on the order of its rows: which of two
    repeats a dedup keeps, the last digits of a sum.
    """
    whole = all(item.stream for item in model.inputs)
    checks = [expectation.check for expectation in model.expectations]
    return whole and not model.stateful and model.deterministic and deterministic_text(*checks)
