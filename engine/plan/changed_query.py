"""How the query of a model differs from the one that wrote its table last: a pure comparison of facts.

What an edit does to the state of a query is in `state_changes`: Spark accepts most of them and computes wrongly
(measured, about 100 cases). What is imported here reads SQL, and takes a tenth of a second.

A MERGE finds the row that it replaces by the values of `unique_key`, and which of two is the newer by `sequence_by`.
An edit that computes these in another way makes it another table: rows that are there keep the values of the query that
wrote them, so that new rows would be beside those that they should replace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from sqlglot import exp

from engine.compile import Manifest, Materialized, Model
from engine.compile.nodes.facts import NO_WRITE, Facts, StateInput
from engine.compile.sql.dialect import tree_of
from engine.compile.sql.normalize import same_meaning
from engine.compile.sql.shown_sql import shown_sql
from engine.compile.stateful.bound_expressions import written_key
from engine.compile.stateful.stateful_steps import UnprovableError, meaning_of_state
from engine.errors import Diagnostic, Location
from engine.plan import changed_values, comparison, history_edits, new_checkpoint, source_changes, state_changes
from engine.plan.comparable_facts import comparable, keeps_columns
from engine.plan.comparison import Change, Comparison, StreamsRead
from engine.plan.deployed.deployed_facts import LastWriter
from engine.plan.edits.changed_clauses import with_clauses
from engine.plan.edits.open_windows import can_follow
from engine.plan.edits.present_names import with_inputs_of_now, with_names_of_now
from engine.plan.history_edits import not_recomputed


def materialization_change(old: Facts, new: Facts) -> str:
    """Return the sentence on what a model was and is, from its facts; empty if it is what it was."""
    was, now = old.materialized, new.materialized
    return "" if was == now else f"it was {_in_words(was)} and is now {_in_words(now)}"


def _in_words(word: str) -> str:
    return f"a {word}" if word in set(Materialized) and Materialized(word).traits.in_catalog else word


def describe_discarded(model: Model, old: Facts) -> str:
    if old.materialized == Materialized.VIEW.value:
        return "A view stores no rows: nothing is lost."
    text = f"That discards {', '.join(_discarded(model, old))}."
    if old.materialized == Materialized.STREAMING_TABLE.value:
        text += " Rows whose source files or records no longer exist cannot be re-read."
    if model.computed_when_read:
        return f"{text} {model.relation}__quarantine, if there is one, stays."
    return text


def _discarded(model: Model, old: Facts) -> Iterator[str]:
    if model.computed_when_read:
        yield f"all rows of {model.relation}"
    yield "its snapshots (time travel, branches, staged rows)"
    if old.materialized == Materialized.STREAMING_TABLE.value:
        yield "its checkpoint with all state"
        if old.write.history:
            yield "old versions of keys that its sources no longer have"
        if old.write.delete_when:
            yield "its record of deleted keys"


def key_changes(old: Facts, new: Facts) -> tuple[str, ...]:
    """What an edit changes in how keys and sequence of a table are computed, in words; empty: nothing, or no keys.

    Args:
        old: the facts of the query that wrote the table.
        new: those of the query now, with the same keys.
    """
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


_RULES = "its expectations changed; they apply to new rows"
# How a query is compared step by step, and the one with which its state began.
_NO_STATE: Mapping[str, Any] = {"state": None, "began": None, "stateful": False, "keyed": None}
_BREAKING = {Change.STATE_BREAKING, Change.SOURCE_CHANGED, Change.IDENTITY_CHANGED, Change.KEY_CHANGED}


def changed_query(manifest: Manifest, model: Model, writer: LastWriter, read: StreamsRead) -> Comparison:
    if (facts := writer.facts) is None:
        return _refused(model, Change.IDENTITY_CHANGED, (writer.unknown_reason,))
    return _compared(manifest, model, with_present_names(manifest, model, facts, writer, read), writer, read)


def with_present_names(manifest: Manifest, model: Model, facts: Facts, writer: LastWriter, read: StreamsRead) -> Facts:
    """Return the facts of the last writer with present names; `began` is the query with the order of the state."""
    if writer.recorded_sources is not None and writer.recorded_sources.order is not None:
        facts = replace(facts, began=writer.recorded_sources.order)
    read_now = (manifest.nodes.get(item.node) for item in model.inputs)
    names = {m.name: (m.relation.name, m.operation.renamed_from) for m in read_now if isinstance(m, Model)}
    static = source_changes.static_renames(facts, model.facts, names, manifest.nodes)
    inputs = {**static, **source_changes.renames(read.before, read.now)}
    old = with_inputs_of_now(facts, {node.partition(".")[2]: new.name for node, new in inputs.items()})
    return with_names_of_now(manifest, model, old)


def _compared(manifest: Manifest, model: Model, old: Facts, writer: LastWriter, read: StreamsRead) -> Comparison:
    now = model.facts.settings
    before = old.settings if old.settings or writer.recorded_sources is not None else now
    changed, frozen = comparison.differences(before, now)
    old = replace(old, settings={})
    old, new = comparable(old, model.facts), replace(comparable(model.facts, old), settings={})
    if _same(old, new) and _same_inputs(old, new) and not changed:
        return Comparison(Change.FORWARD if frozen else Change.UNCHANGED, tuple(frozen))
    change, reasons = _compare(model, old, new, read.difference, changed)
    if change is Change.UNCHANGED and frozen:
        change = Change.FORWARD
    if change not in _BREAKING:
        return Comparison(change, (*reasons, *frozen))
    if old.materialized != model.materialized.value:
        return _refused(model, change, reasons, discarded=describe_discarded(model, old))
    ways = new_checkpoint.ways(manifest, model) if change in {Change.STATE_BREAKING, Change.SOURCE_CHANGED} else ()
    if change is Change.STATE_BREAKING and can_follow(old, new):
        ways = (new_checkpoint.from_open_windows(model), *ways)
    return _refused(model, change, reasons, changed_values.query_changes(old, new), ways=ways)


def _compare(
    model: Model, old: Facts, new: Facts, difference: str | None, settings_changed: list[str]
) -> tuple[Change, tuple[str, ...]]:
    elsewhere = changed_values.deferral_changes(old, new)
    if not model.streaming and old.materialized == new.materialized:
        if history_edits.keeps_history(old) or history_edits.keeps_history(new):
            return history_edits.changes(old, new, (*settings_changed, *_rebuilt_reasons(old, new)))
        if elsewhere and not settings_changed:
            return Change.REBUILT, elsewhere
        return Change.REBUILT, (*settings_changed, *_rebuilt_reasons(old, new))
    identity = _identity_reasons(old, new)
    if identity or difference is not None:
        return (Change.IDENTITY_CHANGED, identity) if identity else (Change.SOURCE_CHANGED, (str(difference),))
    classified = _continued(model, old, new, settings_changed)
    if elsewhere and classified[0] not in _BREAKING:
        classified = Change.FORWARD, (*elsewhere, *(reason for reason in classified[1] if reason not in elsewhere))
    changed = key_changes(old, new) if classified[0] not in _BREAKING else ()
    return (Change.KEY_CHANGED, changed) if changed else classified


def _rebuilt_reasons(old: Facts, new: Facts) -> tuple[str, ...]:
    # What a batch table is beside what its query gives.
    rest = {"table": {}, "expectations": (), "relation": "", "partition_by": (), "write": NO_WRITE}
    reasons = [] if _same(replace(old, **rest), replace(new, **rest)) else [_query_changed(old, new)]
    if old.relation != new.relation:
        reasons.append(changed_values.changed("its name", old.relation, new.relation))
    reasons += changed_values.identity_changes(old, new)
    return (*reasons, *changed_values.table_changes(old.table, new.table))


def _continued(model: Model, old: Facts, new: Facts, settings_changed: list[str]) -> tuple[Change, tuple[str, ...]]:
    keeps_state = new.stateful or _kept_state(old)
    if settings_changed:
        return Change.STATE_BREAKING if keeps_state else Change.FORWARD, tuple(settings_changed)
    if not keeps_state and _without_rules(old) == _without_rules(new):
        return Change.FORWARD, (_RULES,)
    if not keeps_state:
        zones = [f"the {text}; this applies to new rows" for text in zone_changes(old, new)]
        same = _same(replace(old, inputs=()), replace(new, inputs=()))
        sentence = f"{_query_changed(old, new)}; it keeps no state, so the new SQL applies to new rows"
        query = () if zones and same else (sentence, *_earlier_rows(model))
        return Change.FORWARD, (*query, *zones)
    return _stateful(old, new)


def _earlier_rows(model: Model) -> tuple[str, ...]:
    fits = not_recomputed(model) is None
    return (f"to compute earlier rows again after the build: engine backfill {model.name} --from DATE",) if fits else ()


def _kept_state(old: Facts) -> bool:
    """Whether a query kept state; facts without its steps may say so of one that grouped static inputs only."""
    if old.state is not None or not old.stateful or old.inlined:
        return old.stateful
    from engine.compile.streaming.check_query import reads_state

    return reads_state(old.sql, [item for item in old.inputs if item.stream])


def _stateful(old: Facts, new: Facts) -> tuple[Change, tuple[str, ...]]:
    """What an edit means for a query that keeps state: by its steps, or by its text where that is all there is."""
    edits = state_changes.differences(old, new)
    if edits is None:
        return _by_text(old, new)
    breaking = tuple(item.text for item in edits if item.kind == "breaking")
    if breaking:
        return Change.STATE_BREAKING, breaking
    rules = () if _rules(old) == _rules(new) else (_RULES,)
    reasons = (*rules, *(item.text for item in edits))
    if any(item.kind == "additive" for item in edits):
        return Change.ADDITIVE, reasons
    return (Change.FORWARD, reasons) if reasons else (Change.UNCHANGED, ())


def _by_text(old: Facts, new: Facts) -> tuple[Change, tuple[str, ...]]:
    if changed := _columns_changed(old, new):
        return Change.STATE_BREAKING, changed
    if _same(old, new):
        return Change.UNCHANGED, ()
    if _without_rules(old) == _without_rules(new):
        return Change.FORWARD, (_RULES,)
    return Change.STATE_BREAKING, tuple(_stateful_reasons(old, new))


def _columns_changed(old: Facts, new: Facts) -> tuple[str, ...]:
    """What changed of the columns that `*` stands for, where a step may keep all of them; its text does not say."""
    starred = "*" in old.sql and "*" in new.sql
    if old.state is None or new.state is None or not starred or not keeps_columns(new):
        return ()
    before, after = ({item.name: _renamed_columns(item) for item in facts.inputs} for facts in (old.state, new.state))
    return tuple(
        f"the columns of '{name}', which the query reads by *, changed; the state holds rows with the old ones"
        for name in after
        if name in before and before[name] != after[name]
    )


def _renamed_columns(item: StateInput) -> list[tuple[str, str | None]] | None:
    if item.columns is None:
        return None
    return [(item.renamed.get(name.lower(), name.lower()), kind) for name, kind in item.columns]


def _without_rules(facts: Facts) -> Facts:
    """The facts without what takes rows out before or after the query's state, and leaves that as it is."""
    marks = ((item, item.watermark and replace(item.watermark, max_future=None, on_null=None)) for item in facts.inputs)
    inputs = tuple(replace(item, watermark=mark) for item, mark in marks)
    return replace(facts, inputs=inputs, expectations=(), **_NO_STATE)


