"""Named points that a run passes between two effects: what happens if it ends there is what tests of faults show.

Nothing in the product listens, and nothing outside this process can make it: no variable, file or option. A test that
listens kills the process, fails, or acts on the table as somebody else would. The names:

    computing       a micro-batch is about to be computed
    kept            a micro-batch with several outputs is on disk; where: its folder
    merging         a micro-batch is about to be merged
    written         data files are written, nothing is committed yet
    committing      a commit is about to be made; table: the model it is for, where: the table's name
    checked         the table was looked at, and the commit follows at once; table and where as above
    appended        the commit of staged files is made
    committed       a micro-batch is in its table, model.json has not heard of it
    started         model.json was written, without a micro-batch
    recorded        model.json knows the micro-batch, Spark does not
    ended           nothing of the engine's is left to do for a micro-batch
    reading ended   the query has stopped, files that were read are still in place
    resuming        the tables that a stream reads were looked at, Spark has not seen them
    describing      the descriptions of a table are about to be written
    created         a table is made, nothing is in it and no state knows it
    replacing       a table is about to be replaced by another content
    replaced        it is, and no state has heard of it
    noted           its state has
    exchanging      a view or table is dropped, and what takes its place is not there yet
    renewed         the state of a second or later generation was written
    half discarded  model.json of the first generation is gone, its checkpoint is not
    discarded       the first generation is gone
    staging         the new content of a batch table is about to be written beside it
    staged          it waits for the tests of the model, and no state has heard of it
    refreshing      it is known what changes of the inputs affect, and nothing of it is written
    publishing      staged rows are about to be shown to readers
    published       readers see them, the state has not heard of it
    compacting      files of a table are about to be joined
    erased          rows are erased from a table, its earlier snapshots have them
    reader moved    a stream has passed the erasure or the backfill; where: its model
    backfilling     rows of a range are computed, and nothing of them is in the table
    backfilled      they are, and streams of the table have not passed the commit
    previous kept   what a full refresh is about to replace has its tag, and no state has heard of it
    begun           an operation (drop, rename, rollback, rebuild) is noted, and nothing else of it is done
    put back        the table is what it was, and its state is not
    brought back    the earlier generation has its state again, and so has the other
    retired         the other one has none any more, and the rollback is still noted
    unnoted         a rollback is done, except that its generation is still noted as one that is kept
    renamed         a table has its new name in the catalog; where: that name
    rewritten       all of them have, and the state says so, in the folder of the old name
    moved           the folder has its new name, and the rename is still noted
    columns renamed  the columns of a table have their new names; where: that table
    rebuild noted   nothing more is written to the tables of a rebuild, and none of them is published
    generation copied  the checkpoint of a rebuilt table is its model's pending one
    taken over      so are its remembered deletes and quarantined records
    rebuild published  all tables of a rebuild are published, and those beside them are still there
    rebuild dropped  those beside them are gone, and the rebuild is over
    dropped         a table is dropped with its files; where: its name and UUID
    forgotten       nothing is left of it in the state
    table cloned    a table is there over the files of another target's, and has no state
    state cloned    it has one, and is still noted as one to be dropped
    clone noted     it is not any more
    sink written    changes are in the transaction of a sink's target, their position is not; table: the sink
    sink committing  the position is too, nothing is committed
    sink committed  the transaction is committed
    expired         the earlier snapshots of the table are gone, model.json names one of them
    java started    the JVM of a session answers, and nothing is connected to it
    connected       there is a session, and nobody has it
    session opened  it is about to be looked at for the first time
    run begins      a run is about to get a session of its own
    run ends        a run is done, and its session is about to be looked at
    session closing  a session is about to be stopped
"""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, str, int | None, str], object]

_listeners: tuple[Listener, ...] = ()


def reach(point: str, table: str, batch: int | None = None, where: str = "") -> None:
    """Pass a point: listeners act before the next line runs."""
    for listen in _listeners:
        listen(point, table.replace("`", "").rsplit(".", 1)[-1], batch, where)


def listen(listener: Listener) -> Callable[[], None]:
    """Call a listener at each point, in the thread that passes it; return a function that ends that."""
    global _listeners  # noqa: PLW0603 - of the process, like the faults that it stands for
    _listeners += (listener,)

    def end() -> None:
        global _listeners  # noqa: PLW0603
        _listeners = tuple(other for other in _listeners if other is not listener)

    return end
