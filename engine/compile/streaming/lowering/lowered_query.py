"""What the rules look at."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.streaming.lowering.build_plan import Domain
from engine.compile.streaming.query_plan.logical_plan import LogicalPlan
from engine.compile.streaming.query_plan.stream_facts import Mode


@dataclass(frozen=True, slots=True)
class LoweredQuery:
    """A lowered query.

    Attributes:
        plan: as it is written; Spark checks this before it starts.
        runs: as it is executed; some faults appear only there.
        mode: of the output.
        domains: correlated subqueries that group rows of the stream.
    """

    plan: LogicalPlan
    runs: LogicalPlan
    mode: Mode
    domains: tuple[Domain, ...] = ()
