"""The state folder of a target: generations, facts, locks, and what Spark's checkpoints record. Needs no Spark.

In: a folder or a bucket; out: the `ModelState` of each table, its checkpoint and lock. Read `model_state` first, then
`checkpoint` (Spark's files), `lock` and `lease` (one writer a table), `operations` (what a killed command left open).
"""

from engine.state.lock import locked
from engine.state.model_state import ModelState, Phase, TableState

__all__ = ["ModelState", "Phase", "TableState", "locked"]