def _rules(facts: Facts) -> list[Any]:
    marks = [item.watermark for item in facts.inputs]
    return [facts.expectations, *((mark.max_future, mark.on_null) if mark else (None, None) for mark in marks)]


def _identity_reasons(old: Facts, new: Facts) -> tuple[str, ...]:
    if text := materialization_change(old, new):
        return (text,)
    return tuple(changed_values.identity_changes(old, new))


def _same(old: Facts, new: Facts) -> bool:
    rest = [replace(facts, sql="", **_NO_STATE) for facts in (old, new)]
    return rest[0] == rest[1] and same_meaning(old.sql, new.sql)


def _same_inputs(old: Facts, new: Facts) -> bool:
    """Whether the inputs of a query that keeps state have the columns that they had; `*` may stand for them."""
    return old.state is None or new.state is None or old.state.inputs == new.state.inputs


def _stateful_reasons(old: Facts, new: Facts) -> list[str]:
    reasons = []
    for name in sorted({*old.windows, *new.windows}):
        before, after = old.windows.get(name), new.windows.get(name)
        if before != after:
            reasons.append(f"the window '{name}' changed from {before or 'nothing'} to {after or 'nothing'}")
    reasons += changed_values.input_changes(old, new)
    if old.sql != new.sql:
        reasons.append(_query_changed(old, new))
    if old.stateful != new.stateful:
        reasons.append("it keeps state now" if new.stateful else "it no longer keeps state")
    return reasons or ["the query changed"]


def _query_changed(old: Facts, new: Facts) -> str:
    return with_clauses("the query changed", old, new)


def _refused(
    model: Model,
    change: Change,
    reasons: tuple[str, ...],
    lines: Sequence[str] = (),
    *,
    discarded: str = "",
    ways: Sequence[str] = (),
) -> Comparison:
    message = f"{model.relation} cannot continue after this change: {'; '.join(reasons)}"
    hint = f"Undo the edit, or rebuild the table: engine build -f -s {model.name}"
    hint = "\n".join([*lines, hint, *ways])
    if discarded:
        hint = f"Undo the edit, or replace it: engine build -f -s {model.name}. {discarded}"
    finding = Diagnostic("model-changed", message, hint, node=model.name, location=Location(model.file))
    return Comparison(change, reasons, finding, kind_changed=bool(discarded), discarded=discarded)
