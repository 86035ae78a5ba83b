"""The facts of a model: what a build stores of the query that wrote a table, and a later one compares.

Fingerprints are of their JSON without fields at their defaults: a new field needs a default, a changed meaning a new
`FORM`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

# Of the normal form of SQL and of the facts. Those of another form are compared with nothing (docs/how-to/upgrade.md).
FORM = 3


class _Facts(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Facts that are not known here would be lost with the next write."""


class WatermarkFacts(_Facts, frozen=True):
    column: str
    delay: str
    expression: str | None
    max_future: str | None = None
    on_null: str | None = None


class InputFacts(_Facts, frozen=True):
    """An input; `source` is what its kind has of it, `deferred` the table that is read in its place."""

    name: str
    stream: bool
    watermark: WatermarkFacts | None
    dedup: tuple[str, ...]
    through: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    deferred: str = ""


class PartitionFacts(_Facts, frozen=True):
    transform: str
    column: str
    number: int | None
    name: str | None = None


class WriteFacts(_Facts, frozen=True):
    """What decides which rows the table has, beside the query."""

    unique_key: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    delete_when: str = ""
    history: bool | str = ""
    check: tuple[str, ...] | str = ()
    deletes: str = ""
    on_empty_extract: str = ""
    exclude: tuple[str, ...] = ()
    overwrite: str = ""


NO_WRITE = WriteFacts()


class StateWatermark(_Facts, frozen=True):
    column: str
    delay: int | float
    expression: str = ""


class StateInput(_Facts, frozen=True):
    """An input of the query that runs; `columns` None: they are not known.

    Not stored: `renamed`, the names of its columns now, by the earlier ones in lower case; `alias`, its earlier name.
    """

    view: str
    name: str
    stream: bool
    columns: tuple[tuple[str, str | None], ...] | None
    exact: bool = False
    watermark: StateWatermark | None = None
    dedup: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    alias: str = ""


class StateFacts(_Facts, frozen=True):
    """The query that runs. Not stored: `renamed`, the names of the table's columns now, by the earlier ones."""

    sql: str
    inputs: tuple[StateInput, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)


class StateOrder(StateFacts, frozen=True, kw_only=True):
    """The query with the order of the aggregates in its state; `moved`: its text is not that of the model."""

    groups: Any
    fingerprint: str
    spark: str
    moved: bool


class Facts(_Facts, frozen=True):
    """The facts that `engine.compile.stateful.model_facts` makes; false if there are none.

    `keyed` is the `state` of a query without state, for the keys of its table. `began`, the query with which its state
    began, is not stored here.
    """

    form: int
    materialized: str
    relation: str
    sql: str
    windows: Mapping[str, str]
    inputs: tuple[InputFacts, ...]
    output_mode: str | None
    partition_by: tuple[PartitionFacts, ...]
    stateful: bool
    write: WriteFacts = NO_WRITE
    expectations: tuple[tuple[str, str], ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    inlined: Mapping[str, Facts] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    state: StateFacts | None = None
    keyed: StateFacts | None = None
    began: StateFacts | None = None

    def __bool__(self) -> bool:
        return self.form > 0


NO_FACTS = Facts(0, "", "", "", {}, (), None, (), stateful=False)


def read_facts(data: Mapping[str, Any] | None) -> Facts | None:
    """Return the facts in a record; None: there are none, of another form, or it is damaged."""
    try:
        facts = msgspec.convert(data, Facts) if data else None
    except (msgspec.ValidationError, RecursionError):
        return None
    return facts if facts is not None and facts.form == FORM else None


def plain(facts: Struct) -> dict[str, Any]:
    """Return facts as plain JSON."""
    data: dict[str, Any] = msgspec.to_builtins(facts, enc_hook=str.__str__) if facts else {}
    return data
