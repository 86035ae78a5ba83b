"""What the metadata of tables say, from plain JSON: Iceberg's specification, Appendix C."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from engine.characters import whole_number
from engine.lake.catalog.locations import path_of
from engine.lake.catalog.metadata_document import read_document
from engine.lake.catalog.object_warehouse import ObjectWarehouse

# The markers of commits of `engine erase` and of `engine backfill`.
ERASE, BACKFILL = "erase", "backfill"
_MAIN = "main"
# Iceberg keeps 100 unless a table says otherwise.
_MAX_OLDER_FILES = 1_000
# What the engine names its own branch and tags with: they keep snapshots, and no query of a model names them.
_ENGINE_PREFIX = "engine_"
# Files without field ids are read by it (Iceberg's specification, Column Projection).
_NAME_MAPPING = "schema.name-mapping.default"
# Of a field, what no value that is read depends on.
_UNREAD = {"doc", "write-default"}
_AS_OF = re.compile(r"\bof\b", re.IGNORECASE)
# The counts of a snapshot's summary that say which files it changed.
_COUNTS = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
_LAST_MS = 253_402_300_799_999  # the end of the year 9999: no date can be later


def row_count(summary: Mapping[str, str]) -> int | None:
    """Return how many rows a reader of a snapshot gets, by its summary; None: that does not say.

    A MERGE leaves the old rows in their files and marks them as deleted. Rows that equality deletes remove are counted
    by nobody (Iceberg's specification, Optional Snapshot Summary Fields).
    """
    rows, removed = (whole_number(summary.get(f"total-{key}", "")) for key in ("records", "position-deletes"))
    if rows is None or whole_number(summary.get("total-equality-deletes", "0")) != 0:
        return None
    return max(rows - (removed or 0), 0)


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot: id, its parent's, operation (append, overwrite, replace, delete), summary, commit time (ms).

    `schema` is the id of the schema that it was written with; None: its writer did not note it.
    """

    id: int
    parent: int | None
    operation: str
    summary: Mapping[str, str]
    at: int = 0
    schema: int | None = None

    def marker(self, key: str) -> str | None:
        return self.summary.get(f"engine.{key}")

    @property
    def rows(self) -> int | None:
        return row_count(self.summary)

    @property
    def rewrites_files(self) -> bool:
        """Whether it changes files and no rows, as a compaction does (Iceberg specification: Snapshots, operation)."""
        return self.operation == "replace"

    @property
    def erases(self) -> bool:
        """Whether `engine erase` made it: it repeats the markers of the commit before it, and adds no row."""
        return self.marker(ERASE) is not None

    @property
    def backfills(self) -> bool:
        return self.marker(BACKFILL) is not None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as it is: `history` is the current snapshot and its ancestors, newest first.

    `snapshots` are the ids of all that the table knows, those of branches and of what was rolled back too; `main` is
    the snapshot that readers see, whatever branch was asked for, and `branches` are the names of the others. `columns`
    have their types as PyIceberg prints them, `fields` as the metadata has them; `read` are the fields that a query of
    the newest snapshot sees. `schemas` has the fields of every schema of the table, by its id, and `schema_of` the id
    of that of each snapshot that notes it. `refs` are the tags and branches that others made, with their snapshots;
    `layout` is a hash of how new files are partitioned and sorted. `published_snapshots` are those that readers have
    seen at some time, as far as the table remembers.
    """

    uuid: str
    properties: Mapping[str, str]
    history: tuple[SnapshotFacts, ...]
    columns: tuple[tuple[str, str], ...]
    snapshots: frozenset[int] = frozenset()
    main: int | None = None
    branches: frozenset[str] = frozenset()
    docs: tuple[tuple[str, str], ...] = ()
    fields: tuple[Mapping[str, Any], ...] = ()
    read: tuple[Mapping[str, Any], ...] = ()
    schemas: Mapping[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    schema_of: Mapping[int, int] = field(default_factory=dict)
    refs: Mapping[str, int] = field(default_factory=dict)
    layout: str = ""
    format_version: int | None = None
    published_snapshots: frozenset[int] = frozenset()

    @property
    def snapshot(self) -> int | None:
        return self.history[0].id if self.history else None

    def holds(self, snapshot: int) -> bool:
        return any(snapshot in {held_snapshot.id, held_snapshot.parent} for held_snapshot in self.history)

    def only_files_since(self, snapshot: int | None) -> bool:
        """Whether no snapshot since an earlier one has other rows than it: compactions, and commits of no row."""
        for newer in self.history:
            if newer.id == snapshot:
                return True
            counts = (newer.summary.get(count, "0") for count in _COUNTS)
            # What is 0 is left out, by writers that note what there is in all.
            none = "total-data-files" in newer.summary and all(count == "0" for count in counts)
            if newer.erases or not (newer.rewrites_files or none):
                return False
        return not self.history and snapshot is None

    def position(self, *, refs: bool = False) -> dict[str, Any]:
        """Return what decides what a query of the table gives, as plain JSON: equal, and it gives the same rows.

        A column that is dropped and added again is another one, and has another id: its old values are gone without a
        new snapshot. Partitioning, order, comments and most properties are nothing that a reader sees.
        """
        identity = {"table": self.uuid, "snapshot": self.snapshot, "columns": self._columns}
        return {**identity, "refs": dict(sorted(self.refs.items()))} if refs and self.refs else identity

    @property
    def shape(self) -> dict[str, Any]:
        """What the table's writer made of it beside the rows and what the project names: its columns and its layout."""
        return {"columns": self._columns, "layout": self.layout}

    @property
    def _columns(self) -> str:
        """A hash of the columns with their ids, those of nested fields too, and of what finds them in files."""
        return _hash([list(map(_without_comments, self.read)) or self.columns, self.properties.get(_NAME_MAPPING)])

    def columns_hash(self, fields: Sequence[Mapping[str, Any]]) -> str:
        return _hash([list(map(_without_comments, fields)), self.properties.get(_NAME_MAPPING)])

    def replaced_columns(self, schema: int | None) -> list[tuple[str, ...]]:
        """Return the lower-case paths of an earlier schema whose name another column has now; schema None: nothing."""
        fields = self.schemas.get(schema) if schema is not None else None
        if fields is None or fields == list(self.fields):
            return []
        present_ids = dict(_ids(self.fields))
        return [path for path, number in _ids(fields) if present_ids.get(path, number) != number]

    def with_names(self, names: Mapping[str, str]) -> TableFacts:
        fields, read_fields = (
            tuple({**table_field, "name": names.get(table_field["name"], table_field["name"])} for table_field in some)
            for some in (self.fields, self.read)
        )
        columns, docs = (
            tuple((names.get(name, name), text) for name, text in some) for some in (self.columns, self.docs)
        )
        return replace(self, fields=fields, read=read_fields, columns=columns, docs=docs)

    @property
    def rows(self) -> int | None:
        return self.history[0].rows if self.history else None

    @property
    def complete(self) -> bool:
        return not self.history or self.history[-1].parent is None


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """A view: its properties, the comments of its columns by path, and what is another one with each new query."""

    properties: Mapping[str, str]
    docs: tuple[tuple[str, str], ...] = ()
    version: str = ""

    @property
    def shape(self) -> dict[str, Any]:
        return {"view": self.version}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> ViewFacts:
        version = next(v for v in metadata["versions"] if v["version-id"] == metadata["current-version-id"])
        schema = next(s for s in metadata["schemas"] if s["schema-id"] == version["schema-id"])
        parts = ("representations", "default-catalog", "default-namespace")
        query = [*(version.get(part) for part in parts), _without_comments(schema["fields"])]
        version_ = f"{metadata['view-uuid']} {_hash(query)}"
        return cls(texts(metadata.get("properties")), tuple(documented(schema)), version_)


@dataclass(frozen=True, slots=True)
class TableMetadata:
    warehouse: Path | ObjectWarehouse
    content: Mapping[str, Any]

    @classmethod
    def inside(cls, warehouse: Path | ObjectWarehouse, content: Mapping[str, Any]) -> TableMetadata:
        """The metadata of a table of a local catalog, whose folder must be below the warehouse.

        Raises:
            OutsideError: the folder is not below the warehouse.
            Exception: of any kind where it is not the metadata of a table.
        """
        location = str(content["location"])
        if isinstance(warehouse, ObjectWarehouse):
            warehouse.resolve(location)
        else:
            path_of(warehouse, location)
        return cls(warehouse, content)

    def facts(self, branch: str | None, back_to: int | None) -> TableFacts:
        metadata = self.content
        refs = {str(key): int(ref["snapshot-id"]) for key, ref in (metadata.get("refs") or {}).items()}
        branches = {str(key) for key, ref in (metadata.get("refs") or {}).items() if ref.get("type") == "branch"}
        main = _snapshot_id(metadata.get("current-snapshot-id"))
        schemas = {schema.get("schema-id"): schema for schema in metadata.get("schemas") or [metadata["schema"]]}
        schema = schemas[metadata.get("current-schema-id", next(iter(schemas)))]
        read_schema = schemas.get(self._schema_id(refs[branch]), schema) if branch in refs else schema
        return TableFacts(
            uuid=str(UUID(metadata["table-uuid"])),
            properties=texts(metadata.get("properties")),
            history=tuple(self._history(refs.get(branch or "", main), back_to)),
            columns=tuple((str(field["name"]), _type(field["type"])) for field in schema["fields"]),
            snapshots=frozenset(self._snapshots()),
            main=main,
            branches=frozenset(branches) - {_MAIN},
            docs=tuple(documented(schema)),
            fields=tuple(schema["fields"]),
            read=tuple(read_schema["fields"]),
            schemas={int(key): any_schema["fields"] for key, any_schema in schemas.items() if isinstance(key, int)},
            schema_of={
                key: any_schema["schema-id"]
                for key, any_schema in self._snapshots().items()
                if any_schema.get("schema-id") is not None
            },
            refs=self._refs(),
            layout=self._layout(),
            format_version=int(metadata.get("format-version", 1)),
            published_snapshots=frozenset(int(entry["snapshot-id"]) for entry in metadata.get("snapshot-log") or ()),
        )

    def _refs(self) -> dict[str, int]:
        refs = self.content.get("refs") or {}
        return {
            name: int(ref["snapshot-id"])
            for name, ref in refs.items()
            if name != _MAIN and not name.startswith(_ENGINE_PREFIX)
        }

    def _layout(self) -> str:
        metadata = self.content
        specs = {spec.get("spec-id"): spec for spec in metadata.get("partition-specs") or ()}
        orders = {order.get("order-id"): order for order in metadata.get("sort-orders") or ()}
        spec = specs.get(metadata.get("default-spec-id"), {}).get("fields", ())
        order = orders.get(metadata.get("default-sort-order-id"), {}).get("fields", ())
        return _hash([[{k: v for k, v in part.items() if k != "field-id"} for part in spec], list(order)])

    def _schema_id(self, snapshot: int) -> object:
        return self._snapshots().get(snapshot, {}).get("schema-id")

    def _snapshots(self) -> dict[int, Mapping[str, Any]]:
        return {int(snapshot["snapshot-id"]): snapshot for snapshot in self.content.get("snapshots") or ()}

    def _history(self, head: int | None, back_to: int | None) -> Iterator[SnapshotFacts]:
        by_id = self._snapshots()
        older = self._older_snapshots()
        snapshot_id, reached = head, back_to is None
        seen_ids: set[int] = set()
        while snapshot_id is not None:
            if snapshot_id in seen_ids:
                message = f"the snapshot {snapshot_id} is its own ancestor"
                raise ValueError(message)
            seen_ids.add(snapshot_id)
            while snapshot_id not in by_id and not reached:
                more = next(older, None)
                if more is None:
                    break
                by_id = {**more, **by_id}
            document = by_id.get(snapshot_id)
            if document is None:
                return
            at = int(document["timestamp-ms"])
            if not 0 <= at <= _LAST_MS:
                message = f"the snapshot {snapshot_id} has an invalid timestamp"
                raise ValueError(message)
            reached = reached or snapshot_id == back_to
            summary = texts(document.get("summary"))
            parent = _snapshot_id(document.get("parent-snapshot-id"))
            schema = document.get("schema-id")
            yield SnapshotFacts(snapshot_id, parent, summary.pop("operation", ""), summary, at, schema)
            snapshot_id = parent

    def _older_snapshots(self) -> Iterator[dict[int, Mapping[str, Any]]]:
        """The snapshots of the metadata files before, the newest first: they know what expired since."""
        for entry in islice(reversed(self.content.get("metadata-log") or ()), _MAX_OLDER_FILES):
            try:
                older_metadata = TableMetadata(
                    self.warehouse, read_document(self.warehouse, str(entry["metadata-file"]))
                )
                yield older_metadata._snapshots()
            except (OSError, EOFError, ValueError, LookupError, TypeError, RecursionError):
                continue


def names_refs(sql: str) -> bool:
    return _AS_OF.search(sql) is not None


def _snapshot_id(value: object) -> int | None:
    return int(value) if isinstance(value, int) and value != -1 else None


def texts(value: object) -> dict[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, Mapping) else {}


def _type(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "struct":
            fields = (f"{f['id']}: {f['name']}: {'required' if f['required'] else 'optional'} {_type(f['type'])}"
                      for f in kind["fields"])  # fmt: skip
            return f"struct<{', '.join(fields)}>"
        case "list":
            return f"list<{_type(kind['element'])}>"
    return f"map<{_type(kind['key'])}, {_type(kind['value'])}>"


def documented(struct: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for struct_field in struct["fields"]:
        path = f"{above}{struct_field['name']}"
        yield path, str(struct_field.get("doc") or "")
        if isinstance(struct_field["type"], dict) and struct_field["type"]["type"] == "struct":
            yield from documented(struct_field["type"], f"{path}.")


def _ids(fields: Iterable[Mapping[str, Any]], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the ids of fields and of those inside them, by path; in lists and maps it has `element`, `key`, `value`."""
    for struct_field in fields:
        path = (*above, str(struct_field["name"]).lower())
        yield path, int(struct_field["id"])
        yield from _inside(struct_field["type"], path)


def _inside(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from _ids(kind["fields"], path)
    for part in ("element", "key", "value"):
        if part in kind:
            yield from _inside(kind[part], (*path, part))


def _without_comments(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: _without_comments(inner) for key, inner in node.items() if key not in _UNREAD}
    return [_without_comments(inner) for inner in node] if isinstance(node, list) else node


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
