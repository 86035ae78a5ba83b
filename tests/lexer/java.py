"""A Java process with the classes of Spark and no session."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from engine.spark.java import find_java
from tests.lexer.spark_tokens import SparkLexer


@contextmanager
def lexer() -> Iterator[SparkLexer]:
    """Start it, and end it with its input."""
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from pyspark.find_spark_home import _find_spark_home  # type: ignore[attr-defined]

    command = [str(find_java().path), "-Xmx2g", "-cp", f"{_find_spark_home()}/jars/*", "py4j.GatewayServer"]
    command += ["--die-on-broken-pipe", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, address="127.0.0.1"))
        try:
            yield SparkLexer(gateway.jvm, gateway)
        finally:
            gateway.close()
            process.kill()
