"""Ports on which sessions of the user listen, from Linux's /proc."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LISTENING = "0A"
_MAIN = b"org.apache.spark.deploy.SparkSubmit"
_SHELL = b"pyspark-shell"
_PATIENCE = 0.5
_MOST = 4096
# A request in the form of Spark's network protocol, with an empty body: length, kind, number, length of the body.
_REQUEST = struct.pack(">qbqi", 25, 3, 1, 4) + bytes(4)
# What Spark says that wants its own handshake, or SASL's, before anything else.
_REFUSALS = (b"challenge", b"saslmessage")


@dataclass(frozen=True, slots=True)
class Port:
    """A port on which a process listens.

    Attributes:
        address: to which it is bound.
        number: of the port.
        pid: of the process.
        who: the part of a session.
        guard: what keeps others out.
        of_java: whether it is the JVM's.
    """

    address: str
    number: int
    pid: int
    who: str
    guard: str
    of_java: bool

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        found = ipaddress.ip_address(self.address)
        mapped = getattr(found, "ipv4_mapped", None)
        return bool((mapped or found).is_loopback)


def sessions() -> Iterator[Port]:
    """The ports of all JVMs of sessions that run as this user, with those of the Python above and the workers below."""
    for pid in _processes():
        if _is_session(pid):
            yield from _ports(pid, "Java: Spark, Py4J", "a secret of the session, a token", of_java=True)
            yield from _ports(_parent(pid), "Python: accumulators, callbacks", "a token", of_java=False)
            for child in _children(pid):
                yield from _ports(child, "Python: workers", "a secret of the session", of_java=False)


def answers(port: Port) -> bool:
    """Whether a port of Java answers a message of Spark's to somebody who knows no secret.

    A session that wants one says so and hangs up; the gateway of Py4J waits for a line, and gets none.
    """
    try:
        with socket.create_connection((port.address, port.number), timeout=_PATIENCE) as connection:
            connection.sendall(_REQUEST)
            said = connection.recv(_MOST).lower()
            return bool(said) and not any(text in said for text in _REFUSALS)
    except OSError:
        return False


def _processes() -> Iterator[int]:
    with suppress(OSError):
        for path in _PROC.iterdir():
            with suppress(OSError):
                if path.name.isdigit() and path.stat().st_uid == os.getuid():
                    yield int(path.name)


def _is_session(pid: int) -> bool:
    with suppress(OSError):
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        return _MAIN in words and _SHELL in words
    return False


def _parent(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        text = (_PROC / str(pid) / "stat").read_text()
        return int(text.rpartition(")")[2].split()[1])
    return 0


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for path in (_PROC / str(pid) / "task").glob("*/children"):
            with suppress(OSError):
                yield from map(int, path.read_text().split())


def _ports(pid: int, who: str, guard: str, *, of_java: bool) -> Iterator[Port]:
    inodes = _sockets(pid)
    for family in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / str(pid) / "net" / family).read_text().splitlines()[1:]:
                row = line.split()
                if row[3] == _LISTENING and row[9] in inodes:
                    address, _, number = row[1].rpartition(":")
                    yield Port(_address(address), int(number, 16), pid, who, guard, of_java)


def _sockets(pid: int) -> frozenset[str]:
    found = set()
    with suppress(OSError):
        for path in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                name = path.readlink().name
                if name.startswith("socket:["):
                    found.add(name[8:-1])
    return frozenset(found)


def _address(text: str) -> str:
    """An address as the kernel writes it: words of 32 bits in the order of the machine."""
    packed = b"".join(struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
