"""The address of a JDBC catalog in PostgreSQL: `jdbc:postgresql://host:port/database?option=value`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from engine.addresses.servers import AddressError, Server, check_characters, server

BEGIN: Final = "jdbc:postgresql://"
_PORT: Final = 5432
_ADDRESS: Final = re.compile(r"([^/?#]*)/([^/?#]+)(?:\?([^#]*))?")
# The JDBC driver decodes the rest of an address, and takes none that cannot be.
_NOT_ESCAPED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# By the JDBC driver's names and PostgreSQL's: with them the driver connects to another server than the address names
# (measured, pgjdbc 42.7.8).
_OTHER_SERVER: Final = frozenset(
    ("host", "hostaddr", "port", "dbname", "pghost", "pghostaddr", "pgport", "pgdbname", "service")
)
_LOGIN: Final = frozenset({"password", "pgpassword", "sslpassword"})


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    server: Server
    database: str
    options: Mapping[str, str] = field(default_factory=dict)


def postgres_address(uri: str) -> PostgresAddress:
    """Parse the address of a database.

    Raises:
        AddressError: it is none, or programs could read it differently.
    """
    check_characters(uri)
    if not uri.startswith(BEGIN):
        raise AddressError(f"does not begin with {BEGIN}")
    match = _ADDRESS.fullmatch(uri.removeprefix(BEGIN))
    if _NOT_ESCAPED.search(uri):
        raise AddressError("contains a % that is not followed by two hexadecimal digits; one is to be written as %25")
    if match is None:
        raise AddressError(f"is not of the form {BEGIN}<host>:<port>/<database>")
    place, database, query = match.groups()
    if "@" in place:
        raise AddressError("contains a login, and it is shown in messages")
    if "," in place:
        raise AddressError("names several hosts")
    options = dict(parse_qsl(query or "", keep_blank_values=True))
    for key in options:
        if key.lower() in _OTHER_SERVER:
            raise AddressError(f"contains the option '{key}', by which a driver connects to another server")
        if key.lower() in _LOGIN:
            raise AddressError("contains a login, and it is shown in messages")
    return PostgresAddress(server("postgresql", place, _PORT), database, options)
