"""What an edit does to the state of a query: its blocks before and after, compared.

The table behind it is measured (two runs with real Spark each): Spark checks the types in its state and the kinds of
the steps only, so that most wrong edits run without a word. Whatever changes what a step stores or how it is keyed is
breaking; what is above the steps, and which rows are late, may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.compile.nodes.facts import Facts
from engine.compile.stateful.aggregate_order import reorderings
from engine.compile.stateful.blocks import Block, BoundExpression, Meaning, blocks
from engine.compile.stateful.stateful_steps import UnprovableError, meaning_of_state
from engine.sources import source_traits
from engine.sources.traits import ColumnsBy
from engine.times import duration_text

_KINDS = {
    "group": "GROUP BY", "distinct": "DISTINCT", "join": "join", "limit": "LIMIT", "union": "UNION", "read": "input",
    "sort": "ORDER BY",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: `kind` is breaking, forward or additive; `column`: it is the type of a column of this input."""

    kind: str
    text: str
    column: str = ""


def differences(old: Facts, new: Facts) -> tuple[Difference, ...] | None:
    """What an edit changes of a query that keeps state; None: not proved, only the text can be compared."""
    if old.state is None or new.state is None or _rest(old) != _rest(new):
        return None
    try:
        before, after = meaning_of_state(old.state), meaning_of_state(new.state)
        if before.literals != after.literals or not (_stateful(before) and _stateful(after)):
            return None
        mode = new.output_mode or "append"
        single = sum(block.stateful for block in blocks(after.block)) == 1
        edits = [*_Comparison(mode, single).blocks(before.block, after.block, ()), *_columns(before, after)]
        # Of a struct only the fields that are read count.
        read = _read_as_before(old, new)
        edits = [item for item in edits if item.column not in read]
        if before.streams != after.streams and sorted(before.streams) == sorted(after.streams):
            was, now = (", ".join(side.streams) for side in (before, after))
            text = f"the streams are read in the order {now}, and were in the order {was} (streams of a CTE come first)"
            edits.append(Difference("breaking", f"{text}; the checkpoint stores their positions in that order"))
        if not any(item.kind == "breaking" for item in edits):
            edits += _order(meaning_of_state(old.began) if old.began else before, after, new.state.sql)
    except UnprovableError:
        return None
    return tuple({item.text: item for item in edits}.values())


def _read_as_before(old: Facts, new: Facts) -> set[str]:
    schemas = [{item.name: item.source.get("schema") for item in facts.inputs} for facts in (old, new)]
    return {name for name, schema in schemas[0].items() if schema and schemas[1].get(name) == schema}


def _stateful(query_meaning: Meaning) -> bool:
    return any(block.stateful for block in blocks(query_meaning.block))


