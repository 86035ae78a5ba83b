"""What the rules look at, and what they report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.query_nodes import TreeNode
from engine.compile.streaming.query_plan.logical_plan import Domain, LogicalPlan
from engine.errors import Level

Mode = Literal["append", "update", "complete"]
MODES: tuple[Mode, ...] = ("append", "update", "complete")


@dataclass(frozen=True, slots=True)
class StreamQuery:
    """What the rules look at: `plan` as Spark checks it before the start, `runs` as it is executed.

    `domains`: correlated subqueries that group rows of the stream.
    """

    plan: LogicalPlan
    runs: LogicalPlan
    mode: Mode
    domains: tuple[Domain, ...] = ()


def error(code: str, message: str, hint: str, node: TreeNode) -> QueryFinding:
    return QueryFinding(code, message, hint, offset(node))


def warning(code: str, message: str, hint: str, node: TreeNode) -> QueryFinding:
    return QueryFinding(code, message, hint, offset(node), Level.WARNING)


def offset(node: TreeNode) -> int:
    """Where a part of the tree begins in the text; clauses begin with their first name or literal."""
    at: TreeNode | None = node
    while at is not None:
        starts = [n.meta["start"] for n in at.walk() if "start" in n.meta]
        if starts:
            return int(min(starts))
        at = at.parent
    return 0
