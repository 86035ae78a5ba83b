"""How Java reads addresses: java.net.URI, PostgreSQL's driver and Kafka's client, in one JVM."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from engine.spark.jars import jar_paths
from engine.spark.java import find_java


class JavaReader:
    """A JVM that parses addresses; `close` ends it."""

    def __init__(self) -> None:
        jars = [str(path) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")]
        kept = [jar for jar in jars if any(name in jar for name in ("py4j", "slf4j", "log4j"))]
        kept += [str(path) for path in jar_paths(("kafka", "postgres"), fetch=False, java=None)]
        java = str(find_java().home / "bin" / "java")
        # The gateway looks for its own jar where an ordinary installation has it.
        own = next(jar for jar in jars if "py4j" in jar)
        port = launch_gateway(
            jarpath=own, classpath=os.pathsep.join(kept), java_path=java, die_on_exit=True,
            javaopts=["-Xmx256m", "-Xshare:auto"],
        )  # fmt: skip
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        jvm = self._gateway.jvm
        self._uri = jvm.java.net.URI
        self._driver, self._properties = jvm.org.postgresql.Driver, jvm.java.util.Properties
        self._kafka = jvm.org.apache.kafka.common.utils.Utils
        jvm.java.util.logging.LogManager.getLogManager().reset()

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()

    def web(self, text: str) -> tuple[Any, Any, Any] | None:
        """Scheme, host and port; None: it is no address to Java.

        Of a host with an underscore, which the class leaves to its users, by the authority.
        """
        try:
            uri = self._uri(text)
        except Py4JJavaError:
            return None
        host = uri.getHost()
        if host is not None:
            return uri.getScheme(), host, uri.getPort()
        host, _, port = str(uri.getRawAuthority()).rpartition("@")[2].partition(":")
        return uri.getScheme(), host, int(port) if port else -1

    def postgres(self, text: str) -> list[tuple[str, int]]:
        """The hosts and ports that the driver connects to; none where it does not take the address."""
        found = self._driver.parseURL(text, self._properties())
        if found is None:
            return []
        hosts, ports = (str(found.getProperty(key)).split(",") for key in ("PGHOST", "PGPORT"))
        return [(host.lower(), int(port)) for host, port in zip(hosts, ports, strict=True)]

    def kafka(self, text: str) -> list[tuple[str, int]]:
        """The hosts and ports of bootstrap servers."""
        parts = [part.strip(" ") for part in text.split(",")]
        return [(str(self._kafka.getHost(part)).lower(), int(self._kafka.getPort(part))) for part in parts]
