"""A random query, written twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """A query.

    Attributes:
        plain: in plain SQL that every database has.
        text: the same as the model has it.
    """

    plain: str
    text: str
