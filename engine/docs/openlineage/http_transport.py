"""OpenLineage events over HTTP: answers have a deadline and a size; redirects, which lead anywhere, are not followed.

The client's own transport follows redirects with the events, and reads answers of any size.
Source: OpenLineage's API (`POST /api/v1/lineage`).
"""

from __future__ import annotations

import base64
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from engine.addresses.web_address import WebAddress
from engine.bounds.http_exchange import BodyEncodingError, BodyTooLargeError, authorities, exchange

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

_ENDPOINT: Final = "api/v1/lineage"
_ANSWER_BYTES: Final = 64 * 1024
_REDIRECT, _ERROR, _SERVER_ERROR = 300, 400, 500


class DeliveryError(OSError):
    """The endpoint does not take an event; the text has no address, which may hold a password."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def http_transport(url: WebAddress, timeout: float, key: str = "") -> Transport:
    """Return what posts events to an endpoint.

    Args:
        url: of the backend, with or without user and password.
        timeout: seconds for one attempt; there are two.
        key: sent as `Authorization: Bearer ..`; empty: none.
    """
    from openlineage.client.serde import Serde
    from openlineage.client.transport.transport import Transport

    address, headers = _request(url, key)

    class Http(Transport):
        kind = "http"

        def emit(self, event: Any) -> None:
            content = Serde.to_json(event).encode()
            try:
                _post(address, headers, content, timeout)
            except OSError as error:
                if isinstance(error, DeliveryError) and not error.passing:
                    raise
                _post(address, headers, content, timeout)

    return Http()


def _request(url: WebAddress, key: str) -> tuple[WebAddress, dict[str, str]]:
    headers = {"Content-Type": "application/json"}
    if url.login is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote(url.login).encode()).decode()}"
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return url.below(_ENDPOINT), headers


def _post(address: WebAddress, headers: dict[str, str], content: bytes, timeout: float) -> None:
    """Send an event.

    Raises:
        DeliveryError: the endpoint does not take it.
        OSError: it cannot be reached.
    """
    deadline = time.monotonic() + timeout
    try:
        answer = exchange(
            "POST", address, headers, content,
            timeout=timeout, deadline=deadline, most_bytes=_ANSWER_BYTES, ca=authorities(),
        )  # fmt: skip
    except (BodyTooLargeError, BodyEncodingError) as error:
        raise DeliveryError(f"of the endpoint, {error}") from error
    except HTTPException as error:
        raise DeliveryError("the endpoint does not answer as a web server does") from error
    if answer.status >= _SERVER_ERROR:
        raise DeliveryError(f"the endpoint answered {answer.status}", passing=True)
    if answer.status >= _ERROR:
        raise DeliveryError(f"the endpoint answered {answer.status}")
    if answer.status >= _REDIRECT:
        raise DeliveryError(f"the endpoint answered {answer.status}; redirects are not followed")
