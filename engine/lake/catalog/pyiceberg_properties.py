"""A target's catalog as PyIceberg's properties, for reading it without Java.

PyIceberg imports classes that properties name (`py-io-impl`, `auth.impl`): only keys that are listed here pass.
Sources: PyIceberg 0.12, "Configuration"; Iceberg 1.12, "AWS" for the names that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

_SHARED: Final = ("uri", "warehouse")
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "rest": (
        *_SHARED, "credential", "token", "oauth2-server-uri", "scope", "audience", "resource", "prefix",
        "rest.sigv4-enabled", "rest.signing-name", "rest.signing-region", "view-endpoints-supported",
        "namespace-separator", "rest-page-size",
    ),
    "glue": ("warehouse", "glue.id", "glue.endpoint"),
    "hive": (*_SHARED, "hive.kerberos-authentication"),
    "jdbc": ("warehouse",),
}  # fmt: skip
_S3: Final = ("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.region")
_TOKENS: Final = "v1/oauth/tokens"
# Of the JDBC driver's address: what the same setting of PostgreSQL's C library, which Python uses, is called.
_SAME: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def pyiceberg_properties(kind: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return PyIceberg's properties for a catalog that a server keeps.

    Args:
        kind: rest, jdbc, glue or hive.
        settings: the keys of the target, secrets in place.
    """
    known = {key: settings[key] for key in (*_OF_KIND[kind], *_S3) if key in settings}
    made = {"type": "sql" if kind == "jdbc" else kind, **known}
    if kind == "jdbc":
        made["uri"] = sql_address(settings)
    if kind == "rest":
        made |= {key: value for key, value in settings.items() if key.startswith("header.")}
        if "credential" in settings and "oauth2-server-uri" not in settings:
            made["oauth2-server-uri"] = f"{settings['uri'].rstrip('/')}/{_TOKENS}"
    region = settings.get("client.region")
    if region is not None:
        made |= {"glue.region": region} if kind == "glue" else {}
        made.setdefault("s3.region", region)
    if "s3.path-style-access" in settings:
        virtual = settings["s3.path-style-access"].lower() != "true"
        made["s3.force-virtual-addressing"] = str(virtual).lower()
    return made


def sql_address(settings: Mapping[str, str]) -> str:
    """Return SQLAlchemy's form of the address of a JDBC catalog, with its login."""
    parts = postgres_parameters(settings)
    login = quote(parts.pop("user", ""), safe="")
    if "password" in parts:
        login += f":{quote(parts.pop('password'), safe='')}"
    hosts, port, database = parts.pop("host"), parts.pop("port"), parts.pop("dbname")
    query = f"?{urlencode(parts)}" if parts else ""
    return f"postgresql+psycopg://{login}{'@' if login else ''}{hosts}:{port}/{quote(database, safe='')}{query}"


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
