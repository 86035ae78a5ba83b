"""Requests to a server of Iceberg's REST protocol: addresses, bounds, errors, and headers, tokens and signatures.

A server is as little trusted as a file of a stranger: it chooses neither where requests go nor who asks, which the
target's keys alone say (`server_settings`); redirects are not followed, and an answer has limits of size and of time as
a whole. Sources: Iceberg's REST specification (`/v1/oauth/tokens`), RFC 6749 section 4.4, Iceberg 1.12 "AWS".
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.error
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlencode

from engine.addresses import AddressError, WebAddress, token_address, web_address
from engine.bounds.http_exchange import BodyEncodingError, BodyTooLargeError, HttpAnswer, authorities, exchange
from engine.bounds.regular_file import MOST_BYTES, parse_json
from engine.errors import EngineError, SetupError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.server_settings import client_settings, server_settings
from engine.lake.clients.catalog_errors import denied, insecure, unreachable, unusable
from engine.package_source import install_hint
from engine.secrets.scrubber import register_secret

if TYPE_CHECKING:
    from collections.abc import Iterator


# Sends a request: method, address, headers, body.
Send = Callable[[str, WebAddress, Mapping[str, str], bytes | None], HttpAnswer]
_LOGIN_FAILED: Final = 500
_FORM: Final = "application/x-www-form-urlencoded"
_MAX_TOKEN: Final = 32_768


class RestLogin:
    """The login of a catalog; a token is fetched when it is needed, by one thread."""

    def __init__(self, config: CatalogConfig, settings: Mapping[str, str], send: Send) -> None:
        self._config, self._settings, self._send = config, settings, send
        self._lock = threading.Lock()
        self._token = settings.get("token", "")

    @property
    def renews(self) -> bool:
        return "credential" in self._settings

    def headers(self, method: str, address: WebAddress) -> dict[str, str]:
        """Return the headers of a request.

        Raises SetupError: `catalog-denied`, `catalog-unusable`, `catalog-unreachable`: there is no token.
        """
        prefix = "header."
        all_headers = {
            key.removeprefix(prefix): value for key, value in self._settings.items() if key.startswith(prefix)
        }
        if self.renews and not self._token:
            self.renew("")
        if self._token:
            all_headers["Authorization"] = f"Bearer {self._token}"
        if self._settings.get("rest.sigv4-enabled", "false").lower() == "true":
            all_headers = self._signed(method, str(address), all_headers)
        return all_headers

    def renew(self, used_token: str) -> str:
        """Ask for another token, unless another thread has one already; return it."""
        with self._lock:
            if self._token in {"", used_token} or not used_token:
                self._token = self._fetched()
            return self._token

    @property
    def token(self) -> str:
        return self._token

    def _fetched(self) -> str:
        user, colon, secret = self._settings["credential"].partition(":")
        form = {"grant_type": "client_credentials", "client_id": user, "client_secret": secret}
        if not colon:
            form = {"grant_type": "client_credentials", "client_secret": user}
        form["scope"] = self._settings.get("scope") or "catalog"
        form |= {key: self._settings[key] for key in ("audience", "resource") if self._settings.get(key)}
        address = token_address(self._settings["uri"], self._settings.get("oauth2-server-uri"))
        headers = {key: value for key, value in self._headers_of_target() if key.lower() != "authorization"}
        response = self._send("POST", address, {**headers, "Content-Type": _FORM}, urlencode(form).encode())
        return self._token_of(response)

    def _headers_of_target(self) -> list[tuple[str, str]]:
        return [(key.partition(".")[2], value) for key, value in self._settings.items() if key.startswith("header.")]

    def _token_of(self, response: HttpAnswer) -> str:
        try:
            content = parse_json(response.body)
        except ValueError:
            content = None
        document: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
        if response.status >= _LOGIN_FAILED:
            raise unreachable(self._config, f"its endpoint for tokens answers {response.status}")
        if response.status in {400, 401, 403}:
            raise denied(self._config, _reason(document) or f"its endpoint for tokens answers {response.status}")
        token = document.get("access_token")
        is_token = isinstance(token, str) and 0 < len(token) <= _MAX_TOKEN and token.isascii() and token.isprintable()
        if response.status != 200 or not is_token:  # noqa: PLR2004 - success
            raise unusable(self._config, f"its endpoint for tokens answers {response.status} without a token")
        register_secret(str(token))
        return str(token)

    def _signed(self, method: str, url: str, headers: dict[str, str]) -> dict[str, str]:
        try:
            import botocore.session
            from botocore.auth import SigV4Auth
            from botocore.awsrequest import AWSRequest
            from botocore.credentials import Credentials
        except ImportError as error:
            message = "the Python package botocore is not installed"
            raise SetupError("s3-client", message, install_hint("s3")) from error
        keys = [self._settings.get(f"rest.{key}") for key in ("access-key-id", "secret-access-key", "session-token")]
        session = botocore.session.Session()
        login = Credentials(*keys) if keys[0] and keys[1] else session.get_credentials()
        if login is None:
            raise denied(self._config, "there is no login of AWS to sign requests with")
        region = self._settings.get("rest.signing-region") or session.get_config_variable("region") or "us-east-1"
        if "Authorization" in headers:
            headers["Original-Authorization"] = headers.pop("Authorization")
        request = AWSRequest(method=method, url=url, headers=headers)
        SigV4Auth(
            login.get_frozen_credentials(), self._settings.get("rest.signing-name", "execute-api"), region
        ).add_auth(request)
        return {str(key): str(value) for key, value in request.headers.items()}


def _reason(content: Mapping[str, Any]) -> str:
    error = content.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message") or "")[:300]
    return ": ".join(str(content[key])[:300] for key in ("error", "error_description") if content.get(key))


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

    Raises SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
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
