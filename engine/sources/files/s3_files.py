"""The files of a source in an object store, listed and opened without Java, as Spark would list them.

A folder is a beginning of names. Names with a part that Spark ignores (`engine.ignored_file_names`) are left out, and
so are the empty objects by which tools mark a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from engine.addresses import web_address
from engine.ignored_file_names import holds_rows, is_listed
from engine.object_store.s3_client import listing, s3_client
from engine.object_store.s3_settings import S3Settings, bucket_and_key

# More files than this are cheaper to find by listing their folder than one by one.
_ONE_BY_ONE: Final = 100

Found = tuple[str, int, int]


def walk(path: str, settings: S3Settings) -> Iterator[Found]:
    """Yield address, size in bytes and time in milliseconds of each file below a folder, or of one file.

    Raises SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
    """
    bucket, key = bucket_and_key(path.rstrip("/"))
    begin = f"{urlsplit(path).scheme}://{bucket}/"
    folder = f"{key}/" if key else ""
    for entry in _entries(path, settings, bucket, folder):
        name = str(entry["Key"])
        if not name.endswith("/") and _is_read(name[len(folder) :]):
            yield begin + name, int(entry["Size"]), _milliseconds(entry)
    if key and _is_read(key.rpartition("/")[2]):
        yield from ((begin + key, int(e["Size"]), _milliseconds(e)) for e in _exactly(path, settings, bucket, key))


def _is_read(name: str) -> bool:
    *folders, last = name.split("/")
    return all(map(is_listed, folders)) and is_listed(last) and holds_rows(last)


def exists(path: str, settings: S3Settings) -> bool:
    """Return whether there is a file of this name, or anything below a folder of it.

    Raises SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
    """
    bucket, key = bucket_and_key(path.rstrip("/"))
    below = _entries(path, settings, bucket, f"{key}/" if key else "", most=1)
    return any(True for _ in below) or (bool(key) and any(True for _ in _exactly(path, settings, bucket, key)))


def times(uris: Iterable[str], folders: Iterable[str], settings: S3Settings) -> Mapping[str, int]:
    """Return the times of some files as they are now, in milliseconds; files that are gone are left out.

    Raises SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
    """
    wanted_uris = list(uris)
    if len(wanted_uris) > _ONE_BY_ONE:
        return {uri: time for folder in folders for uri, _, time in walk(folder, settings)}
    parts = {uri: bucket_and_key(uri) for uri in wanted_uris}
    return {uri: _milliseconds(e) for uri, (bucket, key) in parts.items() for e in _exactly(uri, settings, bucket, key)}


def opened(uri: str, settings: S3Settings) -> Any:
    """Return a file of pyarrow's that can be read; None: it is gone.

    Raises SetupError: `s3-unreachable`, `s3-denied`.
    """
    from pyarrow.fs import S3FileSystem

    from engine.object_store.s3_client import unreachable

    server = web_address(settings.endpoint).server if settings.endpoint else None
    virtual = {} if settings.path_style_access is None else {"force_virtual_addressing": not settings.path_style_access}
    optional_settings = {
        "access_key": settings.access_key_id,
        "secret_key": settings.secret_access_key,
        "session_token": settings.session_token,
        "region": settings.region,
        "endpoint_override": f"{server.host_text}:{server.port}" if server else None,
        "scheme": server.scheme if server else None,
    }
    files = S3FileSystem(**{key: value for key, value in optional_settings.items() if value is not None}, **virtual)
    try:
        return files.open_input_file("/".join(bucket_and_key(uri)))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreachable(uri, str(error)) from error


def _entries(
    path: str, settings: S3Settings, bucket: str, prefix: str, most: int | None = None
) -> Iterator[Mapping[str, Any]]:
    limits = {} if most is None else {"MaxItems": most, "PageSize": most}
    for page in listing(s3_client(settings), path, Bucket=bucket, Prefix=prefix, PaginationConfig=limits):
        yield from page.get("Contents", ())


def _exactly(path: str, settings: S3Settings, bucket: str, key: str) -> Iterator[Mapping[str, Any]]:
    """The entry of one name: a listing shows times as other listings do, to the millisecond where a store has them."""
    yield from (entry for entry in _entries(path, settings, bucket, key, most=1) if entry["Key"] == key)


def _milliseconds(entry: Mapping[str, Any]) -> int:
    return int(entry["LastModified"].timestamp() * 1000 + 0.5)
