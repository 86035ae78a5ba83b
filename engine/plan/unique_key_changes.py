"""The keys of a table that rows are merged into: an edit that computes them in another way makes it another table.

A MERGE finds the row that it replaces by the values of `unique_key`, and which of two is the newer by `sequence_by`.
Rows that are there keep the values of the query that wrote them, so that new rows would be beside those that they
should replace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from engine.compile.nodes.facts import Facts
from engine.compile.sql.dialect import tree_of
from engine.compile.sql.shown_sql import shown_sql
from engine.compile.stateful.bound_expressions import written_key
from engine.compile.stateful.stateful_steps import UnprovableError, meaning_of_state


def key_changes(old: Facts, new: Facts) -> tuple[str, ...]:
    """Return what an edit changes in how a table's keys and sequence are computed, in words; empty: nothing."""
    write = new.write
    roles = dict.fromkeys(write.sequence_by, "the column of sequence_by")
    roles |= dict.fromkeys(write.unique_key, "the key column")
    if not roles:
        return ()
    zones = tuple(f"the {text}" for text in zone_changes(old, new))
    return (*_changed(old, new, roles), *zones)


def zone_changes(old: Facts, new: Facts) -> Iterator[str]:
    before = {item.name: item.source for item in old.inputs}
    for item in new.inputs:
        source, source_before = item.source, before.get(item.name)
        if source and source_before and source_before.get("timezone") != source.get("timezone"):
            was, now = (source_facts.get("timezone") or "UTC" for source_facts in (source_before, source))
            yield f"time zone of '{item.name}' changed from {was} to {now}"


def _changed(old: Facts, new: Facts, roles: Mapping[str, str]) -> Iterator[str]:
    then, now = _bound(old, new) or (_written(old), _written(new))
    if then is None or now is None:
        if old.sql != new.sql:
            yield "how the key columns were computed is not known, as the earlier query cannot be read any more"
        return
    for name, role in roles.items():
        before, after = then.get(name), now.get(name)
        if before is not None and after is not None and before[0] != after[0]:
            yield f"{role} '{name}' changed from {before[1]} to {after[1]}"


_Texts = dict[str, tuple[Any, str]]


def _bound(old: Facts, new: Facts) -> tuple[_Texts, _Texts] | None:
    was, now = old.state or old.keyed, new.state or new.keyed
    if was is None or now is None:
        return None
    try:
        before, after = meaning_of_state(was).columns, meaning_of_state(now).columns
    except UnprovableError:
        return None
    return (
        {name.lower(): (column.key, column.text) for name, column in before},
        {name.lower(): (column.key, column.text) for name, column in after},
    )


def _written(facts: Facts) -> _Texts | None:
    """By name: all expressions that the SQL gives this name, in subqueries too; None: it cannot be read."""
    tree = tree_of(facts.sql)
    if tree is None:
        return None
    expressions: dict[str, list[exp.Expr]] = {}
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            if isinstance(item, (exp.Alias, exp.Column)):
                expressions.setdefault(item.alias_or_name.lower(), []).append(item.unalias())
    return {
        name: (sorted(written_key(tree, facts.sql) for tree in trees), ", ".join(map(shown_sql, trees)))
        for name, trees in expressions.items()
    }
