"""A catalog of Iceberg's REST protocol, without Java: one request has all that is known of a table.

The server sends a table's metadata with it, as JSON, so that a type that PyIceberg does not know does no harm. Of the
settings that come with a table, logins for its files among them, Python uses none. Source: Iceberg's REST
specification.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from engine.errors import SetupError
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.server_settings import rejected_key, table_settings
from engine.lake.clients.catalog_errors import steered, unusable
from engine.lake.clients.rest_session import RestSession

_PARALLEL: Final = 32
_MAX_PAGES: Final = 1_000
_MAX_NAMES: Final = 200_000


class RestClient:
    """A server of Iceberg's REST protocol.

    Raises SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
    """

    purges = True
    at_a_time = _PARALLEL

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._opened_session: RestSession | None = None
        # Why Java must not be started, by table; and whether it has been.
        self._steering: dict[str, str] = {}
        self._started = False

    @property
    def _session(self) -> RestSession:
        with self._lock:
            if self._opened_session is None:
                self._opened_session = RestSession(self._config)
            return self._opened_session

    def before_java(self) -> None:
        """Check that the server chooses no class, address or login of Spark's catalog.

        Java prefers the server's configuration, and that of each table, to the target's: nothing can be set against it.

        Raises SetupError: `catalog-unusable`; as the questions raise.
        """
        session = self._session
        if key := rejected_key(session.server_config, session.settings):
            raise steered(self._config, key, "its configuration")
        for name, key in self._steering.items():
            raise steered(self._config, key, f"the config of the table {name}")
        self._started = True

    def names(self, schema: str) -> tuple[str, ...]:
        return tuple(self._listed(f"{self._schema(schema)}/tables"))

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]:
        views = (CatalogEntry(schema, name, "", view=True) for name in self._views(schema))
        return (*(CatalogEntry(schema, name, "") for name in self.names(schema)), *views)

    def table(self, schema: str, name: str) -> CatalogEntry | None:
        return self._loaded(schema, name, view=False)

    def view(self, schema: str, name: str) -> CatalogEntry | None:
        return self._loaded(schema, name, view=True) if self._session.has_views else None

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        if entry.content is not None:
            return entry.content
        loaded = self._loaded(entry.schema, entry.name, view=entry.view)
        if loaded is None or loaded.content is None:
            raise FileNotFoundError(f"{entry.schema}.{entry.name}")
        return loaded.content

    def remove(self, entry: CatalogEntry) -> bool:
        """Drop a table with its files, or a view; the caller has just seen that it is the one that was meant.

        A server that keeps files back removes the table alone. Where `gc.enabled` is false it is not asked for more: it
        would remove manifests that another table may need, too (measured: the reference server, Iceberg 1.12).
        """
        place = self._place(entry.schema, entry.name, view=entry.view)
        if entry.view:
            return self._ask("DELETE", place) is not None
        properties = self.document(entry).get("properties")
        if isinstance(properties, Mapping) and str(properties.get("gc.enabled")).lower() == "false":
            return self._ask("DELETE", place, purgeRequested="false") is not None
        try:
            return self._ask("DELETE", place, purgeRequested="true") is not None
        except SetupError as error:
            if error.diagnostic.code == "catalog-unreachable":
                raise
            return self._ask("DELETE", place, purgeRequested="false") is not None

    @property
    def renames(self) -> bool:
        """Whether tables can be renamed without Java: a request with a body is not signed in AWS's way."""
        return self._session.settings.get("rest.sigv4-enabled", "false").lower() != "true"

    def rename(self, entry: CatalogEntry, schema: str, name: str) -> bool:
        """Give a table another name; the caller has just seen that it is the one that was meant."""
        if self._ask("GET", self._schema(schema)) is None:
            self._session.ask("POST", "namespaces", {}, {"namespace": schema.split("."), "properties": {}})
        names = {
            key: {"namespace": place.split("."), "name": table}
            for key, place, table in (("source", entry.schema, entry.name), ("destination", schema, name))
        }
        return self._session.ask("POST", "tables/rename", {}, names) is not None

    def _loaded(self, schema: str, name: str, *, view: bool) -> CatalogEntry | None:
        response = self._ask("GET", self._place(schema, name, view=view))
        if response is None:
            return None
        metadata = response.get("metadata")
        if not isinstance(metadata, dict):
            raise unusable(self._config, f"its response for {schema}.{name} has no metadata")
        self._check(f"{schema}.{name}", response)
        return CatalogEntry(schema, name, str(response.get("metadata-location") or ""), view, metadata)

    def _check(self, name: str, response: Mapping[str, Any]) -> None:
        target = self._session.settings
        key = next(
            (
                key
                for table_config in table_settings(response)
                if (key := rejected_key(table_config, target, of_table=True))
            ),
            "",
        )
        if key and self._started:
            raise steered(self._config, key, f"the config of the table {name}")
        if key:
            self._steering[name] = key
        else:
            self._steering.pop(name, None)

    def _views(self, schema: str) -> Iterator[str]:
        if self._session.has_views:
            yield from self._listed(f"{self._schema(schema)}/views")

    def _listed(self, place: str) -> Iterator[str]:
        size = {"pageSize": self._session.pages} if self._session.pages else {}
        page: dict[str, str] = dict(size)
        names = 0
        for _ in range(_MAX_PAGES):
            response = self._ask("GET", place, **page) or {}
            identifiers = response.get("identifiers") or []
            if not isinstance(identifiers, list) or not all(_is_name(item) for item in identifiers):
                raise unusable(self._config, "its response is not a list of names")
            names += len(identifiers)
            if names > _MAX_NAMES:
                raise unusable(self._config, f"a schema has more than {_MAX_NAMES:,} names")
            yield from (item["name"] for item in identifiers)
            token = response.get("next-page-token")
            if not token or token == page.get("pageToken"):
                return
            if not isinstance(token, str):
                raise unusable(self._config, "its response is not a page of a list")
            page = {**size, "pageToken": token}
        raise unusable(self._config, f"a list of names has more than {_MAX_PAGES:,} pages")

    def _schema(self, schema: str) -> str:
        return self._session.namespace(schema)

    def _place(self, schema: str, name: str, *, view: bool) -> str:
        return f"{self._schema(schema)}/{'views' if view else 'tables'}/{quote(name, safe='')}"

    def _ask(self, method: str, place: str, **query: str) -> dict[str, Any] | None:
        return self._session.ask(method, place, query)


def _is_name(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str)
