"""How much a build could have to read, as far as files and the catalog tell."""

from __future__ import annotations

from typing import Final

from engine.characters import whole_number
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.deployed_facts import Deployed, DeployedSource

# 111 MB took 121 s with both of Java's compilers and longer with the first alone; this is a third of them.
LITTLE: Final = 32_000_000


def is_little(deployed: Deployed) -> bool:
    """Return whether all that a build could read, old and new, is at most `LITTLE` bytes; False if unknown."""
    sizes = [_size_of_source(source) for source in deployed.sources.values()]
    sizes += [_size_of_table(model.written or model.table) for model in deployed.models.values()]
    return None not in sizes and sum(size for size in sizes if size is not None) <= LITTLE


def _size_of_source(source: DeployedSource) -> int | None:
    """The bytes of its files or of its table; None for topics, clocks and file systems of others."""
    if source.files is not None:
        return sum(file.size for file in source.files)
    return _size_of_table(source.table) if source.table is not None else None


def _size_of_table(table: TableFacts | None) -> int | None:
    if table is None or not table.history:
        return 0
    return whole_number(table.history[0].summary.get("total-files-size", ""))
