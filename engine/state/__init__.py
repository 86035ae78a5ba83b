"""All under `<state>`: generations, facts, locks, and what Spark's checkpoints say. Knows no Spark."""

from engine.state.lock import locked
from engine.state.model_state import ModelState, Phase, TableState

__all__ = ["ModelState", "Phase", "TableState", "locked"]
