"""How long a streaming model keeps state, in event time, as far as its windows and watermarks say."""

from __future__ import annotations

from engine.compile import Model
from engine.times import duration_seconds, duration_text, parse_duration


def state_text(model: Model) -> str:
    """Return `stateful: keeps 90 minutes`; empty: it keeps no state."""
    if not model.stateful:
        return ""
    streams = [item for item in model.inputs if item.stream]
    marks = [item.watermark for item in streams if item.watermark]
    if len(streams) > 1 or not marks:
        return "stateful" if marks else "stateful: nothing expires, as there is no watermark"
    delay = duration_seconds(marks[0].delay)
    sizes = [_seconds(window.size) for window in model.windows.values()]
    if any(window.varies or size is None for window, size in zip(model.windows.values(), sizes, strict=True)):
        return "stateful"
    # A row of a session keeps it for its gap, a row of a window until its end, a row to compare with for the delay.
    longest = max((size or 0 for size in sizes), default=0)
    if not sizes and not streams[0].dedup:
        return "stateful"
    return f"stateful: keeps {duration_text(longest + delay)}"


def _seconds(text: str) -> float | None:
    parsed = parse_duration(text)
    return duration_seconds(parsed) if parsed else None
