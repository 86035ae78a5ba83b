"""Values of one run, which the text of a batch table may hold: it is rebuilt from it each time.

A stream's query, a view and what others take in as text are kept: there the same names are rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.jinja import Absent
from engine.jinja.opaque_values import Opaque


class RunValue(Opaque):
    """A value that differs from run to run; `may` is called at each use, `refusal` raises the error."""

    __slots__ = ("_may", "_refusal", "_value")

    def __init__(self, value: Any, refusal: Absent, may: Callable[[], bool]) -> None:
        self._value, self._refusal, self._may = value, refusal, may

    def __repr__(self) -> str:
        return "<value of the run>"

    def __str__(self) -> str:
        return str(self._value if self._may() else self._refusal)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._value if self._may() else self._refusal, name)

    def __getitem__(self, key: Any) -> Any:
        return (self._value if self._may() else self._refusal)[key]
