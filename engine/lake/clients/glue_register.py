"""Tables of AWS Glue, through the AWS SDK for Python. Source: the API of Glue's Data Catalog (GetTable, GetTables)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients.catalog_errors import denied, unreachable, unusable
from engine.object_store.aws_client import aws_client
from engine.object_store.s3_client import DENIED, error_code
from engine.object_store.s3_settings import S3Settings

_MOST_PAGES: Final = 2_000
_MISSING: Final = "EntityNotFoundException"
_NO_RIGHT: Final = (*DENIED, "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException")


class GlueRegister:
    """The Data Catalog of an account."""

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._settings = config.settings()
        self._account = {"CatalogId": self._settings["glue.id"]} if self._settings.get("glue.id") else {}

    @cached_property
    def _glue(self) -> Any:
        known = self._settings
        user, secret, token = (
            known.get(f"glue.{key}", known.get(f"client.{key}", known.get(f"s3.{key}")))
            for key in ("access-key-id", "secret-access-key", "session-token")
        )
        region = known.get("glue.region", known.get("client.region", known.get("s3.region")))
        return aws_client("glue", S3Settings(known.get("glue.endpoint"), region, user, secret, token))

    def parameters(self, schema: str, name: str) -> Mapping[str, Any] | None:
        """See `TableRegister`."""
        with self._errors() as missing:
            answer = self._glue.get_table(DatabaseName=schema, Name=name, **self._account)
        return None if missing else _parameters(answer.get("Table"))

    def tables(self, schema: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `TableRegister`."""
        for table in self._listed("get_tables", "TableList", DatabaseName=schema):
            yield str(table.get("Name")), _parameters(table)

    def schemas(self) -> Iterator[str]:
        """See `TableRegister`."""
        yield from (str(database.get("Name")) for database in self._listed("get_databases", "DatabaseList"))

    def drop(self, schema: str, name: str) -> bool:
        """See `TableRegister`."""
        with self._errors() as missing:
            self._glue.delete_table(DatabaseName=schema, Name=name, **self._account)
        return not missing

    def _listed(self, operation: str, key: str, **arguments: str) -> Iterator[Mapping[str, Any]]:
        page: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            with self._errors() as missing:
                answer = getattr(self._glue, operation)(**arguments, **self._account, **page)
            if missing:
                return
            yield from (item for item in answer.get(key) or () if isinstance(item, Mapping))
            token = answer.get("NextToken")
            if not token or token == page.get("NextToken"):
                return
            page = {"NextToken": token}
        raise unusable(self._config, f"a list of names has more than {_MOST_PAGES:,} pages")

    @contextmanager
    def _errors(self) -> Iterator[list[str]]:
        """Errors of the SDK as ours; what is not there is noted in the list."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
        from botocore.parsers import ResponseParserError

        missing: list[str] = []
        try:
            yield missing
        except ClientError as error:
            code = error_code(error)
            if code == _MISSING:
                missing.append(code)
            elif code in _NO_RIGHT:
                raise denied(self._config, str(error)) from error
            else:
                raise unusable(self._config, str(error)) from error
        except NoCredentialsError as error:
            raise denied(self._config, str(error)) from error
        except HTTPClientError as error:
            raise unreachable(self._config, str(error)) from error
        # What the SDK raises of an answer that is not one of Glue's is of many kinds.
        except (
            BotoCoreError, ResponseParserError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
        ) as error:  # fmt: skip
            raise unusable(self._config, f"its answer cannot be used ({type(error).__name__})") from error


def _parameters(table: Any) -> Mapping[str, Any]:
    found = table.get("Parameters") if isinstance(table, Mapping) else None
    return found if isinstance(found, Mapping) else {}
