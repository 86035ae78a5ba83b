"""The address of a JDBC catalog as parameters of PostgreSQL's C library, which Python connects with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

# Of the JDBC driver's address: what the same setting of PostgreSQL's C library is called.
_SAME: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def postgres_parameters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of PostgreSQL's C library that connect as a JDBC address does.

    Raises:
        ValueError: the address is not one of PostgreSQL.
    """
    prefix, _, rest = settings.get("uri", "").partition("//")
    if prefix != "jdbc:postgresql:":
        message = "the address does not begin with jdbc:postgresql://"
        raise ValueError(message)
    place, _, query = rest.partition("?")
    host, _, database = place.partition("/")
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal():
        name, port = host, "5432"
    if not name or not database or "," in host:
        message = "the address is not of the form jdbc:postgresql://<host>:<port>/<database>"
        raise ValueError(message)
    options = dict(parse_qsl(query))
    made = {"host": name.strip("[]"), "port": port, "dbname": database}
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
