"""Rows per second over the last minutes, in constant memory."""

from __future__ import annotations

from dataclasses import dataclass, field

_STEP = 5
_MINUTES = 5
_PLACES = _MINUTES * 60 // _STEP


@dataclass(slots=True)
class RowRate:
    """Sums of 5 seconds each over the last 5 minutes."""

    _sums: list[int] = field(default_factory=lambda: [0] * _PLACES)
    _last: int = 0

    def add(self, rows: int, at: float) -> None:
        """Count rows at a time in seconds."""
        self._forward(at)
        self._sums[self._last % _PLACES] += rows

    def per_second(self, seconds: int, at: float) -> float:
        """Return the mean over the last `seconds` (at most 300) before a time."""
        self._forward(at)
        steps = min(seconds // _STEP, _PLACES)
        return sum(self._sums[(self._last - back) % _PLACES] for back in range(steps)) / seconds

    def _forward(self, at: float) -> None:
        now = int(at // _STEP)
        for step in range(max(self._last + 1, now - _PLACES + 1), now + 1):
            self._sums[step % _PLACES] = 0
        self._last = max(self._last, now)
