"""What the last build says of a model, from target/run_results.json."""

from __future__ import annotations

from pathlib import Path

from engine.docs.site.last_run import last_run
from engine.secrets.scrubber import scrub

_NUMBERS = ("rows_in", "rows_out", "late", "duplicates", "quarantined", "state_rows")
_MOST_TEXT = 200


def last_run_text(target_dir: Path, node: str) -> str:
    """Return how the last run of a node ended, one line; empty if it is not known."""
    run = last_run(target_dir).nodes.get(node)
    if run is None:
        return ""
    numbers = [f"{name.replace('_', ' ')} {run.numbers[name]:,.0f}" for name in _NUMBERS if name in run.numbers]
    watermark = [f"watermark {run.watermark:%Y-%m-%d %H:%M:%S}"] if run.watermark else []
    details = ", ".join([*numbers, *watermark])
    return scrub(f"Last run: {run.status[:_MOST_TEXT]}" + (f" ({details})" if details else ""))
