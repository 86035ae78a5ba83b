"""Files of state in a bucket, through the AWS SDK for Python.

Taken for granted: whoever reads or lists after a write sees it (S3 since 2020, and the stores that copy it), and
`If-None-Match: *` on a PUT, by which of several that create an object one wins. Nothing is renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.errors import StateError
from engine.object_store.s3_client import is_conflict, is_missing, listing, s3_errors, unreachable
from engine.object_store.whole_objects import read_object, summed
from engine.state.blob_store import MOST_BYTES

# So many keys a request removes.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class S3Store:
    """A bucket as a store; failures raise SetupError: `s3-denied`, `s3-missing`, `s3-unreachable`, `s3-client`."""

    bucket: str
    client: Callable[[], Any] = field(compare=False, repr=False)

    @property
    def uri(self) -> str:
        return f"s3a://{self.bucket}"

    def get(self, key: str) -> bytes | None:
        location = f"{self.uri}/{key}"
        content = read_object(self.client(), location, self.bucket, key, MOST_BYTES + 1)
        if content is not None and len(content) > MOST_BYTES:
            raise unreachable(location, f"the object has more than {MOST_BYTES:,} bytes")
        return content

    def put(self, key: str, content: bytes) -> None:
        with s3_errors(f"{self.uri}/{key}"):
            self.client().put_object(Bucket=self.bucket, Key=key, **summed(content))

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """See `engine.state.blob_store.Store`.

        A request whose answer was lost is repeated by the client, and then finds what it made itself.
        """
        from botocore.exceptions import ClientError

        with s3_errors(f"{self.uri}/{key}"):
            try:
                self.client().put_object(Bucket=self.bucket, Key=key, **summed(content), IfNoneMatch="*")
            except ClientError as error:
                if not is_conflict(error):
                    raise
                return self.get(key) == content
        return True

    def age(self, key: str) -> float | None:
        from email.utils import parsedate_to_datetime

        found = self._head(key)
        if found is None or not (now := found["ResponseMetadata"]["HTTPHeaders"].get("date")):
            return None
        age: float = (parsedate_to_datetime(now) - found["LastModified"]).total_seconds()
        return max(age, 0.0)

    def list(self, prefix: str) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries(prefix))

    def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
        begin = f"{prefix}/" if prefix else ""
        names: dict[str, bool] = {}
        for page in self._pages(begin, Delimiter="/"):
            names |= {entry["Prefix"][len(begin) : -1]: True for entry in page.get("CommonPrefixes", ())}
            # Hadoop makes an object of a folder's own name, with a slash.
            names |= {name: False for entry in page.get("Contents", ()) if (name := entry["Key"][len(begin) :])}
        return tuple(sorted(names.items()))

    def keys(self, prefix: str) -> tuple[str, ...]:
        begin = f"{prefix}/" if prefix else ""
        return tuple(sorted(key[len(begin) :] for key in self._all(begin) if not key.endswith("/")))

    def delete(self, prefix: str) -> None:
        self.remove((prefix, *self._all(f"{prefix}/")))

    def remove(self, keys: Iterable[str]) -> None:
        waiting = list(keys)
        for at in range(0, len(waiting), _AT_ONCE):
            objects = [{"Key": key} for key in waiting[at : at + _AT_ONCE]]
            with s3_errors(f"{self.uri}/{objects[0]['Key']}"):
                if len(objects) == 1:
                    self.client().delete_object(Bucket=self.bucket, **objects[0])
                    continue
                done = self.client().delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True})
            for error in done.get("Errors", ()):
                message = f"{self.uri}/{error['Key']} cannot be removed: {error.get('Message') or error.get('Code')}"
                raise StateError("state-unwritable", message, "Check that the login may delete there.")

    def copy(self, key: str, to: str) -> bool:
        """Copy an object, which has 5 GB at most."""
        from botocore.exceptions import ClientError

        with s3_errors(f"{self.uri}/{key}"):
            try:
                self.client().copy_object(Bucket=self.bucket, Key=to, CopySource={"Bucket": self.bucket, "Key": key})
            except ClientError as error:
                if is_missing(error):
                    return False
                raise
        return True

    def _all(self, begin: str) -> Iterator[str]:
        for page in self._pages(begin):
            yield from (entry["Key"] for entry in page.get("Contents", ()))

    def _pages(self, begin: str, **asked: str) -> Iterator[dict[str, Any]]:
        yield from listing(self.client(), f"{self.uri}/{begin}", Bucket=self.bucket, Prefix=begin, **asked)

    def _head(self, key: str) -> dict[str, Any] | None:
        from botocore.exceptions import ClientError

        with s3_errors(f"{self.uri}/{key}"):
            try:
                answer: dict[str, Any] = self.client().head_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if is_missing(error):
                    return None
                raise
        return answer
