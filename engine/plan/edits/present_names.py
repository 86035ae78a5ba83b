"""The facts of the query that wrote a table, with the names that its inputs, their columns and its own have now.

Both sides of a comparison have the new names then: what differs beside them is an edit like any other. The old query is
bound by the version that runs, which says what each name in it refers to; the form in which a state is taken apart gets
the names (`stateful_steps.meaning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace
from sqlglot import exp

from engine.compile import Manifest, Model
from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import bind
from engine.compile.columns.name_uses import UseKind
from engine.compile.nodes.facts import Facts, InputFacts, StateFacts
from engine.compile.sql.dialect import tree_of
from engine.compile.sql.normalize import spelling_of
from engine.compile.templates.template_names import REF, SOURCE
from engine.plan.deployed.deployed_facts import earlier_names

Names = Mapping[str, str]
_CONDITION = "select {} from `@own`"


def with_inputs_of_now(facts: Facts, now: Names) -> Facts:
    """Return the facts with the names that inputs have now, by the earlier ones."""
    if not now:
        return facts
    renamed_inputs = (replace(item, name=now.get(item.name, item.name)) for item in facts.inputs)

    def moved(state: StateFacts) -> StateFacts:
        # Its text keeps the views that it was made with.
        items = (replace(item, name=now.get(item.name, item.name), alias=item.name) for item in state.inputs)
        return replace(state, inputs=tuple(items))

    reads = {f"{kind}{old}": InputColumns(old, None) for old in now for kind in (SOURCE, REF)}
    inputs = tuple(sorted(renamed_inputs, key=lambda item: (item.name, item.through)))
    return replace(_with_states(facts, moved), inputs=inputs, sql=_written(facts.sql, reads, now, {}, {}))


def _with_states(facts: Facts, with_new_names: Callable[[StateFacts], StateFacts]) -> Facts:
    states = {"state": facts.state, "began": facts.began, "keyed": facts.keyed}
    return replace(facts, **{key: state and with_new_names(state) for key, state in states.items()})


def with_names_of_now(manifest: Manifest, model: Model, facts: Facts) -> Facts:
    own, nodes = _names(model), {item.name: manifest.nodes.get(item.node) for item in model.inputs}
    inputs = {name: names for name, node in nodes.items() if isinstance(node, Model) and (names := _names(node))}
    if not own and not inputs:
        return facts

    def with_new_names(state: StateFacts) -> StateFacts:
        read = (replace(item, renamed=inputs.get(item.name, item.renamed)) for item in state.inputs)
        return replace(state, inputs=tuple(read), renamed=own)

    reads = {}
    for name, node in nodes.items():
        before = {new: old for old, new in inputs.get(name, {}).items()}
        columns = [(before.get(column.name.lower(), column.name), None) for column in getattr(node, "columns", ())]
        kind = REF if isinstance(node, Model) else SOURCE
        reads[f"{kind}{name}"] = InputColumns(name, tuple(columns) or None, complete=False)
    return replace(
        _of_table(_with_states(facts, with_new_names), own),
        inputs=tuple(_input(item, inputs.get(item.name, {})) for item in facts.inputs),
        sql=_written(facts.sql, reads, {}, inputs, own),
    )


def _names(model: Model) -> dict[str, str]:
    return {old: new.lower() for old, new in earlier_names(model).items()}


def _input(item: InputFacts, names: Names) -> InputFacts:
    if not names:
        return item
    mark = item.watermark and replace(item.watermark, column=_now(item.watermark.column, names))
    return replace(item, watermark=mark, dedup=tuple(sorted(names.get(name.lower(), name) for name in item.dedup)))


def _of_table(facts: Facts, own: Names) -> Facts:
    def with_new_names(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(own.get(name, name) for name in names)

    write, table = facts.write, dict(facts.table)
    if "sort_by" in table:
        table["sort_by"] = [{**part, "column": _now(part["column"], own)} for part in table["sort_by"]]
    if "columns" in table:
        table["columns"] = {own.get(name, name): kind for name, kind in table["columns"].items()}
    if "expectations" in table:
        table["expectations"] = sorted([name, _condition(text, own), on] for name, text, on in table["expectations"])
    return replace(
        facts,
        partition_by=tuple(replace(part, column=_now(part.column, own)) for part in facts.partition_by),
        expectations=tuple(sorted((_condition(text, own), on) for text, on in facts.expectations)),
        write=replace(
            write,
            unique_key=tuple(sorted(with_new_names(write.unique_key))),
            sequence_by=with_new_names(write.sequence_by),
            check=write.check if isinstance(write.check, str) else tuple(sorted(with_new_names(write.check))),
            exclude=tuple(sorted(with_new_names(write.exclude))),
            delete_when=write.delete_when and _condition(write.delete_when, own),
        ),
        table=table,
    )


def _now(name: str, own: Names) -> str:
    return own.get(name.lower(), name)


def _condition(text: str, own: Names) -> str:
    """A condition on columns of the model."""
    before, after = _CONDITION.split("{}")
    columns = InputColumns("", tuple((name, None) for name in own), complete=False)
    written = _written(_CONDITION.format(text), {"@own": columns}, {}, {"": own}, {})
    return written[len(before) : -len(after)] if written != _CONDITION.format(text) else text


def _written(
    sql: str, reads: Mapping[str, InputColumns], now: Names, columns: Mapping[str, Names], own: Names
) -> str:  # fmt: skip
    """Return a query with other names: of inputs (`now`), their `columns`, and its `own`, by the earlier ones.

    `reads`: what it reads, by the name there; `node` is the name of the input.
    """
    tree = tree_of(sql)
    if tree is None:
        return sql
    edits = dict(_edits(tree, sql, reads, now, columns, own))
    for (start, end), text in sorted(edits.items(), reverse=True):
        sql = sql[:start] + text + sql[end:]
    return spelling_of(sql) if edits else sql


def _edits(
    tree: exp.Expr, sql: str, reads: Mapping[str, InputColumns], now: Names, columns: Mapping[str, Names], own: Names
) -> Iterator[tuple[tuple[int, int], str]]:  # fmt: skip
    for name in (table.this for table in tree.find_all(exp.Table)):
        if isinstance(name, exp.Identifier) and name.name in reads and reads[name.name].node in now:
            old = reads[name.name].node
            yield (name.meta["start"], name.meta["end"] + 1), f"`{name.name.removesuffix(old)}{now[old]}`"
    bound = bind(tree, reads, {}, sql, with_uses=True)
    unaliased, uses = bound.noted.unaliased, bound.noted.uses or {}
    new_column_names = {
        at: own[column.name.lower()]
        for at, column in zip(bound.named_at, bound.columns.columns or (), strict=False)
        if isinstance(at, int) and at >= 0 and column.name.lower() in own
    }
    for use in uses.values():
        node, name = use.origin or ("", "")
        new = columns.get(node, {}).get(name.lower()) if use.origin is not None else None
        if use.kind is UseKind.ALIAS and use.named_at in now:
            new = now[str(use.named_at)].rpartition(".")[2]
        elif use.named_at in new_column_names and use.named_at not in unaliased:
            new = new_column_names[use.named_at]
        if use.start in unaliased:
            # A column without an alias is named by its input, and keeps the name that it has in the table.
            written = sql[use.start : use.end].strip("`")
            column, result = new or written, new_column_names.get(use.start, written)
            if column.lower() != result.lower():
                yield (use.start, use.end), f"`{column}` as `{result}`"
            elif new is not None:
                yield (use.start, use.end), f"`{new}`"
        elif new is not None:
            yield (use.start, use.end), f"`{new}`"
