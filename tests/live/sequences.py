"""Hand-made sequences of events, as `engine start` sends them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from engine.events import (
    BatchCommitted,
    Event,
    LiveStarted,
    ModelFinished,
    NodeState,
    NodeStateChanged,
    NodeTurnFinished,
    NodeTurnStarted,
    Status,
)

# Recent, because history is kept for 30 days; a full minute.
BEGIN = time.time() // 60 * 60 - 7200
ORDERS = "model.orders"


def text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def started(*nodes: str, at: float = BEGIN) -> LiveStarted:
    return LiveStarted("run", "dev", nodes or (ORDERS,), 1, text(at))


def state(node: str, to: NodeState, reason: str = "", at: float = BEGIN) -> NodeStateChanged:
    return NodeStateChanged(node, to, reason, text(at))


def batch(node: str = ORDERS, *, number: int = 0, watermark: str | None = None, **numbers: Any) -> BatchCommitted:
    return BatchCommitted(node=node, batch_id=number, watermark=watermark, snapshot_id=number, seconds=0.5, **numbers)


def finished(node: str, status: Status, message: str = "", at: float = BEGIN, **numbers: Any) -> ModelFinished:
    return ModelFinished(
        status, message, node=node, index=1, total=1, kind="streaming_table", relation="lake.shop.orders",
        seconds=1.0, at=text(at), **numbers,
    )  # fmt: skip


def turn(
    node: str = ORDERS, number: int = 1, *, at: float = BEGIN, status: Status = Status.SUCCESS, message: str = "",
    rows: int = 10, late: int = 0, watermark: str | None = None, bad: dict[str, int] | None = None,
) -> list[Event]:  # fmt: skip
    """A turn of one micro-batch, as a queue sends it."""
    events: list[Event] = [
        state(node, NodeState.RUNNING, "new input in shop.orders", at),
        NodeTurnStarted(node, number, "new input in shop.orders", 0.25, text(at)),
    ]
    good = status is Status.SUCCESS
    numbers = {"rows_in": rows, "rows_out": rows, "late": late, "bad_records": bad or {}} if good else {}
    if good:
        events.append(batch(node, number=number, watermark=watermark, **numbers))
    events += [
        finished(node, status, message, at + 2, **numbers, watermark=watermark, batches=int(good)),
        NodeTurnFinished(node, number, status, 2.0, more=False, message=message, at=text(at + 2)),
        state(node, NodeState.IDLE if good else NodeState.BACKING_OFF, message, at + 2),
    ]
    return events
