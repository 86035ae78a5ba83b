"""The database of the catalogs, for the machines of these tests."""

from tests.catalogs.conftest import postgres_server

__all__ = ["postgres_server"]
