"""What goes wrong between us and a catalog's server, as one finding at the target's place; never with a credential."""

from __future__ import annotations

from dataclasses import replace

from engine.addresses import AddressError, postgres_address, web_address
from engine.errors import SetupError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.secrets.scrubber import scrub

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
