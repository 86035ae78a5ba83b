"""How the rows of a table are kept from its changes: what a model over a change feed leaves to the source.

A model that passes the rows of a feed on, one for one, merges them by the source's key, order and deletes. A query that
filters, joins or groups would lose deletes, which have no columns beside the key: it has to say how its rows are
written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from engine.compile.columns.column_texts import columns_named
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.config.key_combinations import NEEDS, SAYS_HOW
from engine.compile.config.model_config import ModelConfig
from engine.compile.nodes.column_facts import Derivation
from engine.compile.nodes.manifest import Input, Source
from engine.compile.nodes.model_settings import Expectation, UnavailableValues, Write
from engine.compile.references.expand_windows import Report
from engine.compile.sql.aggregates import is_one_for_one
from engine.compile.sql.parse import first_offset
from engine.relations import quoted
from engine.sources import source_traits
from engine.sources.traits import ChangeFeed

_KEEP = (
    "Keep the rows in a model of their own (select *), and read that in a batch table; or write 'output_mode: append' "
    "to keep every change."
)


def merged_changes(
    config: ModelConfig, bound: BoundQuery, inputs: Iterable[Input], sources: Mapping[str, Source], report: Report
) -> Write:
    """Complete the write of a streaming model that reads a change feed, unless its header says how rows are written."""
    write = config.write
    streams = [item for item in inputs if item.stream]
    feeds = [(item, feed) for item in streams if (feed := feed_of(sources.get(item.node))) is not None]
    if any(key in config.places for key in SAYS_HOW):
        return write
    if not feeds:
        for key, (needed, hint) in NEEDS.items():
            if key in config.places and _is_set(write, key):
                report("setting-needs", f"'{key}' needs '{needed}'", hint, config.places[key])
        return write
    item, feed = feeds[0]
    if len(streams) > 1 or item.through or not is_one_for_one(bound.tree):
        message = f"the records of '{item.name}' are changes of rows, and the query does not pass them on one for one"
        report("change-query", message, _KEEP, first_offset(bound.tree))
        return write
    copies = _copies(bound, sources[item.node])
    if copies is None:
        return write
    order = (feed.changed_at, *feed.sequence_by) if write.history else feed.sequence_by
    if missing := [name for name in (*feed.key, *order, *feed.exclude) if name.lower() not in copies]:
        names = ", ".join(f"'{name}'" for name in missing)
        message = f"the SELECT lacks {names}, by which changes of '{item.name}' are merged"
        report(
            "change-columns", message, f"Add {', '.join(map(quoted, missing))}, or select *.", first_offset(bound.tree)
        )
        return write
    return _merge(write, feed, copies, order, (bound, sources[item.node]))


def _merge(
    write: Write, feed: ChangeFeed, copies: Mapping[str, str], order: Iterable[str], origin: tuple[BoundQuery, Source]
) -> Write:
    excluded = {name: copies[name.lower()] for name in feed.exclude}
    unavailable = copies.get(feed.unavailable.lower())
    merged = replace(
        write,
        unique_key=tuple(copies[name.lower()] for name in feed.key),
        sequence_by=tuple(copies[name.lower()] for name in order),
        delete_when=_renamed(feed.delete_when, excluded),
        truncate_when=_renamed(feed.truncate_when, excluded) or None,
        exclude=tuple(dict.fromkeys((*write.exclude, *excluded.values(), *([unavailable] if unavailable else [])))),
    )
    if unavailable is None:
        return merged
    computed_from = _computed_from(*origin, {*merged.unique_key, *merged.sequence_by, unavailable})
    insert_when = _renamed(feed.insert_when, excluded)
    return replace(merged, unavailable=UnavailableValues(unavailable, insert_when, computed_from))


def _renamed(condition: str, names: Mapping[str, str]) -> str:
    """A condition on columns of a feed, with the names that a query gives them."""
    for name, output in names.items():
        condition = condition.replace(name, quoted(output) if output != name else name)
    return condition


def _computed_from(bound: BoundQuery, source: Source, apart: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The columns of a source that those of a query have their values from."""
    names = {column.name.lower(): column.name for column in source.columns}
    computed_from = {}
    for column in bound.columns.columns or ():
        # A field of a struct has its path.
        read = (origin.column.lower() for origin in column.origins if origin.node == source.id)
        columns = [names.get(name) or names.get(name.partition(".")[0], name) for name in read]
        if columns and column.name not in apart:
            computed_from[column.name] = tuple(dict.fromkeys(columns))
    return computed_from


def without_deletes(checks: tuple[Expectation, ...], write: Write, config: ModelConfig) -> tuple[Expectation, ...]:
    """Expectations that the deletes and truncates of a change feed meet, as they have no columns beside the key.

    Changes meet those of columns whose values were not sent.
    """
    if write.delete_when is None or config.write.delete_when is not None:
        return checks
    return tuple(replace(one, check=_check_of_changes(one.check, write)) for one in checks)


def _check_of_changes(check: str, write: Write) -> str:
    values, parts = write.unavailable, [part for part in (write.delete_when, write.truncate_when) if part]
    if values is not None:
        checked_columns = columns_named(check)
        columns = [
            name for output, some in values.computed_from.items() if output.lower() in checked_columns for name in some
        ]
        if columns:
            names = ", ".join("'" + name.replace("'", "\\'") + "'" for name in dict.fromkeys(columns))
            parts.append(f"arrays_overlap({quoted(values.column)}, array({names}))")
    return " or ".join([*parts, f"({check})"])


def merges_like(config: ModelConfig) -> str:
    """The one stream of a model whose header leaves it to the source how rows are written; empty: it does not."""
    leaves = config.materialized.traits.streaming and not any(key in config.places for key in SAYS_HOW)
    return config.streams[0].name if leaves and len(config.streams) == 1 else ""


def feed_of(source: Source | None) -> ChangeFeed | None:
    feed = source_traits(source.spec.format).change_feed(source.spec) if source is not None else None
    return feed if feed is not None and feed.key else None


def _is_set(write: Write, key: str) -> bool:
    return bool(getattr(write, key)) and key not in {"sequence_by", "delete_when"}


def _copies(bound: BoundQuery, source: Source) -> dict[str, str] | None:
    """The columns of the output that are columns of a source, by their names there; None: not all are certain."""
    columns = bound.columns.columns
    if columns is None:
        return None
    types = {column.name.lower(): column.type for column in source.columns}
    copies: dict[str, str] = {}
    for column in columns:
        direct = [origin for origin in column.origins if origin.kind == "direct"]
        if column.derivation is not Derivation.COPY or len(direct) != 1 or direct[0].node != source.id:
            continue
        # A cast is a copy for lineage, and may give two keys one value.
        name = direct[0].column.lower()
        if column.type == types.get(name):
            copies.setdefault(name, column.name)
    return copies
