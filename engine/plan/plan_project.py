"""The plan of a project as it is now: read, then decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from engine.compile import Manifest, Target
from engine.plan.actions.action import Plan, PlanOptions, run_order
from engine.plan.actions.plan_nodes import make_plan
from engine.plan.deployed.read_deployed import read_deployed, read_sources
from engine.plan.test_passes.known_passes import KnownPasses, PassCache


def plan_selection(
    manifest: Manifest,
    target: Target,
    root: Path,
    selected: Iterable[str],
    options: PlanOptions,
    cache: PassCache,
) -> Plan:
    """Return what a build of some nodes would do. Needs neither Java nor locks, and writes nothing.

    Raises SetupError: the catalog cannot be read.
    """
    order, place = run_order(manifest, selected), target.place(root)
    sources = read_sources(manifest, place, order)
    passes = KnownPasses(manifest, target, root, sources, cache)
    deployed = replace(read_deployed(manifest, target, place, order, sources), passed=passes.counting(order))
    return make_plan(manifest, order, deployed, options)
