"""What a server of Iceberg's REST protocol may set of its clients: where paths begin, sizes of pages, names.

Its `/v1/config` and each table's `config` win over the target (ConfigResponse.merge, PyIceberg alike), with classes to
load, addresses and logins among them. Here it chooses none: Python takes the keys of `CLIENT_KEYS`, and Java is not
started before `rejected_key` has looked. Sources: Iceberg 1.12, RESTSessionCatalog, CatalogProperties,
S3FileIOProperties, AwsClientProperties, AuthProperties, HTTPClient.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.addresses import AddressError, Server, web_address

# A path of plain parts: neither a query, a fragment nor a host.
_PREFIX: Final = re.compile(r"(?:[\w.~%@!$&'()*+,;=:-]+(?:/[\w.~%@!$&'()*+,;=:-]+)*)?/?", re.ASCII)
CLIENT_KEYS: Final[Mapping[str, re.Pattern[str]]] = {
    "prefix": _PREFIX,
    "namespace-separator": re.compile(r"[!-~]{1,20}"),
    "rest-page-size": re.compile(r"[1-9][0-9]{0,5}"),
    "view-endpoints-supported": re.compile(r"true|false", re.IGNORECASE),
}
_FILE_IO: Final = frozenset(
    f"org.apache.iceberg.{name}"
    for name in (
        "io.ResolvingFileIO", "aws.s3.S3FileIO", "gcp.gcs.GCSFileIO", "azure.adlsv2.ADLSFileIO", "hadoop.HadoopFileIO",
    )
)  # fmt: skip
_CLASS: Final = re.compile(r"(?:^|[^\w.])(?:[A-Za-z_]\w*\.)+[A-Z]\w*")
_CLASS_KEY: Final = re.compile(r"(?:impl|factory|provider|class|reporter|(?:catalog|auth)[.-]type)$")
_LOGIN_KEY: Final = re.compile(
    r"credential|token|(?:auth|header|jdbc|hadoop)\..*|auth|type|client\.assume-role\..*|.*profile.*"
    r"|rest\.(?:auth|sigv4|signing|access|secret|session|client\.tls).*"
)
_ADDRESS_KEY: Final = re.compile(r".*(?:endpoint|\bur[il]\b|\bhost|proxy|connection-string).*")
# Paths that Java completes with the catalog's address.
_RELATIVE_KEY: Final = re.compile(
    r".*(?:refresh-credentials-endpoint|signer\.endpoint|remote-signing\.endpoint)|oauth2-server-uri"
)
# Folders of this machine that Java would write to.
_FOLDER_KEY: Final = re.compile(r".*(?:staging|temp|tmp|local)-?dir.*")
_STORES: Final = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "file", "")
# What a server gives out for the files of a table: a login of its own, which may go to the store that it names.
_OWN_LOGINS: Final = (
    ("s3.access-key-id", "s3.secret-access-key"), ("adls.sas-token.",), ("gcs.oauth2.token",),
)  # fmt: skip
_STORE_ADDRESS: Final = re.compile(r"s3\.endpoint|adls\.connection-string\..*|gcs\.service\.host")
_STORE_ENDPOINT: Final = re.compile(rf"(?:dynamodb|kms|sts|client)\.endpoint|{_STORE_ADDRESS.pattern}")
_S3_LOGIN: Final = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
_MAX_TEXT: Final = 65_536


def client_settings(config: Mapping[str, Any], target: Mapping[str, str]) -> dict[str, str]:
    """Return what Python's client takes of a server's configuration and of the target's keys.

    Raises ValueError: a value of the server is not of the form that its key has.
    """
    chosen_settings: dict[str, str] = {}
    for key, form in CLIENT_KEYS.items():
        for place, settings in (
            ("defaults", config.get("defaults")),
            ("target", target),
            ("overrides", config.get("overrides")),
        ):
            value = settings.get(key) if isinstance(settings, Mapping) else None
            if value is None:
                continue
            if (
                not isinstance(value, str)
                or not form.fullmatch(value)
                or ".." in value.split("/")
                or "." in value.split("/")
            ):
                raise ValueError(
                    f"'{key}' of its configuration cannot be used" if place != "target" else f"'{key}' cannot be used"
                )
            chosen_settings[key] = value
    return chosen_settings


def server_settings(config: Mapping[str, Any], target: Mapping[str, str]) -> dict[str, Any]:
    defaults, overrides = (config.get(part) for part in ("defaults", "overrides"))
    settings = dict(defaults) if isinstance(defaults, Mapping) else {}
    settings = {key: value for key, value in settings.items() if key not in target}
    return settings | (dict(overrides) if isinstance(overrides, Mapping) else {})


def table_settings(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    config = response.get("config")
    config = dict(config) if isinstance(config, Mapping) else {}
    yield config
    logins = response.get("storage-credentials")
    for login in logins if isinstance(logins, list) else ():
        if isinstance(login, Mapping) and isinstance(login.get("config"), Mapping):
            yield {**config, **login["config"]}


def rejected_key(server_config: Mapping[str, Any], target: Mapping[str, str], *, of_table: bool = False) -> str:
    """Return the key by which a server chooses a class, an address, a login or a folder of Java's; empty: none does."""
    own_login = any(all(_has(server_config, key) for key in keys) for keys in _OWN_LOGINS)
    own_login = own_login and not {key for key in _S3_LOGIN if key in target} - server_config.keys()
    for key, value in server_config.items():
        if not isinstance(value, str) or len(value) > _MAX_TEXT:
            return str(key)
        if target.get(key) == value or key in CLIENT_KEYS:
            continue
        if key == "io-impl" and value in _FILE_IO:
            continue
        if of_table and (key == "token" or key.startswith("urn:ietf:params:oauth:token-type:")):
            continue
        if _CLASS_KEY.search(key) or _CLASS.search(value) or _LOGIN_KEY.fullmatch(key) or _FOLDER_KEY.fullmatch(key):
            return key
        if own_login and _STORE_ADDRESS.fullmatch(key):
            continue
        if not _is_harmless_address(key, value, target):
            return key
    return ""


def _has(server_config: Mapping[str, Any], key: str) -> bool:
    return key in server_config or (
        key.endswith(".") and any(str(config_key).startswith(key) for config_key in server_config)
    )


def _is_harmless_address(key: str, value: str, target: Mapping[str, str]) -> bool:
    """Whether a value is not an address, one on the server that gets the same login anyway, or a path below it."""
    if (server := _server(value)) is not None:
        return server == _expected(key, target)
    if not _ADDRESS_KEY.fullmatch(key):
        return "://" not in value or value.partition(":")[0].lower() in _STORES
    relative = "//" not in value and "\\" not in value and ":" not in value
    numbers = value.lower() in {"true", "false"} or value.isdecimal()
    return numbers or (relative and _RELATIVE_KEY.fullmatch(key) is not None)


def _expected(key: str, target: Mapping[str, str]) -> Server | None:
    """The server that a key leads to without the word of another; None: a store, which gets another login."""
    if key in target:
        return _server(target[key])
    if not _STORE_ENDPOINT.fullmatch(key):
        return _server(target.get("uri", ""))
    return None


def _server(value: str) -> Server | None:
    try:
        return web_address(value).server
    except AddressError:
        return None
