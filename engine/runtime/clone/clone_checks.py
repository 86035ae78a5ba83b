"""What of another target cannot be cloned, found before anything is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.compile import Manifest, Source, Target
from engine.errors import Diagnostic, Location
from engine.lake.clients.table_removal import CLONE_OF
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.plan.deployed.renamed_tables import unfinished
from engine.runtime.clone.cloned_state import Clone
from engine.state import Phase

UNAVAILABLE = "clone-unavailable"
_ANEW = "Build it from its beginning: leave out --clone."


def target_faults(target: Target, other: Target) -> Iterator[Diagnostic]:
    if target.name == other.name:
        message = f"target '{other.name}' cannot be cloned into itself"
        yield Diagnostic(UNAVAILABLE, message, "Choose another target with -t, or leave out --clone.")
        return
    for one in (target, other):
        if not isinstance(one.state, Path):
            message = f"the state of target '{one.name}' is in a bucket, where no checkpoint is copied yet"
            yield Diagnostic(UNAVAILABLE, message, "Build from the beginning: leave out --clone, add --defer.")
    if (target.catalog.name, target.catalog.path) != (other.catalog.name, other.catalog.path):
        message = f"the targets '{target.name}' and '{other.name}' have different catalogs"
        yield Diagnostic(UNAVAILABLE, message, "A clone shares the files of the other table: use one catalog for both.")


def clone_faults(manifest: Manifest, target: Target, clones: Sequence[Clone]) -> Iterator[Diagnostic]:
    """Yield why some tables cannot be cloned; the locks of both sides are held, or nobody writes yet."""
    lake = Lake(target.catalog)
    for one in clones:
        message = _fault(manifest, lake, one)
        if message:
            yield Diagnostic(UNAVAILABLE, message, _ANEW, node=one.own.name, location=Location(one.own.file))
        relation = one.own.relation
        table = lake.table(relation.schema, relation.name)
        if table is not None and CLONE_OF not in table.properties:
            message = f"{relation} exists, and this target has no state of it"
            hint = f"Drop it if nobody needs it, or give '{one.own.name}' another 'alias'."
            yield Diagnostic("name-taken", message, hint, node=one.own.name, location=Location(one.own.file))


def _fault(manifest: Manifest, lake: Lake, one: Clone) -> str:
    other, name = one.other.relation, one.other.name
    state, table = one.source.load(), lake.table(other.schema, other.name)
    for item in one.own.inputs:
        node = manifest.nodes[item.node]
        if item.stream and isinstance(node, Source) and "after_reading" in node.spec.settings:
            return f"'{name}' reads '{item.name}', whose files are archived or deleted after reading"
    if state is None or table is None or table.uuid != state.uuid:
        return f"{other} is not the table that its state is of: it was dropped or replaced"
    if reason := unfinished(one.source):
        return f"{other} is between two states: {reason}"
    if state.phase is not Phase.PUBLISHED or STAGED in table.branches:
        return f"rows of {other} wait for their tests"
    return (
        "" if isinstance(one.source.facts(state), Mapping) else f"the state of {other} does not say what its query was"
    )
