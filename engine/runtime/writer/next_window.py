"""When the next window of a query will be written: the question everybody has after the first build."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.compile import Model
from engine.times import duration_seconds


def next_close(model: Model, watermark: str | None, state_rows: int) -> str:
    """One sentence on when the next window closes, or nothing; `watermark`: Spark's, ISO text in UTC."""
    delays = {item.watermark.delay for item in model.inputs if item.watermark}
    # Without an offset they begin at multiples of their slide since 1970 (Spark, TimeWindow).
    windows = [w for w in model.windows.values() if w.kind != "session" and not w.start]
    if watermark is None or state_rows == 0 or len(delays) != 1 or not len(windows) == len(model.windows) == 1:
        return ""
    size = round(duration_seconds(windows[0].size) * 1000)
    slide = round(duration_seconds(windows[0].slide or windows[0].size) * 1000)
    delay = timedelta(seconds=duration_seconds(delays.pop()))
    try:
        at = round(datetime.fromisoformat(watermark).timestamp() * 1000)
        end = ((at - size) // slide + 1) * slide + size
        closes = datetime.fromtimestamp(end / 1000, UTC)
        passed = closes + delay
    except (ValueError, OverflowError):
        # A time beyond the year 9999: nobody waits for the next one.
        return ""
    return f"the window that ends at {closes:%Y-%m-%d %H:%M} closes when event time passes {passed:%Y-%m-%d %H:%M}"
