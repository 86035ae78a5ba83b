"""Spark's master URL: which kind of cluster it names, and where its executors run."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

_LOCAL: Final = re.compile(r"local(\[[^\]]*\])?")
# Master and executors of Spark's own test cluster are processes of this machine.
_HERE: Final = re.compile(r"local-cluster\[[^\]]*\]")
_STANDALONE: Final = re.compile(r"spark://(?P<masters>[^/\s]+)")
_PORT: Final = 7077
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class MasterKind(StrEnum):
    LOCAL = "local"
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "kubernetes"
    CONNECT = "connect"
    DATABRICKS = "databricks"
    UNKNOWN = "unknown"


def kind_of(master: str) -> MasterKind:
    if _LOCAL.fullmatch(master):
        return MasterKind.LOCAL
    if _STANDALONE.fullmatch(master) or _HERE.fullmatch(master):
        return MasterKind.STANDALONE
    if master == "yarn":
        return MasterKind.YARN
    if master.startswith("k8s://"):
        return MasterKind.KUBERNETES
    if "databricks" in master:
        return MasterKind.DATABRICKS
    return MasterKind.CONNECT if master.startswith("sc://") else MasterKind.UNKNOWN


def runs_locally(master: str) -> bool:
    """Return whether all of Spark runs in the driver's process."""
    return kind_of(master) is MasterKind.LOCAL


def is_on_this_machine(master: str) -> bool:
    """Return whether executors share the driver's disks, as far as the URL alone shows it."""
    return runs_locally(master) or _HERE.fullmatch(master) is not None


def is_loopback(master: str) -> bool:
    """Return whether a standalone master is on the loopback interface, and so are its workers."""
    match = addresses(master)
    return bool(match) and all(host in _LOOPBACK for host, _ in match)


def addresses(master: str) -> tuple[tuple[str, int], ...]:
    """Return host and port of each master of a standalone cluster: spark://host1:7077,host2:7077."""
    match = _STANDALONE.fullmatch(master)
    if match is None:
        return ()
    return tuple(_address(part) for part in match["masters"].split(",") if part)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        return text, _PORT
    return host, int(port)
