"""Runs a command while services run: python -m tests.services [--with NAMES] FOLDER COMMAND...

NAMES are separated by commas: kafka, registry (both if none is named), postgres, rest, s3, spark. The command finds
their addresses and logins in variables of its environment, which are those of the example's targets. Whatever way it
ends, they end with it. What the broker and the REST catalog hold stays in the folder; the others forget.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

Variables = Mapping[str, str]


@contextmanager
def _kafka(place: Path) -> Iterator[Variables]:
    from tests.services import kafka

    with kafka.running(place / "broker") as broker:
        _say(f"a Kafka broker at {broker.address}, data in {broker.folder}")
        yield {"KAFKA_BOOTSTRAP": broker.address}


@contextmanager
def _registry(place: Path) -> Iterator[Variables]:
    from tests.services import registry

    with registry.running(place / "registry") as found:
        _say(f"a schema registry at {found.url}")
        yield {"SCHEMA_REGISTRY": found.url}


@contextmanager
def _postgres(_: Path) -> Iterator[Variables]:
    from tests.services import postgres

    if postgres.binaries() is None:
        raise SystemExit(
            "no PostgreSQL here: install the package postgresql, or name its bin folder in ENGINE_POSTGRES"
        )
    with postgres.running() as server:
        _say(f"PostgreSQL at {server.jdbc}")
        yield {"LAKE_URI": server.jdbc, "LAKE_USER": postgres.USER, "ENGINE_SECRET_LAKE": server.password}


@contextmanager
def _rest(place: Path) -> Iterator[Variables]:
    from tests.services import iceberg_rest

    with iceberg_rest.running(place / "rest") as server:
        _say(f"an Iceberg REST catalog at {server.url}, tables in {server.warehouse}")
        yield {"CATALOG_URI": server.url, "CATALOG_WAREHOUSE": server.warehouse.as_uri()}


@contextmanager
def _s3(_: Path) -> Iterator[Variables]:
    from tests.services import s3

    with s3.running() as server:
        _say(f"an S3-compatible store at {server.endpoint}, bucket {server.bucket('lake')}")
        yield {
            "S3_ENDPOINT": server.endpoint, "S3_BUCKET": "lake", "S3_REGION": s3.REGION,
            "ENGINE_SECRET_S3_ID": server.access_key_id, "ENGINE_SECRET_S3_KEY": server.secret_access_key,
        }  # fmt: skip


@contextmanager
def _spark(place: Path) -> Iterator[Variables]:
    from tests.services import spark_cluster

    with spark_cluster.running(place / "spark") as cluster:
        _say(f"a Spark cluster at {cluster.url}, logs in {cluster.folder}")
        yield {"SPARK_MASTER": cluster.url, "ENGINE_SECRET_SPARK": cluster.secret}


_SERVICES: Mapping[str, Callable[[Path], AbstractContextManager[Variables]]] = {
    "kafka": _kafka, "registry": _registry, "postgres": _postgres, "rest": _rest, "s3": _s3, "spark": _spark,
}  # fmt: skip


def _say(text: str) -> None:
    print(f"==> {text}", flush=True)


def _parsed(arguments: list[str]) -> tuple[list[str], Path, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m tests.services", description=__doc__)
    parser.add_argument("--with", dest="names", default="kafka,registry")
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    names = given.names.split(",")
    if unknown := [name for name in names if name not in _SERVICES]:
        parser.error(f"there is no service {', '.join(unknown)}; known: {', '.join(_SERVICES)}")
    return names, given.folder.resolve(), given.command


def main(*arguments: str) -> int:
    """The exit code of the command."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names, place, command = _parsed(list(arguments))
    with ExitStack() as stack:
        # The example, as it is here, gives logins of these services to these services.
        env = {**os.environ, "ENGINE_TRUST": "1"}
        for name in names:
            env |= stack.enter_context(_SERVICES[name](place))
        return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
