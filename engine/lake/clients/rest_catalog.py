"""A catalog of Iceberg's REST protocol, without Java.

PyIceberg's client connects: it knows the server's configuration, tokens and their renewal, signatures and prefixes. Its
answers are taken as JSON: the server sends a table's metadata with it, so that one request has all that is known of a
table, and a type that PyIceberg does not know does no harm. Source: Iceberg's REST specification.
"""

# PyIceberg has no public way to its session, nor to a time limit for it; 0.12 is pinned.
# ruff: noqa: SLF001

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from engine.errors import EngineError, SetupError
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.isolation import isolate
from engine.lake.catalog.metadata_document import METADATA_BYTES
from engine.lake.catalog.pyiceberg_properties import pyiceberg_properties
from engine.lake.clients.catalog_errors import denied, insecure, unreachable, unusable

# Seconds: to connect, and for an answer. A token is renewed once before an answer counts as a denial.
_SECONDS = (10.0, 60.0)
_OK, _NOT_FOUND, _UNAUTHORIZED, _FORBIDDEN, _EXPIRED, _FAILED = 200, 404, 401, 403, 419, 500
_MISSING = ("NoSuchTableException", "NoSuchViewException", "NoSuchNamespaceException", "NotFoundException", "")
_PARALLEL = 32


