"""A warehouse in an object store, read and removed without Java: `s3://bucket/folder`.

A location is compared as a path that begins with the bucket. Locations may come with a stranger's project, so nothing
outside the folder is read with the login of who runs the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from engine.lake.catalog.locations import OutsideError
from engine.object_store.s3_client import listing, s3_client, s3_errors
from engine.object_store.s3_settings import S3Settings, bucket_and_key, is_s3
from engine.object_store.whole_objects import read_object


@dataclass(frozen=True, slots=True)
class ObjectWarehouse:
    """`location` is `s3://bucket/folder`, or `s3://`: anywhere in the store."""

    location: str
    store: Callable[[], S3Settings] = field(repr=False, compare=False)

    @property
    def root(self) -> PurePosixPath:
        bucket, key = bucket_and_key(self.location)
        return PurePosixPath("/", bucket, key)

    def resolve(self, location: str) -> PurePosixPath:
        """Return the path of a location; it begins with the bucket.

        Raises OutsideError: it is not below the warehouse.
        """
        if not is_s3(location) or "\0" in location:
            raise OutsideError(location)
        bucket, key = bucket_and_key(location)
        path = PurePosixPath("/", bucket, key)
        # Keys are literal in a store; what clients make of dots and empty parts differs.
        literal = f"/{bucket}/{key}".rstrip("/") == str(path) and ".." not in path.parts
        if not bucket or not literal or not path.is_relative_to(self.root):
            raise OutsideError(location)
        return path

    def read(self, location: str, limit: int) -> bytes:
        """Return the first bytes of an object.

        Raises:
            OutsideError: it is not below the warehouse.
            FileNotFoundError: there is none.
            SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
        """
        bucket, key = _parts(self.resolve(location))
        content = read_object(s3_client(self.store()), location, bucket, key, limit)
        if content is None:
            raise FileNotFoundError(location)
        return content

    def check(self) -> None:
        """Ask the store for one object of the warehouse, to find out whether it answers.

        Raises SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
        """
        bucket, key = bucket_and_key(self.location)
        if bucket:
            client = s3_client(self.store())
            with s3_errors(self.location):
                client.list_objects_v2(Bucket=bucket, Prefix=f"{key}/" if key else "", MaxKeys=1)

    def remove(self, folder: PurePosixPath) -> None:
        """Remove all objects of a folder.

        Raises SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
        """
        bucket, key = _parts(folder)
        client = s3_client(self.store())
        with s3_errors(f"s3:/{folder}"):
            for keys in _keys(client, f"s3:/{folder}", bucket, f"{key}/"):
                response = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
                if failures := response.get("Errors"):
                    from botocore.exceptions import ClientError

                    raise ClientError({"Error": failures[0]}, "DeleteObjects")


def _keys(client: Any, location: str, bucket: str, prefix: str) -> Iterator[list[str]]:
    for page in listing(client, location, Bucket=bucket, Prefix=prefix):
        if keys := [entry["Key"] for entry in page.get("Contents", ())]:
            yield keys


def _parts(path: PurePosixPath) -> tuple[str, str]:
    return path.parts[1], "/".join(path.parts[2:])
