"""Requests to a server of Iceberg's REST protocol: addresses, bounds and errors.

A server is as little trusted as a file of a stranger: it chooses neither where requests go nor who asks
(`server_settings`), redirects are not followed, and an answer has limits of size and of time as a whole.
Source: Iceberg's REST specification.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlencode

from engine.addresses import AddressError, WebAddress, web_address
from engine.bounds.http_exchange import BodyEncodingError, BodyTooLargeError, HttpAnswer, authorities, exchange
from engine.bounds.regular_file import MOST_BYTES, parse_json
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.server_settings import client_settings, server_settings
from engine.lake.clients.catalog_errors import denied, insecure, unreachable, unusable
from engine.lake.clients.rest_login import RestLogin

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds that a server may be silent, and those of an exchange as a whole.
SILENCE: float = 60.0
SECONDS: float = 120.0
_NOT_FOUND, _UNAUTHORIZED, _FORBIDDEN, _EXPIRED, _FAILED = 404, 401, 403, 419, 500
_MISSING = ("NoSuchTableException", "NoSuchViewException", "NoSuchNamespaceException", "NotFoundException", "")
_VIEW: Final = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
_SEPARATOR: Final = "%1F"
_USER_AGENT: Final = "headrace"
_MAX_REASON: Final = 300


class RestSession:
    """A server and what it has said of itself.

    Raises:
        SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
    """

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self.settings: Mapping[str, str] = dict(config.settings())
        try:
            self._uri = web_address(self.settings["uri"])
        except AddressError as error:
            raise unusable(config, f"'uri' {error}", "Write uri: https://<host>:<port>/<path>.") from error
        self._base = "v1/"
        self._login = RestLogin(config, self.settings, self._exchange)
        query = {"warehouse": self.settings["warehouse"]} if self.settings.get("warehouse") else {}
        config_document = self._request("GET", "v1/config", query) or {}
        try:
            client_config = client_settings(config_document, self.settings)
        except ValueError as error:
            raise unusable(config, str(error)) from error
        self.server_config = server_settings(config_document, self.settings)
        prefix = client_config.get("prefix", "").strip("/")
        self._base += f"{prefix}/" if prefix else ""
        self._separator = quote(unquote(client_config.get("namespace-separator", _SEPARATOR)), safe="")
        self.pages = client_config.get("rest-page-size", "")
        endpoints = config_document.get("endpoints")
        views = client_config.get("view-endpoints-supported", "false").lower() == "true"
        self.has_views = _VIEW in endpoints if isinstance(endpoints, list) and endpoints else views

    def namespace(self, schema: str) -> str:
        return f"namespaces/{self._separator.join(quote(part, safe='') for part in schema.split('.'))}"

    def ask(
        self, method: str, place: str, query: Mapping[str, str], content: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Ask for a place below the catalog's; None: there is no such table, view or schema."""
        return self._request(method, f"{self._base}{place}", query, content)

    def _request(
        self, method: str, place: str, query: Mapping[str, str], content: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        with self._errors():
            address = self._uri.below(place, urlencode(query))
        body = json.dumps(content).encode() if content is not None else None
        response = self._exchange(method, address, self._headers(method, address, body), body)
        if response.status in {_UNAUTHORIZED, _EXPIRED} and self._login.renews:
            self._login.renew(self._login.token)
            response = self._exchange(method, address, self._headers(method, address, body), body)
        if response.status == _NOT_FOUND and _error(response.body, "type") in _MISSING:
            return None
        if response.status in {_UNAUTHORIZED, _FORBIDDEN, _EXPIRED}:
            raise denied(self._config, _reason_of(response))
        if response.status >= _FAILED:
            raise unreachable(self._config, f"it answers {response.status}: {_reason_of(response)}")
        if not 200 <= response.status < 300:  # noqa: PLR2004 - success; a redirect could lead anywhere
            raise unusable(self._config, f"it answers {response.status}: {_reason_of(response)}")
        if not response.body:
            return {}
        try:
            document = parse_json(response.body)
        except ValueError as error:
            raise unusable(self._config, f"its response cannot be used: {_shape(error)}") from error
        if not isinstance(document, dict):
            raise unusable(self._config, "its response is not a JSON object")
        return document

    def _headers(self, method: str, address: WebAddress, body: bytes | None) -> dict[str, str]:
        kind = {"Content-Type": "application/json"} if body is not None else {}
        with self._errors():
            return {**self._login.headers(method, address), **kind}

    def _exchange(self, method: str, address: WebAddress, headers: Mapping[str, str], body: bytes | None) -> HttpAnswer:
        with self._errors():
            return exchange(
                method,
                address,
                {"User-Agent": _USER_AGENT, "Accept": "application/json", **headers},
                body,
                timeout=min(SILENCE, SECONDS),
                deadline=time.monotonic() + SECONDS,
                most_bytes=MOST_BYTES,
                ca=authorities(),
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except EngineError:
            raise
        except (BodyTooLargeError, BodyEncodingError) as error:
            raise unusable(self._config, str(error)) from error
        except http.client.HTTPException as error:
            raise unreachable(
                self._config, f"it does not respond like a web server ({type(error).__name__})"
            ) from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLError):
                raise insecure(self._config, str(error.reason)) from error
            raise unreachable(self._config, str(error.reason)) from error
        except ssl.SSLError as error:
            raise insecure(self._config, str(error)) from error
        except OSError as error:
            raise unreachable(self._config, str(error) or type(error).__name__) from error
        except ValueError as error:
            raise unusable(self._config, "a header or an address of the target cannot be sent") from error


def _shape(error: ValueError) -> str:
    text = str(error)
    return text if text.startswith("it is ") else "it is not JSON"


def _error(body: bytes, key: str) -> str:
    try:
        value = parse_json(body)["error"][key]
    except (ValueError, LookupError, TypeError):
        return ""
    return str(value)[:_MAX_REASON]


def _reason_of(response: HttpAnswer) -> str:
    return _error(response.body, "message") or response.reason[:_MAX_REASON] or "no reason given"