class RestClient:
    """A server of Iceberg's REST protocol.

    Raises:
        SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
    """

    purges = True
    at_a_time = _PARALLEL

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._known: Any = None

    @property
    def _catalog(self) -> Any:
        if self._known is None:
            with self._errors():
                self._known = _connected(self._config)
        return self._known

    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema; none where there is no such schema."""
        return tuple(self._listed(f"{self._schema(schema)}/tables"))

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]:
        """The tables and views of a schema; their metadata are asked for later."""
        views = (CatalogEntry(schema, name, "", view=True) for name in self._views(schema))
        return (*(CatalogEntry(schema, name, "") for name in self.names(schema)), *views)

    def table(self, schema: str, name: str) -> CatalogEntry | None:
        """A table with its metadata, or None."""
        return self._loaded(schema, name, view=False)

    def view(self, schema: str, name: str) -> CatalogEntry | None:
        """A view with its metadata, or None."""
        return self._loaded(schema, name, view=True) if self._has_views() else None

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        """The metadata of a table or view.

        Raises:
            FileNotFoundError: it is gone.
        """
        if entry.content is not None:
            return entry.content
        found = self._loaded(entry.schema, entry.name, view=entry.view)
        if found is None or found.content is None:
            raise FileNotFoundError(f"{entry.schema}.{entry.name}")
        return found.content

    def remove(self, entry: CatalogEntry) -> bool:
        """Drop a table with its files, or a view; the caller has just seen that it is the one that was meant.

        A server that keeps files back removes the table alone.
        """
        place = self._place(entry.schema, entry.name, view=entry.view)
        if entry.view:
            return self._answer("delete", place) is not None
        try:
            return self._answer("delete", place, purgeRequested="true") is not None
        except SetupError as error:
            if error.diagnostic.code == "catalog-unreachable":
                raise
            return self._answer("delete", place, purgeRequested="false") is not None

    def _loaded(self, schema: str, name: str, *, view: bool) -> CatalogEntry | None:
        answer = self._answer("get", self._place(schema, name, view=view))
        if answer is None:
            return None
        metadata = answer.get("metadata")
        if not isinstance(metadata, dict):
            raise unusable(self._config, f"its answer for {schema}.{name} has no metadata")
        return CatalogEntry(schema, name, str(answer.get("metadata-location") or ""), view, metadata)

    def _views(self, schema: str) -> Iterator[str]:
        if self._has_views():
            yield from self._listed(f"{self._schema(schema)}/views")

    def _has_views(self) -> bool:
        from pyiceberg.catalog.rest import Capability

        return Capability.V1_LOAD_VIEW in self._catalog._supported_endpoints

    def _listed(self, place: str) -> Iterator[str]:
        """The names in a list that comes in pages."""
        page: dict[str, str] = {}
        while True:
            answer = self._answer("get", place, **page) or {}
            yield from (str(item["name"]) for item in answer.get("identifiers") or ())
            token = answer.get("next-page-token")
            if not token or token == page.get("pageToken"):
                return
            page = {"pageToken": str(token)}

    def _schema(self, schema: str) -> str:
        return f"namespaces/{self._catalog._encode_namespace_path(tuple(schema.split('.')))}"

    def _place(self, schema: str, name: str, *, view: bool) -> str:
        return f"{self._schema(schema)}/{'views' if view else 'tables'}/{quote(name, safe='')}"

    def _answer(self, method: str, place: str, **query: str) -> dict[str, Any] | None:
        """The answer of the server; None: there is no such table, view or schema."""
        catalog = self._catalog
        with self._errors():
            response = self._asked(lambda: catalog._session.request(method, catalog.url(place), params=query))
        status = response.status_code
        if status == _NOT_FOUND and _kind(response) in _MISSING:
            return None
        if status in {_UNAUTHORIZED, _FORBIDDEN, _EXPIRED}:
            raise denied(self._config, _said(response))
        if status >= _FAILED:
            raise unreachable(self._config, f"it answers {status}: {_said(response)}")
        if not response.ok:
            raise unusable(self._config, f"it answers {status}: {_said(response)}")
        if len(response.content) > METADATA_BYTES:
            raise unusable(self._config, f"its answer for {place} is too large")
        with self._errors():
            found = response.json() if response.content else {}
            return found if isinstance(found, dict) else {}

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """Ask, and once more with a new token where the one that is known has expired."""
        response = ask()
        if response.status_code in {_UNAUTHORIZED, _EXPIRED} and "credential" in self._config.settings():
            self._catalog._refresh_token()
            response = ask()
        return response

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import requests
        from pyiceberg.exceptions import ForbiddenError, OAuthError, RESTError, ServerError, UnauthorizedError

        try:
            yield
        except EngineError:
            raise
        except requests.exceptions.SSLError as error:
            raise insecure(self._config, _reason(error)) from error
        except requests.exceptions.JSONDecodeError as error:
            raise unusable(self._config, "its answer is not JSON") from error
        except requests.exceptions.RequestException as error:
            raise unreachable(self._config, _reason(error)) from error
        except (UnauthorizedError, ForbiddenError, OAuthError) as error:
            raise denied(self._config, str(error)) from error
        except ServerError as error:
            raise unreachable(self._config, str(error)) from error
        except (RESTError, ValueError, LookupError) as error:
            raise unusable(self._config, str(error)) from error


def _connected(config: CatalogConfig) -> Any:
    """PyIceberg's client, whose requests have a time limit."""
    isolate()
    from pyiceberg.catalog.rest import RestCatalog
    from requests import Session
    from requests.adapters import HTTPAdapter

    class Bounded(HTTPAdapter):
        """No request waits without end."""

        def send(self, *args: Any, **kwargs: Any) -> Any:
            kwargs["timeout"] = kwargs.get("timeout") or _SECONDS
            return super().send(*args, **kwargs)

    class BoundedCatalog(RestCatalog):
        """PyIceberg sets up headers before the first request of a session, which asks for a token."""

        def _config_headers(self, session: Session) -> None:
            for scheme in ("http://", "https://"):
                session.mount(scheme, Bounded(pool_connections=2, pool_maxsize=_PARALLEL))
            super()._config_headers(session)

    properties = pyiceberg_properties("rest", config.settings())
    properties.pop("type")
    return BoundedCatalog(config.name, **properties)


def _kind(response: Any) -> str:
    """The type of a server's error; empty: it says none."""
    try:
        return str(response.json()["error"]["type"])
    except (ValueError, LookupError, TypeError):
        return ""


def _said(response: Any) -> str:
    """What a server says of an error."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return str(response.reason or "no reason given")


def _reason(error: Exception) -> str:
    """The cause of a failed connection in a few words: the text of requests repeats the whole address."""
    inner: BaseException = error
    while inner.args and isinstance(inner.args[0], BaseException):
        inner = inner.args[0]
    reason = getattr(inner, "reason", None)
    text = str(reason if isinstance(reason, BaseException) else inner)
    return text.rpartition(">: ")[2] or type(error).__name__
