"""What the metadata of tables say, from plain JSON: Iceberg's specification, Appendix C."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from engine.lake.catalog.locations import resolve
from engine.lake.catalog.metadata_document import read_document
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.lake.commits import STAGED

_MAIN = "main"
# Iceberg keeps 100 unless a table says otherwise.
_MOST_OLDER = 1_000
_LAST_MS = 253_402_300_799_999  # the end of the year 9999: no date can be later


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot: id, its parent's, operation (append, overwrite, replace, delete), summary, commit time (ms)."""

    id: int
    parent: int | None
    operation: str
    summary: Mapping[str, str]
    at: int = 0

    def marker(self, key: str) -> str | None:
        """The value of `engine.<key>` in the summary."""
        return self.summary.get(f"engine.{key}")


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as it is: `history` is the current snapshot and its ancestors, newest first.

    `snapshots` are the ids of all that the table knows, those of branches and of what was rolled back too; `main` is
    the snapshot that readers see, whatever branch was asked for, and `branches` are the names of the others. `columns`
    have their types as PyIceberg prints them, `fields` as the metadata has them.
    `definition` is a hash of what decides, beside the snapshot, what a query reads: the columns with their ids, which
    one that is dropped and added again does not keep, and other branches and tags.
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
    definition: str = ""

    @property
    def snapshot(self) -> int | None:
        """Id of the current snapshot."""
        return self.history[0].id if self.history else None

    def holds(self, snapshot: int) -> bool:
        """Whether a snapshot is in the history; the oldest that is known names its parent, expired or not."""
        return any(snapshot in {known.id, known.parent} for known in self.history)

    @property
    def position(self) -> dict[str, Any]:
        """What a full read of the table depends on, as plain JSON; a column may be added without a snapshot."""
        columns = hashlib.sha256(repr(self.columns).encode()).hexdigest()[:16]
        return {"table": self.uuid, "snapshot": self.snapshot, "columns": columns}

    @property
    def complete(self) -> bool:
        """Whether the history goes back to the table's first snapshot."""
        return not self.history or self.history[-1].parent is None


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """A view: its properties, the comments of its columns by path, and what is another one with each new query."""

    properties: Mapping[str, str]
    docs: tuple[tuple[str, str], ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A metadata file (Iceberg's specification, Appendix C), and the warehouse that it is in."""

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
            resolve(warehouse, location)
        return cls(warehouse, content)

    def facts(self, branch: str | None, back_to: int | None) -> TableFacts:
        """Return what it says; see `engine.lake.lake_reader.Lake.table`."""
        known = self.content
        refs = {str(key): int(ref["snapshot-id"]) for key, ref in (known.get("refs") or {}).items()
                if ref.get("type") == "branch"}  # fmt: skip
        main = _snapshot_id(known.get("current-snapshot-id"))
        schemas = {schema.get("schema-id"): schema for schema in known.get("schemas") or [known["schema"]]}
        schema = schemas[known.get("current-schema-id", next(iter(schemas)))]
        read = schemas.get(self._schema_id(refs[branch]), schema) if branch in refs else schema
        return TableFacts(
            uuid=str(UUID(known["table-uuid"])),
            properties=texts(known.get("properties")),
            history=tuple(self._history(refs.get(branch or "", main), back_to)),
            columns=tuple((str(field["name"]), _type(field["type"])) for field in schema["fields"]),
            snapshots=frozenset(self._snapshots()),
            main=main,
            branches=frozenset(refs) - {_MAIN},
            docs=tuple(documented(schema)),
            fields=tuple(schema["fields"]),
            definition=self._definition(read),
        )

    def _definition(self, schema: Mapping[str, Any]) -> str:
        """A hash of a schema without comments, and of the snapshots of tags and of branches that somebody else made."""
        fields = [(f["id"], f["name"], f["required"], _type(f["type"]), f.get("initial-default"))
                  for f in schema["fields"]]  # fmt: skip
        refs = self.content.get("refs") or {}
        named = sorted((name, ref["snapshot-id"]) for name, ref in refs.items() if name not in {_MAIN, STAGED})
        return hashlib.sha256(repr((fields, named)).encode()).hexdigest()

    def _schema_id(self, snapshot: int) -> object:
        """The schema that a query of a snapshot by its id sees."""
        return self._snapshots().get(snapshot, {}).get("schema-id")

    def _snapshots(self) -> dict[int, Mapping[str, Any]]:
        return {int(snapshot["snapshot-id"]): snapshot for snapshot in self.content.get("snapshots") or ()}

    def _history(self, head: int | None, back_to: int | None) -> Iterator[SnapshotFacts]:
        by_id = self._snapshots()
        older = self._older_snapshots()
        wanted, reached = head, back_to is None
        seen: set[int] = set()
        while wanted is not None:
            if wanted in seen:
                message = f"the snapshot {wanted} is its own ancestor"
                raise ValueError(message)
            seen.add(wanted)
            while wanted not in by_id and not reached:
                more = next(older, None)
                if more is None:
                    break
                by_id = {**more, **by_id}
            found = by_id.get(wanted)
            if found is None:
                return
            at = int(found["timestamp-ms"])
            if not 0 <= at <= _LAST_MS:
                message = f"the snapshot {wanted} has an invalid timestamp"
                raise ValueError(message)
            reached = reached or wanted == back_to
            summary = texts(found.get("summary"))
            parent = _snapshot_id(found.get("parent-snapshot-id"))
            yield SnapshotFacts(wanted, parent, summary.pop("operation", ""), summary, at)
            wanted = parent

    def _older_snapshots(self) -> Iterator[dict[int, Mapping[str, Any]]]:
        """The snapshots of the metadata files before, the newest first: they know what expired since.

        Files that are gone are skipped; Iceberg keeps `write.metadata.previous-versions-max` of them.
        """
        for entry in islice(reversed(self.content.get("metadata-log") or ()), _MOST_OLDER):
            try:
                before = TableMetadata(self.warehouse, read_document(self.warehouse, str(entry["metadata-file"])))
                yield before._snapshots()
            except (OSError, EOFError, ValueError, LookupError, TypeError, RecursionError):
                continue


def _snapshot_id(value: object) -> int | None:
    """The id of a snapshot; -1 means none."""
    return int(value) if isinstance(value, int) and value != -1 else None


def texts(value: object) -> dict[str, str]:
    """Return a mapping of texts to texts; empty if it is something else."""
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, Mapping) else {}


def _type(kind: Any) -> str:
    """A type in one line, as PyIceberg prints it."""
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
    """Yield the comments of the columns of a schema, and of the fields of their structs, by path."""
    for field in struct["fields"]:
        path = f"{above}{field['name']}"
        yield path, str(field.get("doc") or "")
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from documented(field["type"], f"{path}.")
