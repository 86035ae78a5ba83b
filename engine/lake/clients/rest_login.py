"""Who asks a REST catalog: headers, tokens and signatures, from the target's keys alone.

Source: Iceberg's REST specification (`/v1/oauth/tokens`), RFC 6749 section 4.4, Iceberg 1.12 "AWS" for signatures.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from engine.addresses import WebAddress, token_address
from engine.bounds.http_exchange import HttpAnswer
from engine.bounds.regular_file import parse_json
from engine.errors import SetupError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients.catalog_errors import denied, unreachable, unusable
from engine.package_source import install_hint
from engine.secrets.scrubber import register_secret

# Sends a request: method, address, headers, body.
Send = Callable[[str, WebAddress, Mapping[str, str], bytes | None], HttpAnswer]
_FAILED: Final = 500
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
        if response.status >= _FAILED:
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
