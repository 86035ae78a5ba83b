"""Calls of Apache Thrift's binary protocol, as a Hive metastore answers them: a connection for each call.

Thrift's own client has no limit of time or size. Here an answer has both, as a whole, and is a plain value: a struct is
a mapping from the numbers of its fields. Source: Thrift's "Binary protocol" (strict encoding, version 1).
"""

from __future__ import annotations

import io
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any, Final

from engine.bounds.deadline import TimedReader, seconds_left

_VERSION: Final = 0x80010000
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
_BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _TEXT, _STRUCT, _MAP, _SET, _LIST = 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
_NUMBERS: Final = {_BYTE: ">b", _DOUBLE: ">d", _I16: ">h", _I32: ">i", _I64: ">q"}
_MOST_BYTES: Final = 1 << 26
_MOST_VALUES: Final = 1_000_000
_MOST_DEPTH: Final = 20
_MOST_TEXT: Final = 1 << 24


class ThriftError(Exception):
    """An answer is not one of Thrift's, or it says that the call failed."""


def call(
    address: tuple[str, int], name: str, arguments: Mapping[int, Any], *, connect: float, seconds: float
) -> dict[int, Any]:
    """Call a method and return the fields of its result: 0 is the value, others are exceptions.

    Args:
        address: host and port.
        name: of the method.
        arguments: by number: a text, a truth value or a list of texts.
        connect: seconds to connect.
        seconds: of the whole call.

    Raises:
        ThriftError: the answer cannot be read.
        OSError: no answer, or too late.
    """
    deadline = time.monotonic() + seconds
    request = struct.pack(">I", _VERSION | _CALL) + _text(name) + struct.pack(">i", 1) + _arguments(arguments)
    with socket.create_connection(address, min(connect, seconds)) as connection:
        connection.sendall(request)
        with TimedReader(connection, lambda: seconds_left(seconds, deadline)) as raw:
            return _Answer(io.BufferedReader(raw)).result(name)


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">i", len(data)) + data


def _arguments(arguments: Mapping[int, Any]) -> bytes:
    made = b""
    for number, value in arguments.items():
        if isinstance(value, bool):
            made += struct.pack(">bhb", _BOOL, number, int(value))
        elif isinstance(value, str):
            made += struct.pack(">bh", _TEXT, number) + _text(value)
        else:
            made += struct.pack(">bhbi", _LIST, number, _TEXT, len(value)) + b"".join(map(_text, value))
    return made + b"\0"


class _Answer:
    """An answer while it is read: what it may still hold."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream, self._bytes, self._values = stream, _MOST_BYTES, _MOST_VALUES

    def result(self, name: str) -> dict[int, Any]:
        """The result of a method."""
        version = self._number(">I")
        if version & 0xFFFF0000 != _VERSION or self._read(_TEXT, 0) != name:
            raise ThriftError("its answer is not one of a Hive metastore")
        self._number(">i")
        found = self._read(_STRUCT, 0)
        if version & 0xFF == _EXCEPTION:
            raise ThriftError(str(found.get(1) or "the call failed")[:300])
        if version & 0xFF != _REPLY or not isinstance(found, dict):
            raise ThriftError("its answer is not one of a Hive metastore")
        return found

    def _take(self, size: int) -> bytes:
        self._bytes -= size
        if size < 0 or self._bytes < 0:
            raise ThriftError("its answer is too large")
        data = self._stream.read(size)
        if len(data) < size:
            raise ThriftError("its answer is cut off")
        return data

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _size(self) -> int:
        size: int = self._number(">i")
        if not 0 <= size <= self._values:
            raise ThriftError("its answer is too large")
        return size

    def _read(self, kind: int, depth: int) -> Any:
        self._values -= 1
        if self._values < 0 or depth > _MOST_DEPTH:
            raise ThriftError("its answer is too large")
        if kind == _BOOL:
            return self._number(">b") != 0
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _TEXT:
            size = self._number(">i")
            if size > _MOST_TEXT:
                raise ThriftError("its answer is too large")
            return self._take(size).decode("utf-8", "replace")
        if kind == _STRUCT:
            return self._struct(depth + 1)
        if kind in {_SET, _LIST}:
            inner = self._number(">b")
            return [self._read(inner, depth + 1) for _ in range(self._size())]
        if kind == _MAP:
            keys, values = self._number(">b"), self._number(">b")
            pairs = ((self._read(keys, depth + 1), self._read(values, depth + 1)) for _ in range(self._size()))
            return {key if isinstance(key, (str, int, float)) else repr(key): value for key, value in pairs}
        raise ThriftError("its answer has a type that Thrift does not know")

    def _struct(self, depth: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        while (kind := self._number(">b")) != 0:
            number = self._number(">h")
            found[number] = self._read(kind, depth)
        return found
