"""What goes wrong between us and a catalog's server, as one finding at the target's place; never with a credential.

Errors by which Java says that a server or an object store did not answer (nobody knows what it did) are known by the
texts of Iceberg's REST client (HTTPClient, ErrorHandlers), of Apache's HTTP client, of Java's sockets and of the
PostgreSQL driver (SQLSTATE classes 08 and 57P).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from engine.addresses import AddressError, postgres_address, web_address
from engine.errors import SetupError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.object_store.java_errors import is_store_outage
from engine.secrets.scrubber import scrub
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


_SHOWN = 300


def unreachable(config: CatalogConfig, reason: str) -> SetupError:
    message = f"the catalog {config.name} at {address(config)} cannot be reached: {_line(reason)}"
    hint = (
        "Start the server, or correct 'uri' in the target's catalog; nothing was written, and the next build "
        "continues. engine debug tests the connection."
    )
    return SetupError("catalog-unreachable", message, hint, location=config.place)


def insecure(config: CatalogConfig, reason: str) -> SetupError:
    message = f"the catalog {config.name} at {address(config)} has a certificate that is not trusted: {_line(reason)}"
    hint = (
        "Correct the host in 'uri', or let Python and Java trust the authority that signed the certificate "
        "(REQUESTS_CA_BUNDLE, and -Djavax.net.ssl.trustStore in spark.driver.extraJavaOptions)."
    )
    return SetupError("catalog-unreachable", message, hint, location=config.place)


def denied(config: CatalogConfig, reason: str) -> SetupError:
    message = f"the catalog {config.name} at {address(config)} denies access: {_line(reason)}"
    hint = (
        "Check the credentials of the target's catalog and the rights of that user: list, create, change and drop "
        "tables and views in the schemas of the target."
    )
    return SetupError("catalog-denied", message, hint, location=config.place)


def unusable(config: CatalogConfig, reason: str, hint: str = "") -> SetupError:
    message = f"the catalog {config.name} at {address(config)} cannot be used: {_line(reason)}"
    hint = hint or "Check 'uri' and 'warehouse' of the target's catalog; engine debug tests the connection."
    return SetupError("catalog-unusable", message, hint, location=config.place)


def steered(config: CatalogConfig, key: str, where: str) -> SetupError:
    hint = (
        f"If you trust it, set '{key[:100]}' in the target's catalog to the value that is meant; else remove the key "
        "from the server's settings. Endpoints, logins and classes come from the target alone."
    )
    return unusable(config, f"{where} sets '{key[:100]}', which a server does not choose", hint)


def address(config: CatalogConfig) -> str:
    """The host and port of a server, without a login, path or query; the catalog's kind if its address is none."""
    uri = config.settings().get("uri", "")
    try:
        if config.type == "jdbc":
            server = postgres_address(uri).server
        else:
            return str(replace(web_address(uri), path="", query="")).partition("://")[2]
    except AddressError:
        return config.type
    return f"{server.host_text}:{server.port}"


def _line(text: str) -> str:
    line = " ".join(scrub(text).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
