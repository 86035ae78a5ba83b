"""After how long a model of `engine start` counts as stalled: its own setting, else the target's, else five minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.live.status import STALLED_AFTER
from engine.times import duration_seconds

if TYPE_CHECKING:
    from engine.compile import Compiled


def stalled_after(compiled: Compiled, node: str) -> float:
    """Return the seconds for which unread input of a node may wait for a commit.

    Args:
        compiled: the project as it is used now.
        node: id of a model; tests are not stalled, and have the target's.
    """
    model = compiled.manifest.nodes.get(node)
    own = getattr(getattr(model, "operation", None), "stalled_after", None)
    text = own or compiled.target.stalled_after
    return float(duration_seconds(text)) if text else STALLED_AFTER
