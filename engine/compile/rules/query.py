"""What the rules look at."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.rules.build import Domain
from engine.compile.rules.model import Mode
from engine.compile.rules.plan import Plan


@dataclass(frozen=True, slots=True)
class Query:
    """A lowered query.

    Attributes:
        plan: as it is written; Spark checks this before it starts.
        runs: as it is executed; some faults appear only there.
        mode: of the output.
        domains: correlated subqueries that group rows of the stream.
    """

    plan: Plan
    runs: Plan
    mode: Mode
    domains: tuple[Domain, ...] = ()
