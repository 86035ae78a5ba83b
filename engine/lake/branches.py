"""The branch in which rows wait until their tests have passed, and the commit that shows them to readers.

Readers of a table read `main`, streams always (measured). The branch is there only while it is ahead of `main`: what
publishes it moves `main` on and takes the branch away, in one commit. What the columns are is the table's affair: a
column that comes with staged rows is at once there for readers, with NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.lake.commits import STAGED
from engine.lake.write import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAIN = "main"


def begin(session: SparkSession, relation: str, markers: Mapping[str, str]) -> None:
    """Make the branch if it is missing; of a table without rows it begins with an empty, marked commit."""
    table = load(session, relation)
    if table.refs().containsKey(STAGED):
        return
    if table.currentSnapshot() is not None:
        table.manageSnapshots().createBranch(STAGED).commit()
        return
    change = table.newAppend().toBranch(STAGED)
    for key, value in markers.items():
        change.set(f"engine.{key}", value)
    change.commit()


def publish(session: SparkSession, relation: str) -> int:
    """Show the staged rows to readers, in one commit: the id of the snapshot that they read from then on.

    Raises:
        Py4JJavaError: others have committed to the table since the branch began, or commit all the time.
    """
    table = load(session, relation)
    table.manageSnapshots().fastForwardBranch(_MAIN, STAGED).removeBranch(STAGED).commit()
    table.refresh()
    return int(table.currentSnapshot().snapshotId())
