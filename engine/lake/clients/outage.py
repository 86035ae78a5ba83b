"""Errors by which Java says that a catalog's server or an object store did not answer: nobody knows what it did.

The texts are those of Iceberg's REST client (HTTPClient, ErrorHandlers), of Apache's HTTP client, of Java's sockets and
of the PostgreSQL driver (SQLSTATE classes 08 and 57P).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from engine.object_store.java_errors import is_store_outage
from engine.spark.exceptions import spark_exceptions

_log = logging.getLogger("engine.lake")
# Seconds between looks for a server that is away: it may be starting again. A minute in all.
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_SIGNS = (
    # REST
    "Error occurred while processing GET request",
    "Error occurred while processing POST request",
    "Error occurred while processing DELETE request",
    "Error occurred while processing HEAD request",
    "ServiceFailureException",
    "ServiceUnavailableException",
    "HttpHostConnectException",
    "NoHttpResponseException",
    "ConnectTimeoutException",
    "UnknownHostException",
    "java.net.ConnectException",
    "java.net.SocketException",
    "java.net.SocketTimeoutException",
    # PostgreSQL
    "Check that the hostname and port are correct",
    "The connection attempt failed",
    "An I/O error occurred while sending to the backend",
    "This connection has been closed",
    "terminating connection due to",
    "the database system is starting up",
    "the database system is shutting down",
    "the database system is in recovery mode",
    "Failed to connect: jdbc:postgresql",
)
_DENIED = ("NotAuthorizedException", "ForbiddenException", "password authentication failed", "permission denied for")
Result = TypeVar("Result")


def is_outage(text: str) -> bool:
    return any(sign in text for sign in _SIGNS) or is_store_outage(text)


def is_denial(text: str) -> bool:
    return any(sign in text for sign in _DENIED)


def awaited(ask: Callable[[], Result], subject: str) -> Result:
    """Ask a server that may be away for a while, again and again; the last error is raised."""
    for pause in _PAUSES:
        try:
            return ask()
        except spark_exceptions() as error:
            if not is_outage(_trace(error)):
                raise
            _log.warning("the catalog does not respond; looking for %s again in %s s", subject, pause)
            time.sleep(pause)
    return ask()


def _trace(error: Exception) -> str:
    return f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
