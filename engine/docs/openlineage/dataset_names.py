"""How OpenLineage calls what is read and written: tables by where they are, topics by their brokers, files by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import local_paths
from engine.compile.declarations.target import Target
from engine.compile.nodes.manifest import Manifest, Model, Source
from engine.errors import EngineError
from engine.lake.catalog import catalog_settings
from engine.object_store.s3_settings import bucket_and_key
from engine.relations import Relation
from engine.sources import answers_of, location
from engine.sources.files.listing import is_uri


@dataclass(frozen=True, slots=True)
class DatasetName:
    """A dataset's name.

    Attributes:
        namespace: the system it is in, such as kafka://host:9092, s3://bucket or file.
        alias: its name in the catalog, with the catalog's address; for tables.
    """

    namespace: str
    name: str
    alias: tuple[str, str] | None = None


class DatasetNames:
    def __init__(self, manifest: Manifest, target: Target, root: Path) -> None:
        self._manifest, self._target, self._root = manifest, target, root
        self._known: dict[str, tuple[DatasetName, ...]] = {}

    def of(self, node_id: str) -> tuple[DatasetName, ...]:
        """The datasets that a node is; a source of several topics is several."""
        if node_id not in self._known:
            node = self._manifest.nodes[node_id]
            if isinstance(node, Model):
                self._known[node_id] = (self._table(node.relation),)
            else:
                self._known[node_id] = self._source(node) if isinstance(node, Source) else ()
        return self._known[node_id]

    def _table(self, relation: Relation) -> DatasetName:
        catalog = self._target.catalog
        short = f"{relation.schema}.{relation.name}"
        if catalog.type != "sqlite":
            return DatasetName(f"iceberg://{catalog.name}", short)
        if catalog.objects:
            bucket, key = bucket_and_key(catalog.objects)
            name = "/".join(part for part in (key.rstrip("/"), relation.schema, relation.name) if part)
            return DatasetName(f"s3://{bucket}", name, (local_paths.encoded(catalog_settings.database(catalog)), short))
        folder = catalog.path / "warehouse" / relation.schema / relation.name
        return DatasetName("file", folder.as_posix(), (local_paths.encoded(catalog_settings.database(catalog)), short))

    def _source(self, source: Source) -> tuple[DatasetName, ...]:
        settings = source.spec.settings
        answers = answers_of(source.spec.format)
        if answers.connects:
            broker = self._broker(settings)
            return tuple(DatasetName(broker, topic) for topic in answers.topic_names(source.spec) or (source.name,))
        path = settings.get("path")
        if not isinstance(path, str) or not path:
            return (DatasetName(source.spec.format or "unknown", location(source.spec) or source.name),)
        here = local_paths.of_location(path)
        if here is None and is_uri(path):
            scheme, _, rest = path.partition(":")
            host, _, name = rest.removeprefix("//").partition("/")
            bucket = host.rpartition("@")[2].partition(":")[0].lower()
            return (DatasetName(f"{scheme}://{bucket}", name.strip("/")),)
        return (DatasetName("file", (self._root / (here or path)).as_posix()),)

    def _broker(self, settings: Mapping[str, Any]) -> str:
        """The first broker of the connection; the connection's name where its settings cannot be had."""
        name = str(settings.get("connection") or "")
        try:
            servers = self._target.connections[name].masked().get("bootstrap_servers")
        except (EngineError, KeyError):
            servers = None
        first = servers[0] if isinstance(servers, list) and servers else servers
        return f"kafka://{str(first).split(',')[0].strip() if first else name}"
