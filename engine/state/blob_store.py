"""What state asks of the place where it is kept: no more than an object store gives; also a bucket as such a place.

Whole files are written, read, listed and removed; one that must not be there yet is created only if it is not. Nothing
is renamed, appended to or locked. Spark's checkpoints have Spark's own file systems. A bucket must show writes to who
reads or lists after them, and honour `If-None-Match: *` on a PUT (S3, and the stores that copy it).
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from engine.bounds.regular_file import NotRegularError, read_regular
from engine.errors import StateError
from engine.object_store.s3_client import is_conflict, is_missing, listing, s3_errors, unreachable
from engine.object_store.whole_objects import read_object, summed

PRIVATE = 0o700
# Of a file of the state: facts about a model, or (in a checkpoint) the names of all files that a stream was given.
MOST_BYTES = 1 << 30


class Store(Protocol):
    """A place for small files. What cannot be read or written raises StateError, with the system's reason."""

    def get(self, key: str) -> bytes | None:
        """The content of a file; None: there is none."""

    def put(self, key: str, content: bytes) -> None:
        """Write a file, or another content of it; others see the old one or the new one."""

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write a file that is not there; False, and nothing written, if it is. Of several writers one wins."""

    def age(self, key: str, /) -> float | None:
        """How many seconds ago a file was written, by the store's own clock; None: it has none that all agree on."""

    def list(self, prefix: str) -> tuple[str, ...]:
        """The names directly under a prefix, of files and of what has files under it; in order."""

    def delete(self, prefix: str) -> None:
        """Remove a file, or all that is under a prefix; that nothing is there is no error."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A store in the local file system: readable by its owner only, on the disk when a call returns."""

    root: Path

    @property
    def uri(self) -> str:
        return str(self.root)

    def get(self, key: str) -> bytes | None:
        try:
            return content(f"{self.root}/{key}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(self.root / key, error) from error

    def put(self, key: str, content: bytes) -> None:
        path = self.root / key
        make_private(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            _write(temporary, content)
            temporary.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise unwritable(path, error) from error

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """See `Store`; a hard link is made of a whole file, or not made if the name is taken."""
        path = self.root / key
        make_private(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            _write(temporary, content)
            os.link(temporary, path)
            sync_folder(path.parent)
        except FileExistsError:
            return False
        except OSError as error:
            raise unwritable(path, error) from error
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def age(self, _: str) -> float | None:
        """See `Store`; the clocks of machines that share a folder may differ."""
        return None

    def list(self, prefix: str) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries(prefix) if not name.startswith("."))

    def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
        try:
            with os.scandir(f"{self.root}/{prefix}") as scanned:
                return tuple(sorted((entry.name, entry.is_dir()) for entry in scanned))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise unreadable(self.root / prefix, error) from error

    def keys(self, prefix: str) -> tuple[str, ...]:
        folder = self.root / prefix
        return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))

    def delete(self, prefix: str) -> None:
        path = self.root / prefix
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            (self.root / key).unlink(missing_ok=True)

    def copy(self, key: str, to: str) -> bool:
        copied = self.get(key)
        if copied is not None:
            self.put(to, copied)
        return copied is not None


def content(path: Path | str) -> bytes:
    """The content of a regular file; the state may have come with a project, where a link or a pipe has its name.

    Raises OSError: it cannot be read, or is something else.
    """
    try:
        return read_regular(path, MOST_BYTES)
    except NotRegularError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for the owner only. Raises StateError: `state-unwritable`."""
    missing_folders = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        for path in reversed(missing_folders):
            path.mkdir(mode=PRIVATE, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def unwritable(path: Path, error: OSError) -> StateError:
    hint = "Make the folder writable and check the free space, or change 'state:' of the target."
    return StateError("state-unwritable", f"{path} cannot be written: {error.strerror}", hint)


def unreadable(path: Path, error: OSError) -> StateError:
    hint = "Make it readable, or restore it from a backup: it records the content of the table."
    return StateError("state-unreadable", f"{path} cannot be read: {error.strerror}", hint)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        """See `Store`; a request whose answer was lost is repeated, and finds its own object."""
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

        head = self._head(key)
        if head is None or not (date_header := head["ResponseMetadata"]["HTTPHeaders"].get("date")):
            return None
        age: float = (parsedate_to_datetime(date_header) - head["LastModified"]).total_seconds()
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
                response = self.client().delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True})
            for error in response.get("Errors", ()):
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

    def _pages(self, begin: str, **parameters: str) -> Iterator[dict[str, Any]]:
        yield from listing(self.client(), f"{self.uri}/{begin}", Bucket=self.bucket, Prefix=begin, **parameters)

    def _head(self, key: str) -> dict[str, Any] | None:
        from botocore.exceptions import ClientError

        with s3_errors(f"{self.uri}/{key}"):
            try:
                response: dict[str, Any] = self.client().head_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if is_missing(error):
                    return None
                raise
        return response
