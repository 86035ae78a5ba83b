"""The markers of commits other than micro-batches: those of the last commit of the table's owner are repeated.

After a kill before `model.json` hears of such a commit, or once the snapshot before it has expired, the table itself
still says which micro-batch its writer has reached.
"""

from __future__ import annotations

from engine.compile import Model
from engine.lake.table_facts import BACKFILL, ERASE, TableFacts
from engine.runtime.context.run_context import Run

_NOT_CARRIED = ("lease", "fence", ERASE, BACKFILL)


def repeated_markers(run: Run, owner: Model, facts: TableFacts) -> dict[str, str]:
    last = next((s for s in facts.history if s.marker("generation") is not None), None)
    summary = last.summary if last is not None else {}
    known = {key.removeprefix("engine."): text for key, text in summary.items() if key.startswith("engine.")}
    carried = {key: text for key, text in known.items() if key not in _NOT_CARRIED}
    return {**carried, "model": owner.name, "run-id": run.id, **run.lease_marker(owner)}
