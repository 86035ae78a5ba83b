"""The `s3:` of a target as the settings of each client: Hadoop's S3A, Iceberg's S3FileIO, PyIceberg.

Sources: Hadoop 3.4.2, "Connecting to an Amazon S3 Bucket through the S3A Connector"; Iceberg 1.12, "AWS"; PyIceberg
0.12, "Configuration". The client of Python is in `s3_client`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SCHEMES: Final = ("s3", "s3a", "s3n")
# The warehouse of a server that places tables itself.
ANYWHERE: Final = "s3://"
FILE_IO: Final = "org.apache.iceberg.aws.s3.S3FileIO"
_S3A: Final = "spark.hadoop.fs.s3a"
_FILE_SYSTEM: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_GIVEN: Final = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_TEMPORARY: Final = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
# Hadoop's own list knows neither profiles nor the web identity of a Kubernetes pod; the SDK's chain does.
_CHAIN: Final = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


@dataclass(frozen=True, slots=True)
class S3Settings:
    """A field that is None is left to the AWS SDK, which finds the login in the environment, a profile or a role."""

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    path_style_access: bool | None = None

    @classmethod
    def from_block(cls, settings: Mapping[str, str]) -> S3Settings:
        texts = {key: value for key, value in settings.items() if key != "path_style_access"}
        path_style = settings.get("path_style_access")
        return cls(**texts, path_style_access=None if path_style is None else path_style == "true")


def is_s3(location: str) -> bool:
    scheme, colon, _ = location.partition(":")
    return bool(colon) and scheme.lower() in SCHEMES


def bucket_and_key(location: str) -> tuple[str, str]:
    _, _, path = location.partition("://")
    bucket, _, key = path.partition("/")
    return bucket, key


def hadoop_conf(settings: S3Settings) -> dict[str, str]:
    conf = {"spark.hadoop.fs.s3.impl": _FILE_SYSTEM, f"{_S3A}.aws.credentials.provider": _provider(settings)}
    values = {
        "endpoint": settings.endpoint,
        "endpoint.region": settings.region,
        "access.key": settings.access_key_id,
        "secret.key": settings.secret_access_key,
        "session.token": settings.session_token,
        "path.style.access": _flag(settings.path_style_access),
    }
    if settings.endpoint:
        values["connection.ssl.enabled"] = _flag(not settings.endpoint.lower().startswith("http:"))
    return conf | {f"{_S3A}.{key}": value for key, value in values.items() if value is not None}


def iceberg_properties(settings: S3Settings) -> dict[str, str]:
    values = {**_shared(settings), "client.region": settings.region}
    values["s3.path-style-access"] = _flag(settings.path_style_access)
    return {key: value for key, value in values.items() if value is not None}


def pyiceberg_properties(settings: S3Settings) -> dict[str, str]:
    values = {**_shared(settings), "s3.region": settings.region}
    if settings.path_style_access is not None:
        values["s3.force-virtual-addressing"] = _flag(not settings.path_style_access)
    return {key: value for key, value in values.items() if value is not None}


def _shared(settings: S3Settings) -> dict[str, str | None]:
    return {
        "s3.endpoint": settings.endpoint,
        "s3.access-key-id": settings.access_key_id,
        "s3.secret-access-key": settings.secret_access_key,
        "s3.session-token": settings.session_token,
    }


def _provider(settings: S3Settings) -> str:
    if settings.access_key_id is None:
        return _CHAIN
    return _GIVEN if settings.session_token is None else _TEMPORARY


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()
