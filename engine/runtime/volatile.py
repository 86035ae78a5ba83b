"""Whether computing a query again over the same input gives the same rows."""

from __future__ import annotations

import re

from engine.compile import Model

# Functions whose value differs between runs over the same rows.
_VOLATILE = re.compile(
    r"\b(current_timestamp|current_date|current_time|localtimestamp|now|curdate|unix_timestamp|rand|random|randn"
    r"|randstr|uniform|uuid|shuffle|input_file_name|monotonically_increasing_id|current_user|version)\b",
    re.IGNORECASE,
)


def volatile(model: Model) -> bool:
    """Whether the query reads the clock, or draws random numbers."""
    return _VOLATILE.search(model.sql) is not None


def repeatable(model: Model) -> bool:
    """Whether a micro-batch that is computed again has the same rows.

    A static side is read anew, and what a stateful step gives may depend on the order of its rows: which of two
    repeats a dedup keeps, the last digits of a sum.
    """
    whole = all(item.stream for item in model.inputs)
    checks = " ".join(expectation.check for expectation in model.expectations)
    return whole and not model.stateful and not volatile(model) and not _VOLATILE.search(checks)
