"""The address of a JDBC catalog as parameters of PostgreSQL's C library, which Python connects with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.addresses.postgres_address import postgres_address

# Of the JDBC driver's address: what the same setting of PostgreSQL's C library is called.
_SAME: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def postgres_parameters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of PostgreSQL's C library that connect as a JDBC address does.

    Raises:
        AddressError: the address is not one of PostgreSQL.
    """
    address = postgres_address(settings.get("uri", ""))
    options = address.options
    made = {"host": address.server.host, "port": str(address.server.port), "dbname": address.database}
    for key in ("user", "password"):
        if f"jdbc.{key}" in settings:
            made[key] = settings[f"jdbc.{key}"]
    # The driver checks certificate and host where nothing else is set; PostgreSQL's library would not.
    if options.get("ssl", "false").lower() in {"true", ""}:
        made["sslmode"] = "verify-full"
    made |= {key: value for key in _SAME if (value := settings.get(f"jdbc.{key}", options.get(key))) is not None}
    if (schema := settings.get("jdbc.currentSchema", options.get("currentSchema"))) is not None:
        made["options"] = f"-c search_path={schema}"
    return made
