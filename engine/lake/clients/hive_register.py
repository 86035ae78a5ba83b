"""Tables of a Hive metastore, over Thrift. Source: hive_metastore.thrift (ThriftHiveMetastore, Table)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.addresses.server_lists import thrift_servers
from engine.addresses.servers import AddressError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients.catalog_errors import unreachable, unusable
from engine.lake.clients.thrift_calls import ThriftError, call

CONNECT_SECONDS: float = 10.0
SECONDS: float = 60.0
# Of Table, and of the exceptions of get_table and drop_table.
_NAME, _PARAMETERS, _MISSING_IN_GET, _MISSING_IN_DROP = 1, 9, 2, 1
_AT_ONCE: Final = 100
_MOST_TABLES: Final = 200_000


class HiveRegister:
    """A metastore."""

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        settings = config.settings()
        if settings.get("hive.kerberos-authentication", "false").lower() == "true":
            hint = "Use a metastore without Kerberos for the commands that read without Java, or a REST catalog."
            raise unusable(config, "Kerberos is not supported without Java", hint)
        try:
            self._addresses = [(server.host, server.port) for server in thrift_servers(settings["uri"])]
        except AddressError as error:
            raise unusable(config, f"'uri' {error}", "Write thrift://<host>:9083.") from error

    def parameters(self, schema: str, name: str) -> Mapping[str, Any] | None:
        """See `TableRegister`."""
        found = self._called("get_table", {1: schema, 2: name}, _MISSING_IN_GET)
        return None if found is None else _parameters(found)

    def tables(self, schema: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `TableRegister`; a schema that is not there has no tables, as the metastore answers it."""
        names = self._texts(self._called("get_all_tables", {1: schema}))
        for at in range(0, len(names), _AT_ONCE):
            found = self._called("get_table_objects_by_name", {1: schema, 2: names[at : at + _AT_ONCE]})
            for table in found if isinstance(found, list) else ():
                name = table.get(_NAME) if isinstance(table, dict) else None
                if isinstance(name, str):
                    yield name, _parameters(table)

    def schemas(self) -> Iterator[str]:
        """See `TableRegister`."""
        yield from self._texts(self._called("get_all_databases", {}))

    def drop(self, schema: str, name: str) -> bool:
        """See `TableRegister`."""
        return self._called("drop_table", {1: schema, 2: name, 3: False}, _MISSING_IN_DROP, empty=True) is not None

    def _texts(self, found: Any) -> list[str]:
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise unusable(self._config, "its answer is not a list of names")
        if len(found) > _MOST_TABLES:
            raise unusable(self._config, f"it has more than {_MOST_TABLES:,} names")
        return found

    def _called(self, name: str, arguments: Mapping[int, Any], missing: int = -1, *, empty: bool = False) -> Any:
        """The value of a method; None: there is no such table."""
        failure: OSError = OSError("no address")
        for address in self._addresses:
            try:
                found = call(address, name, arguments, connect=CONNECT_SECONDS, seconds=SECONDS)
            except OSError as error:
                failure = error
                continue
            except ThriftError as error:
                raise unusable(self._config, str(error)) from error
            if missing in found:
                return None
            wrong = next((value for number, value in found.items() if number != 0), None)
            if wrong is not None or (0 not in found and not empty):
                said = wrong.get(1) if isinstance(wrong, dict) else None
                raise unusable(self._config, str(said)[:300] if said else f"it does not answer {name}")
            return found.get(0, True)
        raise unreachable(self._config, str(failure) or type(failure).__name__)


def _parameters(table: Any) -> Mapping[str, Any]:
    found = table.get(_PARAMETERS) if isinstance(table, dict) else None
    return found if isinstance(found, dict) else {}
