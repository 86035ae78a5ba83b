"""A query taken apart: what is read, grouped, joined and made distinct, with expressions over the inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression over the inputs: `key` to compare it, `text` to show it.

    `calls` are the keys of the aggregates of the step below, as Spark finds them; `pairs`: an equality over several
    inputs.
    """

    key: str
    text: str
    calls: tuple[str, ...] = ()
    pairs: bool = False

    @property
    def aggregates(self) -> bool:
        """Whether it uses a value that a group holds, and not only its keys."""
        return bool(self.calls)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the query with the filters directly above it: read, group, distinct, join, union, limit or sort.

    `name` is of what is read, or the kind of a join. `columns` of a relation are those that are used. `watermark`: a
    column, or the expression that makes the event time; `delay` in seconds. `keys`: of a group in their order, or the
    columns of DISTINCT. `aggregates` are as Spark stores them. `event_time`: a key has that of a watermark. `gap`: of a
    session window among the keys; `size`: of the one window, a tumbling one over an event time. `on`: the condition of
    a join in its order; the columns of a sort; the number of a limit. `carried`: the columns that each side of a join
    of two streams keeps, in their order.
    """

    kind: str
    streaming: bool
    where: tuple[BoundExpression, ...] = ()
    children: tuple[Block, ...] = ()
    name: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    watermark: str = ""
    delay: int = 0
    dedup: tuple[str, ...] = ()
    keys: tuple[BoundExpression, ...] = ()
    aggregates: tuple[BoundExpression, ...] = ()
    event_time: bool = False
    gap: str = ""
    size: str = ""
    on: tuple[BoundExpression, ...] = ()
    carried: tuple[tuple[BoundExpression, ...], ...] = ()
    select: Selected | None = None

    @property
    def pairs(self) -> tuple[BoundExpression, ...]:
        """Return the equalities of a join's sides in the order in which they key its state (ExtractEquiJoinKeys).

        Those of WHERE come first, where Spark moves them into the join (PushPredicateThroughJoin).
        """
        return tuple(one for one in (*self.where, *self.on) if one.pairs)

    @property
    def stateful(self) -> bool:
        """Whether Spark keeps state for this block itself."""
        if self.kind == "join":
            return all(child.streaming for child in self.children)
        return self.streaming and (self.kind in {"group", "distinct", "limit"} or bool(self.dedup))


@dataclass(frozen=True, slots=True)
class Selected:
    """The SELECT of a group.

    `items`: for each the keys of the aggregates it names; `rest`: those that HAVING and ORDER BY name; `needs`: for
    each item those on its left whose aliases it uses.
    """

    node: exp.Select
    items: tuple[tuple[str, ...], ...]
    rest: tuple[str, ...]
    needs: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A query taken apart: its top block, the columns above that, and what is compared as it is written.

    `streams` are in the order in which Spark numbers them for the checkpoint: those of CTEs first (measured).
    `outer` are the SELECTs above a group: Spark may compute their items in the group itself.
    """

    block: Block
    columns: tuple[tuple[str, BoundExpression], ...]
    literals: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    outer: tuple[Selected, ...] = ()


def blocks(block: Block) -> Iterable[Block]:
    """A block and all below it, in one order."""
    yield block
    for child in block.children:
        yield from blocks(child)
