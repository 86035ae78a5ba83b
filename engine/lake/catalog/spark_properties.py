"""A target's catalog as Spark's settings: `spark.sql.catalog.<name>.<key>`.

The keys are those of Iceberg's documentation and pass as they are written; what is set beside them is listed here.
Sources: Iceberg 1.12, "Configuration" (catalog properties), "JDBC catalog", and its RESTCatalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.object_store.s3_settings import FILE_IO, is_s3

SPARK_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
# Nobody waits for a server without end: a connection, and one answer.
_REST: Final = {"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "60000"}
# A token is renewed as the first was fetched, with the credential. Iceberg's default is to exchange the old one, which
# servers that know client credentials alone reject: the next commit is not authorized (measured).
_RENEWAL: Final = {"token-exchange-enabled": "false"}
# The same, in seconds, for the PostgreSQL driver; V1 knows views.
_JDBC: Final = {
    "jdbc.schema-version": "V1",
    "jdbc.loginTimeout": "10",
    "jdbc.socketTimeout": "60",
    "jdbc.tcpKeepAlive": "true",
}
_BESIDE: Final[Mapping[str, Mapping[str, str]]] = {"rest": _REST, "jdbc": _JDBC}


def spark_properties(kind: str, name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for a catalog that a server keeps.

    Args:
        kind: rest or jdbc.
        name: of the catalog in SQL.
        settings: the keys of the target, secrets in place.
    """
    prefix = f"spark.sql.catalog.{name}"
    # With its cache Spark would not see for half a minute what others commit.
    renewal = _RENEWAL if "credential" in settings else {}
    files = {"io-impl": FILE_IO} if kind != "rest" and is_s3(settings.get("warehouse", "")) else {}
    inner = {"type": kind, "cache-enabled": "false", **_BESIDE[kind], **files, **renewal, **settings}
    return {prefix: SPARK_CATALOG, **{f"{prefix}.{key}": value for key, value in inner.items()}}