def _rest(facts: Facts) -> tuple[Any, ...]:
    inputs = []
    for item in facts.inputs:
        by_name = source_traits(str(item.source.get("format", ""))).columns_by is ColumnsBy.NAME
        source = {key: value for key, value in item.source.items() if key != "schema" or not by_name}
        inputs.append((item.name, item.stream, item.through, source))
    return facts.materialized, facts.relation, facts.output_mode, facts.partition_by, facts.write, inputs


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares blocks from the top; `fed` are the stateful blocks above one; `single`: there is one in all."""

    mode: str
    single: bool

    def blocks(self, old: Block, new: Block, fed: tuple[Block, ...]) -> Iterator[Difference]:
        if (old.kind, old.streaming, len(old.children)) != (new.kind, new.streaming, len(new.children)):
            change = f"a step of the query was {_step(old)} and is now {_step(new)}"
            yield Difference("breaking", f"{change}; their state is not compatible")
            return
        if not old.streaming:
            yield from self._static(old, new, fed)
            return
        yield from self._filters(old, new, fed)
        # Spark moves a semi join below a group on its left.
        moves = new.name in {"semi", "anti"} and any(block.stateful for block in blocks(new))
        if old.kind == "read":
            yield from _read(old, new, follows=bool(fed) and all(block.kind == "join" for block in fed))
        elif old.kind == "join":
            yield from _join(old, new, fed=bool(fed) or moves)
        elif old.kind == "group":
            yield from _group(old, new, mixes=self._mixes(new))
        elif old.kind in _OWN:
            yield from _OWN[old.kind](old, new)
        below = (*fed, new) if new.stateful or moves else fed
        for one, other in zip(old.children, new.children, strict=True):
            yield from self.blocks(one, other, below)

    def _mixes(self, block: Block) -> bool:
        return self.mode == "append" and self.single and block.event_time

    def _static(self, old: Block, new: Block, fed: tuple[Block, ...]) -> Iterator[Difference]:
        if _shape(old) == _shape(new):
            return
        if fed:
            text = f"a static input of {_step(fed[-1])} changed; its state was built with the old one"
            yield Difference("breaking", text)
        else:
            yield Difference("forward", "a static input changed; this applies to new rows")

    def _filters(self, old: Block, new: Block, fed: tuple[Block, ...]) -> Iterator[Difference]:
        before, after = {b.key: b for b in old.where}, {b.key: b for b in new.where}
        removed = [before[key] for key in before if key not in after]
        come = [after[key] for key in after if key not in before]
        for one in removed + come:
            reached = _reached(new, one, fed)
            words = f"the filter {one.text} was {'removed' if one in removed else 'added'}"
            if not reached:
                yield Difference("forward", f"{words}; this applies to new rows")
            elif self._mixes(reached[0]):
                note = f"this applies to new rows; open groups of {_step(reached[0])} include rows of both filters"
                yield Difference("forward", f"{words}; {note}")
            else:
                text = f"{words} upstream of {_step(reached[-1])}, whose state was built with the old filter"
                yield Difference("breaking", text)


def _read(old: Block, new: Block, *, follows: bool) -> Iterator[Difference]:
    """Compare what is read; `follows`: rows in state have the event time themselves, also of before a watermark."""
    if old.name != new.name:
        text = f"the input '{old.name}' became '{new.name}'; the state holds rows of the old input"
        yield Difference("breaking", text)
        return
    if not old.watermark and new.watermark and follows:
        note = "it applies to rows in state, too: which find a match, and when the others are written"
        yield Difference("forward", f"a watermark on {new.watermark} was added to '{new.name}'; {note}")
    elif old.watermark != new.watermark:
        was, now = (_or(block.watermark) for block in (old, new))
        yield Difference("breaking", f"the watermark of '{new.name}' changed from {was} to {now}; the state is "
                                     "bound to the old event time")  # fmt: skip
    elif old.delay != new.delay:
        was, now = (duration_text(block.delay) for block in (old, new))
        note = "it applies to new rows: which are late, and when results are emitted"
        yield Difference("forward", f"the watermark delay of '{new.name}' changed from {was} to {now}; {note}")
    if old.dedup != new.dedup:
        was, now = (_or(", ".join(block.dedup)) for block in (old, new))
        yield Difference("breaking", f"the dedup of '{new.name}' changed from {was} to {now}; the state holds keys "
                                     "of the old columns")  # fmt: skip
    types = dict(old.columns)
    for name, kind in new.columns:
        if name in types and types[name] != kind:
            if not (types[name] and kind):
                raise UnprovableError("an unknown type")
            text = f"column '{name}' of '{new.name}' changed from {_or(types[name])} to {_or(kind)}; "
            yield Difference("breaking", text + "state holds values of the old type", column=new.name)


def _group(old: Block, new: Block, *, mixes: bool) -> Iterator[Difference]:
    """Compare a GROUP BY; `mixes`: its table keeps no group that is still open."""
    if [b.key for b in old.keys] != [b.key for b in new.keys]:
        yield from _keys(old, new)
        return
    if old.event_time != new.event_time:
        time = "no longer has" if old.event_time else "now has"
        yield Difference(
            "breaking", f"{_step(new)} {time} a key with the event time; open groups were made without that"
        )
    if old.gap != new.gap:
        change = f"the gap of the session window changed from {_or(old.gap)} to {_or(new.gap)}"
        if mixes:
            yield Difference("forward", f"{change}; open sessions keep their end until a new row extends them")
        else:
            text = "the sessions in state and in the table were made with the old gap"
            yield Difference("breaking", f"{change}; {text}")
    before, after = {b.key: b for b in old.aggregates}, {b.key: b for b in new.aggregates}
    removed = [b.text for key, b in before.items() if key not in after]
    come = [b.text for key, b in after.items() if key not in before]
    if removed or come:
        change = _changed(", ".join(removed), ", ".join(come), _step(new))
        yield Difference("breaking", f"{change}; open groups hold values of the old aggregates")


def _changed(removed: str, come: str, step: str) -> str:
    if removed and removed == come:
        # sqlglot writes both in one way (`size` and `array_size`, which differ for NULL).
        return f"an aggregate of {step}, {removed}, calls another function of Spark now"
    if removed and come:
        return f"an aggregate of {step} changed from {removed} to {come}"
    return f"{come} was added to {step}" if come else f"{removed} was removed from {step}"


def _distinct(old: Block, new: Block) -> Iterator[Difference]:
    if [b.key for b in old.keys] != [b.key for b in new.keys]:
        yield Difference("breaking", f"the columns of DISTINCT changed from {_list(old.keys)} to {_list(new.keys)}; "
                                     "the state holds rows with the old columns")  # fmt: skip


def _join(old: Block, new: Block, *, fed: bool) -> Iterator[Difference]:
    kind = "breaking" if new.stateful or fed else "forward"
    after = "the rows in state follow the old condition" if kind == "breaking" else "this applies to new rows"
    if old.name != new.name:
        yield Difference(kind, f"the {old.name} join is now a {new.name} join; {after}")
    if {b.key for b in old.on} != {b.key for b in new.on}:
        yield Difference(kind, f"the join condition changed from {_all(old.on)} to {_all(new.on)}; {after}")
    elif new.stateful and _moved(old.pairs, new.pairs):
        change = f"the equalities of the join condition changed their order from {_all(old.pairs)} to {_all(new.pairs)}"
        yield Difference("breaking", f"{change}; the rows in state are found by them in the old order")
    for side, was, now in zip(("left", "right"), old.carried, new.carried, strict=False):
        if [b.key for b in was] != [b.key for b in now]:
            change = f"the columns that the {new.name} join buffers of its {side} side changed from {_list(was)} to "
            yield Difference("breaking", f"{change}{_list(now)}; rows in state have the old columns")


def _moved(old: tuple[BoundExpression, ...], new: tuple[BoundExpression, ...]) -> bool:
    before, after = [one.key for one in old], [one.key for one in new]
    return [key for key in before if key in after] != [key for key in after if key in before]


def _limit(old: Block, new: Block) -> Iterator[Difference]:
    if old.on[0].key != new.on[0].key:
        yield Difference("forward", f"LIMIT changed from {old.on[0].text} to {new.on[0].text}; rows written "
                         "before the edit count")  # fmt: skip


def _sort(old: Block, new: Block) -> Iterator[Difference]:
    if [b.key for b in old.on] != [b.key for b in new.on]:
        yield Difference("forward", f"ORDER BY changed from {_list(old.on)} to {_list(new.on)}")


def _reached(block: Block, condition: BoundExpression, fed: tuple[Block, ...]) -> tuple[Block, ...]:
    """The stateful blocks that a filter directly above a block decides on: Spark moves it below a step if it can."""
    return fed if condition.aggregates and block.kind != "join" else (*fed, *_under(block, condition))


def _under(block: Block, condition: BoundExpression) -> tuple[Block, ...]:
    """The stateful blocks that a filter may move below; it stays above a limit, a dedup and what makes its values."""
    if block.kind in {"limit", "read"} or (condition.aggregates and not block.stateful):
        return ()
    own = (block,) if block.stateful else ()
    return own + tuple(step for child in block.children for step in _under(child, condition))


def _keys(old: Block, new: Block) -> Iterator[Difference]:
    pairs = [(a.text, b.text) for a, b in zip(old.keys, new.keys, strict=False) if a.key != b.key]
    one = len(old.keys) == len(new.keys) and len(pairs) == 1 and all("window(" in text for text in pairs[0])
    change = f"the keys of {_step(old)} became {_list(new.keys)}"
    if one:
        change = f"the window of GROUP BY changed from {pairs[0][0]} to {pairs[0][1]}"
    yield Difference("breaking", f"{change}; open groups have the old keys")


def _columns(old: Meaning, new: Meaning) -> Iterator[Difference]:
    before, after = dict(old.columns), dict(new.columns)
    for name, column in after.items():
        if name not in before:
            text = f"the new column '{name}' ({column.text}) is NULL in existing rows"
            yield Difference("additive", text)
        elif before[name].key != column.key:
            change = f"column '{name}' changed from {before[name].text} to {column.text}"
            yield Difference("forward", f"{change}; this applies to new rows")
    for name in before:
        if name not in after:
            yield Difference(
                "forward", f"the query no longer returns column '{name}'; the table keeps it, NULL in new rows"
            )


def _order(began: Meaning, after: Meaning, sql: str) -> Iterator[Difference]:
    """The aggregates in another order than in the state: the SELECT list is run in the order of the state."""
    pairs = zip(blocks(began.block), blocks(after.block), strict=True)
    moved = [(a, b) for a, b in pairs if [one.key for one in a.aggregates] != [one.key for one in b.aggregates]]
    if not moved or reorderings(sql, began, after):
        return
    for old, new in moved:
        change = f"from {_list(old.aggregates)} to {_list(new.aggregates)}"
        text = f"the aggregates of {_step(new)} changed their order {change}; the state stores them by position"
        yield Difference("breaking", text)


def _shape(block: Block) -> Any:
    keys = [[b.key for b in part] for part in (block.keys, block.aggregates)]
    keys += [sorted(b.key for b in block.where), [b.key for b in block.on]]
    return [block.kind, block.name, block.columns, keys, [_shape(child) for child in block.children]]


def _step(block: Block) -> str:
    if block.kind == "group":
        return f"GROUP BY {_list(block.keys)}" if block.keys else "the aggregate"
    if block.kind == "join":
        return f"the {block.name} join"
    if block.kind == "read":
        return f"reading {block.name}"
    return _KINDS[block.kind]


def _list(expressions: tuple[BoundExpression, ...]) -> str:
    return ", ".join(b.text for b in expressions) or "nothing"


def _all(conditions: tuple[BoundExpression, ...]) -> str:
    return " AND ".join(b.text for b in conditions) or "nothing"


def _or(text: str) -> str:
    return text or "nothing"


_OWN = {"distinct": _distinct, "limit": _limit, "sort": _sort}
