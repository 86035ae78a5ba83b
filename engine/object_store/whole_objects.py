"""Objects that are read whole, and those that carry the sum of their content.

A connection that ends too early looks like the end of an object to whoever does not count. The sum is in the object's
own headers, where no second object can be lost; objects that were written without one are read as they are. Java does
the same for Spark's checkpoints (`SummedFile.java` in engine/spark/checkpoint_files).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.errors import StateError
from engine.object_store.s3_client import is_missing, s3_errors, unreachable

# Of the metadata of an object, which a store keeps with it and gives with each answer.
SUM: Final = "headrace-sha256"
_PAUSES: Final = (0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class _Received:
    content: bytes
    length: int
    sum: str
    is_whole: bool

    @property
    def cut_off(self) -> bool:
        return self.is_whole and len(self.content) < self.length

    @property
    def altered(self) -> bool:
        return self.is_whole and bool(self.sum) and self.sum != sum_of(self.content)


def sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def summed(content: bytes) -> Mapping[str, Any]:
    return {"Body": content, "Metadata": {SUM: sum_of(content)}}


def read_object(
    client: Any, location: str, bucket: str, key: str, limit: int, pause: Callable[[float], None] = time.sleep
) -> bytes | None:
    """Return the first bytes of an object, all of them or an error; None: there is no such object.

    Raises:
        SetupError: `s3-denied`, `s3-missing`, `s3-unreachable`: the object was cut off, each time that it was read.
        StateError: `state-unreadable`: it has another content than it was written with.
    """
    for wait in (*_PAUSES, None):
        received = _received(client, location, bucket, key, limit)
        if received is None:
            return None
        if isinstance(received, _Received) and not (received.cut_off or received.altered):
            return received.content
        if wait is not None:
            pause(wait)
    raise _incomplete(location, received)


def _received(client: Any, location: str, bucket: str, key: str, limit: int) -> _Received | Exception | None:
    """What came of an object, or the error of a connection that ended; None: there is no such object."""
    from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError

    with s3_errors(location):
        try:
            response: dict[str, Any] = client.get_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        # An answer in chunks names no length; where they end too early, the client notices.
        body, length = response["Body"], int(response.get("ContentLength", 0))
        content = bytearray()
        try:
            while len(content) < limit and (more := body.read(limit - len(content))):
                content += more
        except (HTTPClientError, IncompleteReadError) as error:
            # The SDK repeats a request, not the reading of its answer.
            read_error: Exception = error
            return read_error
        finally:
            body.close()
        return _Received(bytes(content), length, response.get("Metadata", {}).get(SUM, ""), length <= limit)


def _incomplete(location: str, received: _Received | Exception | None) -> Exception:
    if not isinstance(received, _Received):
        return unreachable(location, f"the object was cut off: {received}")
    if received.cut_off:
        return unreachable(location, f"the object was cut off: {len(received.content)} of {received.length} bytes came")
    message = f"{location} has another content than it was written with"
    hint = "Restore it from a backup of the bucket, or from an earlier version of the object."
    return StateError("state-unreadable", message, hint)
