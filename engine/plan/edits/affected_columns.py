"""Which columns of other models, and which exposures, an edit of a query affects, by column lineage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.compile import Manifest, Model
from engine.compile.nodes.facts import Facts
from engine.compile.nodes.fingerprint import published_facts

# Facts beside the text of the query that decide which rows it gives.
_OF_ROWS = ("inputs", "windows", "output_mode", "settings", "expectations", "write")


@dataclass(frozen=True, slots=True)
class AffectedModel:
    """A model whose values may differ; `columns` None: all of them, as other rows may be there."""

    name: str
    columns: tuple[str, ...] | None


def affected_models(manifest: Manifest, model: Model, before: Facts) -> tuple[AffectedModel, ...]:
    changed: dict[str, frozenset[str] | None] = {model.id: changed_columns(before, model.facts)}
    if changed[model.id] == frozenset():
        return ()
    affected = []
    for node in manifest.order:
        below = manifest.nodes[node]
        if not isinstance(below, Model) or below.id == model.id or not set(below.depends_on) & set(changed):
            continue
        columns = _reached(below, changed)
        if columns != frozenset():
            changed[below.id] = columns
            names = None if columns is None else tuple(c.name for c in below.columns if c.name.lower() in columns)
            affected.append(AffectedModel(below.name, names))
    return tuple(affected)


def affected_exposures(
    manifest: Manifest, model: Model, before: Facts, affected: Iterable[AffectedModel]
) -> tuple[str, ...]:
    """Return the exposures that read what an edit affects; which columns they read is not known."""
    if not manifest.exposures:
        return ()
    tables = {f"model.{one.name}" for one in affected}
    changed = changed_columns(before, model.facts)
    if changed is None or changed & _columns(before):
        tables.add(model.id)
    return tuple(exposure.name for exposure in manifest.exposures if tables & set(exposure.depends_on))


def _columns(facts: Facts) -> frozenset[str]:
    selected = _selected(facts.sql)
    return frozenset(selected.columns if selected else ())


def changed_columns(before: Facts, after: Facts) -> frozenset[str] | None:
    """Return the columns of a query, in lower case, that an edit changed; None: it may give other rows."""
    # Facts of an artifact have no credentials, which decide on no value.
    old, new = published_facts(before), published_facts(after)
    inner = _changed_inside(old, new)
    was, now = _selected(old.sql), _selected(new.sql)
    if inner is None or any(getattr(old, key) != getattr(new, key) for key in _OF_ROWS):
        return None
    if was is None or now is None or was.rest != now.rest:
        return None
    changed = {name for name in {*was.columns, *now.columns} if was.columns.get(name) != now.columns.get(name)}
    # An alias may be a group key, or part of another column.
    if not now.decisive.isdisjoint(changed | inner):
        return None
    while more := {
        name for name, read in now.reads.items() if name not in changed and not read.isdisjoint(changed | inner)
    }:
        changed |= more
    return frozenset(changed)


def _changed_inside(before: Facts, after: Facts) -> frozenset[str] | None:
    """The columns of the ephemeral models inside a query that an edit changed; None: one may give other rows."""
    old, new = before.inlined, after.inlined
    if old.keys() != new.keys():
        # The query that names another one was edited, too.
        return None
    changed_names: frozenset[str] = frozenset()
    for name, facts in new.items():
        changed = changed_columns(old[name], facts) if old[name] != facts else frozenset()
        if changed is None:
            return None
        changed_names |= changed
    return changed_names


@dataclass(frozen=True, slots=True)
class _Select:
    """A SELECT, with all names in lower case.

    `columns`: their texts: sqlglot's trees lack functions and drop arguments. `reads`: the names in each column;
    `decisive`: those elsewhere, and the columns by which rows are grouped or ordered.
    """

    columns: Mapping[str, str]
    rest: str
    reads: Mapping[str, frozenset[str]]
    decisive: frozenset[str]


def _selected(sql: str) -> _Select | None:
    """A query as a SELECT with names; None: it is something else."""
    from sqlglot import exp

    from engine.compile.columns.find_columns import bind
    from engine.compile.sql.dialect import tokenize, tree_of
    from engine.compile.sql.select_items import item_places

    tree = tree_of(sql)
    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or any(item.is_star for item in tree.expressions):
        return None
    items = item_places(tokenize(sql))
    names = [item.alias_or_name.lower() for item in tree.expressions]
    if len(set(names)) < len(names) or len(names) != len(items) or "" in names:
        return None

    def read(node: exp.Expr) -> frozenset[str]:
        return frozenset(part.name.lower() for column in node.find_all(exp.Column) for part in column.parts)

    keys = bind(tree, {}, {}, sql).noted.groups.get(id(tree), ())
    order = tree.args.get("order")
    places = [key.column.item for key in keys if key.column is not None]
    places += [int(key.this.name) - 1 for key in order.expressions if key.this.is_int] if order is not None else []
    elsewhere = (node for node in tree.iter_expressions() if node.arg_key != "expressions")
    return _Select(
        dict(zip(names, (sql[item.start : item.unaliased] for item in items), strict=True)),
        f"{sql[: items[0].start]} {sql[items[-1].end :]}",
        dict(zip(names, map(read, tree.expressions), strict=True)),
        frozenset(names[place] for place in places if place in range(len(names))).union(*map(read, elsewhere)),
    )


def _reached(below: Model, changed: Mapping[str, frozenset[str] | None]) -> frozenset[str] | None:
    """The columns of a model that come from changed ones; None: its rows depend on them."""
    if any(changed.get(node, frozenset()) is None for node in below.depends_on):
        return None

    def comes(node: str, column: str) -> bool:
        return column.partition(".")[0].lower() in (changed.get(node) or ())

    if any(comes(origin.node, origin.column) for origin in below.indirect):
        return None
    reached = (c.name.lower() for c in below.columns if any(comes(o.node, o.column) for o in c.origins))
    return frozenset(reached)


def affected_text(affected: tuple[AffectedModel, ...], exposures: tuple[str, ...] = (), most: int = 6) -> Iterator[str]:
    """Yield what an edit affects: a line of models, a line of exposures; nothing if there is nothing."""
    if affected:
        models = [
            f"{one.name} ({', '.join(one.columns) if one.columns is not None else 'its rows'})" for one in affected
        ]
        more = f" and {len(models) - most} more" if len(models) > most else ""
        yield f"affects {', '.join(models[:most])}{more}"
    if exposures:
        more = f" and {len(exposures) - most} more" if len(exposures) > most else ""
        word = "exposure" if len(exposures) == 1 else "exposures"
        yield f"read by the {word} {', '.join(exposures[:most])}{more}"
